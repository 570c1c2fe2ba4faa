"""What a policy meets: who comes, how long replicas take, and what goes wrong. A scenario makes another one of it.

In: a plan and a trace. Out: `World`s; side by side, as the lanes of a fleet, they are `Lanes`. Demand is in replicas:
1 is what one replica serves in the largest pool that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction
from servingplan.planning.sizing import capacity_per_replica
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.fleet import Rules
from servingplan.simulation.trace import SLICE, Trace, by_slice
from servingplan.simulation.windows import Array, Sums, running_sums
from servingplan.simulation.workload import Workload, first_minutes_of_rises

RATE_STEP_S = 600
"""Over how long rates are taken to see rises: what is shorter is a burst."""

_BEFORE = timedelta(hours=1)
_STARTS_BEFORE = 4
"""How long a policy runs before anything counts: an hour, and some starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One plan's fleet, and what it meets, by slice of the trace.

    rules: how replicas start, serve and leave. lost: replicas that are gone at a slice and not replaced yet. silent:
    True while no metrics can be had. judged: the slices that policies are judged by, of those that the trace counts.
    """

    plan: Plan
    trace: Trace
    rules: Rules
    lost: NDArray[np.int64]
    silent: NDArray[np.bool_]
    judged: NDArray[np.bool_]

    @property
    def judged_from(self) -> datetime:
        """The first instant that policies are judged by."""
        return self.trace.at(int(np.argmax(self.judged)))

    def same_until(self, other: World) -> int:
        """The first slice in which another world of the same plan and rules differs; the end where none does."""
        differs = (
            (self.trace.requests != other.trace.requests) | (self.lost != other.lost) | (self.silent != other.silent)
        )
        return int(np.argmax(differs)) if differs.any() else len(differs)

    def until(self, end: datetime) -> World:
        """The same up to an instant."""
        last = self.trace.index(end)
        trace = replace(self.trace, requests=self.trace.requests[:last], counted=self.trace.counted[:last])
        return replace(self, trace=trace, lost=self.lost[:last], silent=self.silent[:last], judged=self.judged[:last])


def rules_of(plan: Plan, start: timedelta) -> Rules:
    """How the plan's replicas start, serve and leave. start: from the decision to the first request.

    A request is good if it waits at most what the TTFT objective allows. A replica drains for as long as its longest
    answer takes: the highest stated quantile of output tokens at the TPOT objective's pace; an owned engine at most for
    its drainTimeout.
    """
    objectives, output = plan.workload.objectives, plan.workload.tokens.output
    rules = Rules(start_s=start.total_seconds())
    drain_s = output[-1][1] * objectives.tpot.limit.total_seconds() if output and objectives.tpot else rules.drain_s
    if plan.engine is not None:
        drain_s = min(drain_s, plan.engine.drain_timeout.total_seconds())
    wait_s = rules.wait_limit_s if objectives.ttft is None else objectives.ttft.limit.total_seconds()
    return replace(rules, drain_s=drain_s, wait_limit_s=wait_s, patience_s=max(rules.patience_s, wait_s))


def world(plan: Plan, trace: Trace, rules: Rules) -> World:
    """An ordinary one: nothing is lost. The trace gets a while before it, so that no policy begins cold."""
    warm = trace.after_a_while(_BEFORE + _STARTS_BEFORE * timedelta(seconds=rules.start_s))
    slices = len(warm.requests)
    return World(
        plan=plan,
        trace=warm,
        rules=rules,
        lost=np.zeros(slices, np.int64),
        silent=np.zeros(slices, np.bool_),
        judged=warm.counted,
    )


class Lanes:
    """Worlds of one plan side by side, over the same time and with the same start."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self.worlds = worlds
        self.plan = worlds[0].plan
        self.rules = worlds[0].rules
        self.start = worlds[0].trace.start
        self.unit_rps = float(capacity_per_replica(self.plan.capacity, self.plan.capacity.points[-1].replicas))
        """Requests/s that a demand of 1 is."""
        requests = np.stack([each.trace.requests for each in worlds], axis=1)
        self.demand: Array = (requests / (SLICE_S * self.unit_rps)).astype(np.float32)
        self.lost: Array = np.stack([each.lost for each in worlds], axis=1).astype(np.float32)
        self.silent = np.stack([each.silent for each in worlds], axis=1)
        self.judged = np.stack([each.judged for each in worlds], axis=1)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.worlds)

    @property
    def slices(self) -> int:
        """How long they are."""
        return len(self.demand)

    @cached_property
    def sums(self) -> Sums:
        """Of demand, by one slice more."""
        return running_sums(self.demand)

    @cached_property
    def required(self) -> StepFunction[Requirement]:
        """What the plan requires, without lead."""
        return requirements(self.plan, self.start, self.start + self.slices * SLICE)

    @cached_property
    def reserve(self) -> Array:
        """The reserve that the plan keeps at each slice, for all policies alike."""
        return by_slice(self.required, lambda required: required.reserve).astype(np.float32)

    @cached_property
    def worth(self) -> Array:
        """What so many replicas serve together, in units of demand: by their number, 0 to the most there may be."""
        capacities = [n * capacity_per_replica(self.plan.capacity, n) for n in range(self.plan.bounds.maximum + 1)]
        return np.array([float(rps) / self.unit_rps for rps in capacities], np.float32)

    def pool(self, demand: Array) -> Array:
        """The least replicas that serve a demand; at most those that there may be."""
        least = np.searchsorted(self.worth, demand * np.float32(1 - 1e-6))
        return np.minimum(least, len(self.worth) - 1).astype(np.float32)

    @cached_property
    def rising(self) -> Array:
        """1 in the first minutes of rises."""
        return first_minutes_of_rises(self.rates, RATE_STEP_S // SLICE_S)[: self.slices]

    @cached_property
    def rates(self) -> Array:
        """Mean demand by `RATE_STEP_S`; of the last, unfinished one as far as it goes."""
        per_step = RATE_STEP_S // SLICE_S
        steps = -(-self.slices // per_step)
        edges = np.minimum(np.arange(steps + 1) * per_step, self.slices)
        return (np.diff(self.sums[edges], axis=0) / np.diff(edges)[:, None]).astype(np.float32)

    @cached_property
    def hours_of_week(self) -> NDArray[np.int64]:
        """Of each slice its hour of the local week, Monday 00:00 first. One that an autumn change doubles is one."""
        local = [(self.start + i * SLICE).astimezone(self.plan.zone) for i in range(self.slices)]
        return np.array([instant.weekday() * 24 + instant.hour for instant in local])

    @cached_property
    def workload(self) -> Workload:
        """The same for a vectorised fleet, which knows neither pools nor losses."""
        return Workload(
            demand=self.demand,
            sums=self.sums,
            counted=self.judged.astype(np.float32),
            rising=self.rising,
            rates=self.rates,
            days_off=np.zeros(-(-self.slices * SLICE_S // 86400), np.bool_),
            tenants=np.arange(len(self)),
            step_s=RATE_STEP_S,
        )
