"""The operator as a policy: `decide()` on virtual time, with the signals that its engines would report.

In: lanes. Out: a `Policy` for `playing`. Where the plan has foresight, it learns each night from the trace's earlier
days, as from a Prometheus that kept them. Every lane has an operator of its own, from the slice on in which its world
becomes another one than that of the first lane; until then both decide the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from servingplan.planning.calendar import local_date
from servingplan.planning.decision import lead_in_effect
from servingplan.planning.demand import first_instant
from servingplan.planning.learned import Learned
from servingplan.planning.learning import first_day, learn
from servingplan.planning.plan import Plan
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.engines import Engines, Happened, in_flight_at_capacity
from servingplan.simulation.fleet import Policy, Seen
from servingplan.simulation.operated import Operated
from servingplan.simulation.windows import Array
from servingplan.simulation.world import Lanes, World

POLL_SLICES = 2
"""Engines are heard once a minute. The operator polls every 15 s; what it hears are rates over two minutes and more."""


def operator(lanes: Lanes, plan: Plan) -> Policy:
    """The operator of a plan in each lane. plan: that of the lanes, or one that differs in its feedback alone."""
    first, *others = lanes.worlds
    one = _Operator(first, plan, lanes)
    own = {0: one}
    apart = {lane: first.same_until(world) for lane, world in enumerate(others, start=1)}

    def wanted(i: int, seen: Seen) -> Array:
        for lane, slice_ in apart.items():
            if slice_ == i:
                own[lane] = one.in_world(lanes.worlds[lane])
        busy, queue = seen.busy[0].tolist(), seen.queue[0].tolist()
        found = {lane: each.wanted(i, busy[lane], queue[lane]) for lane, each in own.items()}
        return np.array([[found.get(lane, found[0]) for lane in range(len(lanes))]], np.float32)

    return wanted


class _Operator:
    """One operator and its fleet."""

    def __init__(self, world: World, plan: Plan, lanes: Lanes) -> None:
        self._world, self._plan, self._unit_rps = world, plan, lanes.unit_rps
        self._in_flight = in_flight_at_capacity(plan, lanes.unit_rps)
        self._engines = Engines(plan, world.rules)
        self._operated = Operated(plan, drain_timeout=timedelta(seconds=world.rules.drain_s))
        self._current: int | None = None
        self._learned: Learned | None = None

    def in_world(self, world: World) -> _Operator:
        """The same one, in a world that goes on differently."""
        other = copy(self)
        other._world, other._engines, other._operated = world, self._engines.copied(), copy(self._operated)
        return other

    def wanted(self, i: int, busy: float, queue: float) -> int:
        """The replicas that serve or start at a slice; busy and queue of the slice before, as in `Seen`."""
        now = self._world.trace.at(i)
        listens = self._plan.feedback is not None
        if listens:
            self._engines.count(busy * self._unit_rps * SLICE_S)
        hears = listens and i % POLL_SLICES == 0
        if hears:
            happened = Happened(waiting=queue * self._unit_rps, running=busy * self._in_flight)
            self._engines.hear(happened, now, silent=bool(self._world.silent[i]))
        if hears or self._current is None or now >= self._operated.wake_at or self._engines.changed(now):
            observation = self._engines.observed(self._current, now)
            self._operated.step(replace(observation, learned=self._taught(now)), now)
            self._engines.carry_out(self._operated.orders, now)
            self._current = self._operated.orders.replicas
        self._engines.lose(int(self._world.lost[i]), now)
        return self._engines.serving

    def _taught(self, now: datetime) -> Learned | None:
        """What the days before this one taught, made anew each night; of a first day there is nothing."""
        feedback, day = self._plan.feedback, local_date(now, self._plan.zone)
        if feedback is None or feedback.foresight is None:
            return None
        if self._learned is None or self._learned.day != day:
            start = max(self._world.trace.first, first_instant(self._plan, first_day(day)))
            past = self._world.trace.minutes(start, now)
            lead = lead_in_effect(self._plan, self._operated.history, now)
            self._learned = learn(self._plan, past, start=lead, day=day)
        return self._learned
