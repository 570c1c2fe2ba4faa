"""The requests of one run, as the client saw them.

In: made by ``bench_serve`` from a result of vLLM, and by simulations. Out: read by ``goodput`` and ``seen``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Silence:
    """A time without any token although requests were in flight. Seconds since the first request."""

    start: float
    length: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """One entry a request, in the order in which they were sent; all arrays have the same length.

    started: seconds since the first one. lag: seconds by which it was sent later than its schedule said. ttft, latency:
    seconds, of no meaning where failed. output_tokens: 0 where failed. silences: the longest times without a token,
    None where that was not recorded. itl_median: seconds between two tokens. clock: the first start on the machine's
    monotonic clock.
    """

    clock: float
    started: Floats
    lag: Floats
    ttft: Floats
    latency: Floats
    input_tokens: Floats
    output_tokens: Floats
    failed: Flags
    silences: Sequence[Silence] | None = ()
    itl_median: float | None = None

    @property
    def tpot(self) -> Floats:
        """Seconds per output token after the first; 0 where there is none, as vLLM counts it for goodput."""
        more = np.maximum(self.output_tokens - 1, 1)
        return np.where(self.output_tokens > 1, (self.latency - self.ttft) / more, 0.0)

    def within(self, start: float, end: float) -> Requests:
        """Those that started in [start, end), and the silences that began there."""
        kept = (self.started >= start) & (self.started < end)
        return Requests(
            clock=self.clock,
            started=self.started[kept],
            lag=self.lag[kept],
            ttft=self.ttft[kept],
            latency=self.latency[kept],
            input_tokens=self.input_tokens[kept],
            output_tokens=self.output_tokens[kept],
            failed=self.failed[kept],
            silences=None
            if self.silences is None
            else tuple(silence for silence in self.silences if start <= silence.start < end),
            itl_median=self.itl_median,
        )

    def in_flight(self, start: float, end: float) -> tuple[float, float]:
        """Mean and 99th percentile over time of the requests in flight in [start, end)."""
        latency = np.where(self.failed, 0.0, self.latency)
        changes = np.concatenate([self.started, self.started + latency])
        steps = np.concatenate([np.ones(len(self.started)), -np.ones(len(self.started))])
        order = np.argsort(changes, kind="stable")
        levels = np.cumsum(steps[order])
        edges = np.clip(np.append(changes[order], end), start, end)
        spans = np.diff(edges)
        if spans.sum() <= 0:
            return 0.0, 0.0
        by_level = np.argsort(levels, kind="stable")
        passed = np.cumsum(spans[by_level])
        busiest = levels[by_level][np.searchsorted(passed, 0.99 * passed[-1])]
        return float((levels * spans).sum() / (end - start)), float(busiest)
