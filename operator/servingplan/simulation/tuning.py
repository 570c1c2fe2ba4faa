"""Which setting a policy gets: where a trace is long enough, the one that would have been right on its first half.

In: an entrant, lanes, and what the plan attained on that half. Out: a setting. So everybody is judged by days that
nobody was tuned on, and at about the same attainment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from servingplan.planning.demand import first_instant
from servingplan.simulation.playing import play
from servingplan.simulation.rivals import Entrant
from servingplan.simulation.scenarios.catalogue import as_recorded
from servingplan.simulation.standing import standing
from servingplan.simulation.world import Lanes, World

LONG = timedelta(days=14)
"""Each half has every day of the week."""


def half_time(world: World) -> datetime | None:
    """The local midnight that cuts what counts into a half to tune on and one to judge by; None where it is short."""
    trace = world.trace
    if trace.end - trace.first < LONG:
        return None
    middle = trace.first + (trace.end - trace.first) / 2
    return first_instant(world.plan, middle.astimezone(world.plan.zone).date())


def judged_from(world: World, start: datetime) -> World:
    """The same world, in which only what comes from `start` on counts."""
    return replace(world, judged=world.judged & (np.arange(len(world.judged)) >= world.trace.index(start)))


def tuned(entrant: Entrant, world: World, half: datetime, wanted: float) -> float:
    """The setting with the fewest GPU-hours that attained `wanted` until `half`; where none did, the highest.

    Only for entrants with a knob.
    """
    if entrant.knob is None:
        raise ValueError(f"{entrant.title} has nothing to tune")
    lanes, tried = Lanes([world.until(half)]), entrant.knob.tried
    played = play(lanes, entrant.make(lanes, tried), settings=len(tried))
    scene = as_recorded(lanes.worlds[0])
    found = [standing(played, lanes, scene, setting=k) for k in range(len(tried))]

    def rank(k: int) -> tuple[float, float]:
        return min(found[k].attainment or 0.0, wanted), -found[k].hours

    return tried[max(range(len(tried)), key=rank)]
