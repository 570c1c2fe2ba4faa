"""The worst minute of a trace: the top of its busiest rise. What goes wrong goes wrong there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servingplan.rendering.times import local_time
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.workload import rises
from servingplan.simulation.world import RATE_STEP_S, Lanes, World

GROWS = 1.02
"""Chance alone makes a step so much busier than another."""

_PER_STEP = RATE_STEP_S // SLICE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """Slices. begin: where the rise begins. top: where it is over; in a trace without rises, the busiest minutes."""

    begin: int
    top: int


def worst(world: World) -> Worst:
    """The busiest rise, the first of equals, from its first step to the last that still grows, in the judged time."""
    rates = Lanes([world]).rates[:, 0]
    judged = np.add.reduceat(world.judged, np.arange(len(rates)) * _PER_STEP) == _PER_STEP
    rising = rises(rates[:, None])[:, 0] & judged
    begun = np.flatnonzero(rising & ~np.concatenate([[False], rising[:-1]])).tolist()
    if not begun:
        busiest = int(np.argmax(np.where(judged, rates, -1)))
        return Worst(begin=busiest * _PER_STEP, top=busiest * _PER_STEP)
    tops = {step: _top(rates, step) for step in begun}
    highest = max(rates[top] for top in tops.values())
    step, top = next((step, top) for step, top in tops.items() if GROWS * rates[top] >= highest)
    return Worst(begin=step * _PER_STEP, top=top * _PER_STEP)


def _top(rates: np.ndarray[tuple[int], np.dtype[np.float32]], step: int) -> int:
    while step + 1 < len(rates) and rates[step + 1] > GROWS * rates[step]:
        step += 1
    return step


def when(world: World, index: int) -> str:
    """A slice in words, in the plan's zone."""
    return local_time(world.trace.at(index), world.plan.zone)


def some(minutes: int) -> int:
    """Minutes in slices."""
    return minutes * 60 // SLICE_S
