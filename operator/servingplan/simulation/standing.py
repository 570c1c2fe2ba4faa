"""How a policy stands in a scene: attainment, GPU-hours, and when it was at its worst.

In: what was played, and which slices are scored. Out: a `Standing`. A request that waits longer than the TTFT
objective's limit, or goes away, is missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.playing import Played
from servingplan.simulation.scenarios.scene import Scene
from servingplan.simulation.trace import PLANNED_STEP_S, planned_rates
from servingplan.simulation.windows import Array
from servingplan.simulation.workload import HOUR_S, SLICE_S, WEEK_HOURS
from servingplan.simulation.world import Lanes

_NOISE = 1e-5
"""Requests are drawn in single precision: so much more than planned is none."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Over the time by which a scene is judged. Hours are GPU-hours.

    attainment: the share of good requests; rising: of those in the first 15 minutes of rises; both None where there was
    none. weekly: shares by hour of the local week, Monday 00:00 first, NaN where no request came.
    """

    attainment: float | None
    rising: float | None
    requests: float
    missed: float
    serving: float
    reserve: float
    starting: float
    draining: float
    weekly: Floats

    @property
    def hours(self) -> float:
        """GPU-hours of all kinds."""
        return self.serving + self.reserve + self.starting + self.draining

    @property
    def worst_hour(self) -> int | None:
        """The hour of the week with the lowest attainment; None where none missed a request."""
        known = np.nan_to_num(self.weekly, nan=1.0)
        return int(np.argmin(known)) if known.min() < 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Requests above the plan in one scene.

    share: of all. most: the slice in which the worst five minutes begin, their requests/s and what was planned there;
    None where nothing was above.
    """

    share: float
    requests: float
    most: tuple[int, float, float] | None


def standing(played: Played, lanes: Lanes, scene: Scene, *, lane: int = 0, setting: int = 0) -> Standing:
    """The standing of one setting in one lane, over the slices by which the scene is judged."""
    counted = scene.judged
    requests = lanes.worlds[lane].trace.requests * counted
    good = played.good[:, setting, lane].astype(np.float64)
    return Standing(
        attainment=share_of(good, requests),
        rising=share_of(good, requests * lanes.rising[:, lane]),
        requests=float(requests.sum()),
        missed=float((requests * (1 - good)).sum()),
        **_hours(played, lanes, lane, counted, setting),
        weekly=_weekly(good, requests, lanes),
    )


def share_of(good: Array | Floats, requests: Floats) -> float | None:
    """The share of requests that are good; None where there are none."""
    total = requests.sum()
    return float((good * requests).sum() / total) if total > 0 else None


def _hours(played: Played, lanes: Lanes, lane: int, counted: NDArray[np.bool_], setting: int) -> dict[str, float]:
    """GPU-hours by kind. What leaves costs a drain; what is lost leaves without one."""
    held, ready = (values[:, setting, lane].astype(np.float64) for values in (played.held, played.ready))
    reserve = np.minimum(ready, lanes.reserve)
    before = np.concatenate([ready[:1], ready[:-1]])
    leaving = np.maximum(before - ready - lanes.lost[:, lane], 0)
    gpus = lanes.plan.gpus_per_replica or 1
    weights = counted * (gpus * SLICE_S / HOUR_S)
    drains = counted * (gpus * lanes.rules.drain_s / HOUR_S)
    return {
        "serving": float(((ready - reserve) * weights).sum()),
        "reserve": float((reserve * weights).sum()),
        "starting": float(((held - ready) * weights).sum()),
        "draining": float((leaving * drains).sum()),
    }


def _weekly(good: Floats, requests: Floats, lanes: Lanes) -> Floats:
    """By hour of the local week."""
    total, met = np.zeros(WEEK_HOURS), np.zeros(WEEK_HOURS)
    np.add.at(total, lanes.hours_of_week, requests)
    np.add.at(met, lanes.hours_of_week, requests * good)
    return np.asarray(np.divide(met, total, out=np.full(WEEK_HOURS, np.nan), where=total > 0))


def excess(scene: Scene) -> Excess:
    """What comes above the plan: in each five minutes, the requests beyond the rate that it plans for."""
    world, per_step = scene.world, PLANNED_STEP_S // SLICE_S
    steps = len(world.trace.requests) // per_step
    whole = steps * per_step
    counted = scene.judged[:whole].reshape(steps, -1).all(axis=1)
    came = world.trace.requests[:whole].reshape(steps, -1).sum(axis=1) * counted
    planned = planned_rates(world.plan, world.trace.start, whole).reshape(steps, -1).sum(axis=1) * SLICE_S
    above = np.where(came > planned * (1 + _NOISE), came - planned, 0.0)
    if not above.any():
        return Excess(share=0.0, requests=0.0, most=None)
    step = int(np.argmax(above))
    most = (step * per_step, float(came[step]) / PLANNED_STEP_S, float(planned[step]) / PLANNED_STEP_S)
    return Excess(share=float(above.sum() / came.sum()), requests=float(above.sum()), most=most)
