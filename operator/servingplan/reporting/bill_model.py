"""The lines of a bill in one fluid fleet: replicas as they were set, and reactive autoscalers on the same arrivals.

In: what was served, which hours count, step functions of replicas. Out: an `Outcome` a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from servingplan.planning.series import StepFunction
from servingplan.profiling.served import Served
from servingplan.reporting.bill import HOUR, Period
from servingplan.simulation.fleet import Rules
from servingplan.simulation.trace import by_slice
from servingplan.simulation.week import Outcome, Recorded, held, reactive

_HOUR_S = round(HOUR.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What holds for all lines. capacity: of a replica, requests/s. lead: until a replica serves.

    wait: how long a good request may wait. reserve: beside what a reactive autoscaler wants; most: replicas in all.
    """

    capacity: float
    lead: timedelta
    wait: timedelta
    reserve: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """held: of the step functions, in their order. in_flight, by_rate: of the two reactive autoscalers."""

    held: Sequence[Outcome]
    in_flight: Outcome
    by_rate: Outcome


def replayed(served: Served, period: Period, replicas: Sequence[StepFunction[int]], fleet: Fleet) -> Replayed:
    """Follow all lines over the hours of a period. served: has requests in it."""
    recorded = _recorded(served, period, fleet.capacity)
    rules = Rules(start_s=fleet.lead.total_seconds(), wait_limit_s=fleet.wait.total_seconds())
    in_flight, by_rate = reactive(recorded, replace(rules, reserve=fleet.reserve), most=fleet.most)
    over_period = (function.since(period.start).until(period.end) for function in replicas)
    levels = [by_slice(function, float).astype(np.float32) for function in over_period]
    return Replayed(held=held(recorded, levels, rules), in_flight=in_flight, by_rate=by_rate)


def _recorded(served: Served, period: Period, capacity: float) -> Recorded:
    requests = np.array([np.nan if each is None else each for each in served.requests], float)
    counts = np.array([why is None for why in period.why_not])
    return Recorded(
        rates=requests / served.step_s,
        counted=np.repeat(counts, _HOUR_S // served.step_s),
        step_s=served.step_s,
        capacity=capacity,
    )
