"""How much a ramp measures: the two efforts, as data.

In: nothing. Out: read by ``level``, ``search`` and ``measuring``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a ramp spends.

    seeds, most_seeds: runs a level gets at first and at most. resolution: the largest ratio between the two ends of a
    finished search. warm_up_s, window_s: at least so long, and so many mean latencies (`WARM_UP_LATENCIES`,
    `WINDOW_LATENCIES`). longest_s: all runs together, unless stated otherwise.
    """

    name: str
    seeds: int
    most_seeds: int
    resolution: float
    warm_up_s: float
    window_s: float
    longest_s: float

    def warm_up(self, mean_latency_s: float) -> float:
        """Seconds until the server holds as many requests as the rate brings."""
        return max(self.warm_up_s, WARM_UP_LATENCIES * mean_latency_s)

    def window(self, mean_latency_s: float) -> float:
        """Seconds that count."""
        return max(self.window_s, WINDOW_LATENCIES * mean_latency_s)


WARM_UP_LATENCIES = 3
"""After three mean latencies what is in flight has turned over."""

WINDOW_LATENCIES = 20
"""So that requests which started together are a small part of a window."""

STANDARD = Effort(
    name="standard", seeds=3, most_seeds=8, resolution=1.025, warm_up_s=30, window_s=180, longest_s=4 * 3600
)
"""About two hours and a half: 10 levels, 40 runs. Three halvings of 1.4 end at 1.043, where what is found lies 4 %
below the truth on average; the fourth, to 1.021, brings that below 3 % (benchmarks/RESULTS.md)."""

QUICK = Effort(name="quick", seeds=3, most_seeds=5, resolution=1.2, warm_up_s=10, window_s=60, longest_s=30 * 60)
"""Half an hour, for the order of magnitude: to a fifth."""

EFFORTS: Mapping[str, Effort] = {effort.name: effort for effort in (STANDARD, QUICK)}
