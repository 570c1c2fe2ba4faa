"""Capacity on the token-level model: the largest rate at which enough requests are good.

In: an engine, what its steps cost, objectives, requests. Out: requests/s. As in a benchmark of a real engine, the same
requests come faster and faster; here all noise is the same at every rate, so that bisection finds the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from servingplan.planning.plan import Objectives
from servingplan.simulation.token_fleet import Wanted, followed
from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_replica import Answer

RESOLUTION = 1.01
"""Between the largest rate that holds and the smallest that does not."""

RUNGS = 30
"""Up or down from the first rate: 24,000 times slower, requests are alone; faster, they all come at once."""

LADDER = 1.4
"""Between two rates before both ends are known, as in a benchmark."""


def attainment(answers: Iterable[Answer], objectives: Objectives, *, from_s: float = 0.0) -> float:
    """The share of the requests that arrived from an instant on which are good; 1 where none did."""
    good = [answer.good(objectives) for answer in answers if answer.asked.arrival_s >= from_s]
    return sum(good) / len(good) if good else 1.0


def capacity(
    requests: Sequence[TokenRequest],
    limits: EngineLimits,
    cost: StepCost,
    objectives: Objectives,
    *,
    share: float,
    replicas: int = 1,
) -> float:
    """The largest rate in requests/s and replica, to 1 %, at which `share` of these requests are good.

    requests: at any rate; they are sent faster or slower, to so many replicas together. The first fifth of them fills
    the engines, and does not count. Raises ValueError where the objectives hold for no rate, or for any.
    """
    span_s = requests[-1].arrival_s - requests[0].arrival_s
    rate = len(requests) / span_s

    def holds(wanted: float) -> bool:
        faster = [replace(each, arrival_s=each.arrival_s * rate / wanted) for each in requests]
        run = followed(faster, [Wanted(at_s=0.0, replicas=replicas)], limits, cost, start_s=0.0)
        return attainment(run.answers, objectives, from_s=faster[len(faster) // 5].arrival_s) >= share

    low, high = _around(rate, holds)
    while high / low > RESOLUTION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low / replicas


def _around(rate: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """A rate that holds, and one beside it that does not."""
    held = holds(rate)
    for _ in range(RUNGS):
        beside = rate * LADDER if held else rate / LADDER
        if holds(beside) != held:
            return min(rate, beside), max(rate, beside)
        rate = beside
    still = "still hold" if held else "do not hold either"
    raise ValueError(f"at {rate:.2g} requests/s the objectives {still}: there is no rate at which they begin to break")
