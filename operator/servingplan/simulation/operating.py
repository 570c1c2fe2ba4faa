"""The operator's fleet: `decide()` on virtual time, its replicas, and what it hears of their engines.

In: lanes. Out: a `Fleet` for `playing`. Engines report arrivals, requests in flight and waiting, and nothing else,
because a fluid knows no tokens. Where the plan has foresight, it learns each night from the trace's earlier days, as
from a Prometheus that kept them. Every lane has an operator of its own, from the slice on in which its world becomes
another one than that of the first lane; until then both decide the same.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from servingplan.planning.calendar import local_date
from servingplan.planning.decision import lead_in_effect
from servingplan.planning.demand import first_instant
from servingplan.planning.lead import Stages
from servingplan.planning.learned import Learned
from servingplan.planning.learning import first_day, learn
from servingplan.planning.plan import Plan, PrometheusSource
from servingplan.simulation.fleet import Seen
from servingplan.simulation.listening import Listening, Load
from servingplan.simulation.operated import Operated
from servingplan.simulation.pods import Pods
from servingplan.simulation.policies import SERVICE_S
from servingplan.simulation.windows import Array
from servingplan.simulation.world import Lanes, World

POLL_SLICES = 2
"""Engines are heard once a minute. The operator polls every 15 s; what it hears are rates over two minutes and more."""


class OperatedFleet:
    """The operator of a plan in each lane. plan: that of the lanes, or one that differs in its feedback alone."""

    def __init__(self, lanes: Lanes, plan: Plan) -> None:
        first, *others = lanes.worlds
        self._lanes = lanes
        self._operators = {0: _Operator(first, plan, lanes)}
        self._apart = {lane: first.same_until(world) for lane, world in enumerate(others, start=1)}

    def step(self, i: int, seen: Seen) -> tuple[Array, Array]:
        """As `Fleet` says."""
        for lane, slice_ in self._apart.items():
            if slice_ == i:
                self._operators[lane] = self._operators[0].in_world(self._lanes.worlds[lane])
        busy, queue = seen.busy[0].tolist(), seen.queue[0].tolist()
        found = {lane: each.step(i, busy[lane], queue[lane]) for lane, each in self._operators.items()}
        lanes = [found.get(lane, found[0]) for lane in range(len(self._lanes))]
        held, ready = np.array(lanes, np.float32).T[:, None, :]
        return held, ready


class _Operator:
    """One operator, its replicas and what it hears."""

    def __init__(self, world: World, plan: Plan, lanes: Lanes) -> None:
        self._world, self._plan, self._unit_rps = world, plan, lanes.unit_rps
        self._in_flight = in_flight_at_capacity(plan, lanes.unit_rps)
        self._drain = timedelta(seconds=world.rules.drain_s)
        start = timedelta(seconds=world.rules.start_s)
        # A node for each replica, and for each that takes the place of a lost one.
        nodes = tuple(f"node-{number:05}" for number in range(2 * plan.bounds.maximum))
        self._pods = Pods(start=Stages(engine=start), nodes=nodes)
        self._operated = Operated(plan, drain_timeout=self._drain)
        self._changes_at: datetime | None = None
        self._learned: Learned | None = None
        self._listening: Listening | None = None
        self._by_prometheus = plan.feedback is not None and isinstance(plan.feedback.source, PrometheusSource)
        if plan.feedback is not None:
            self._listening = Listening(stale_after=plan.feedback.stale_after, start=world.trace.start)

    def in_world(self, world: World) -> _Operator:
        """The same one, in a world that goes on differently."""
        other = copy(self)
        other._world, other._operated, other._listening = world, copy(self._operated), deepcopy(self._listening)
        return other

    def step(self, i: int, busy: float, queue: float) -> tuple[int, int]:
        """The replicas that are held and that serve at a slice; busy and queue of the slice before, as in `Seen`."""
        now = self._world.trace.at(i)
        hears = self._hear(i, busy, queue, now)
        first = self._pods.current is None
        if first or hears or now >= self._operated.wake_at or self._changed(now):
            self._look(now, first=first)
        self._lose(i, now)
        draining = sum(pod.draining is not None for pod in self._pods.pods)
        return (self._pods.current or 0) - draining, len(self._pods.serving(now))

    def _hear(self, i: int, busy: float, queue: float, now: datetime) -> bool:
        """Let engines serve, and ask them once in a while. Whether somebody was asked."""
        if self._listening is None:
            return False
        load = Load(served_per_s=busy * self._unit_rps, waiting=queue * self._unit_rps, running=busy * self._in_flight)
        self._listening.go_on(self._pods, load, now)
        if i % POLL_SLICES:
            return False
        self._listening.scrape(self._pods, load, now)
        if self._world.silent[i] and self._by_prometheus:
            self._listening.gone()
        else:
            self._listening.poll(self._pods, now)
        return True

    def _changed(self, now: datetime) -> bool:
        return self._changes_at is not None and now >= self._changes_at

    def _look(self, now: datetime, *, first: bool) -> None:
        """Observe, decide, carry out. The first replicas have been there all along."""
        heard = None if self._listening is None else self._listening.heard(self._pods, now)
        self._operated.step(replace(self._pods.observed(now, heard), learned=self._taught(now)), now)
        orders = self._operated.orders
        if first and orders.replicas is not None:
            self._pods = self._pods.scaled(orders.replicas, now - timedelta(seconds=self._world.rules.start_s))
        else:
            self._pods = self._pods.carried_out(orders, now)
        self._changes_at = self._pods.next_change(now)

    def _lose(self, i: int, now: datetime) -> None:
        """What a node takes in this slice."""
        lost = self._world.lost
        count = int(lost[i] - (lost[i - 1] if i else 0))
        if count <= 0:
            return
        serving = set(self._pods.serving(now))
        gone = [pod.node for pod in self._pods.pods if pod.name in serving][:count]
        for node in gone:
            if node is not None:
                self._pods = self._pods.without_node(node, now)
        self._changes_at = now

    def _taught(self, now: datetime) -> Learned | None:
        """What the days before this one taught, made anew each night; of a first day there is nothing."""
        if self._plan.foresight is None:
            return None
        day = local_date(now, self._plan.zone)
        if self._learned is None or self._learned.day != day:
            start = max(self._world.trace.first, first_instant(self._plan, first_day(day)))
            past = self._world.trace.minutes(start, now)
            lead = lead_in_effect(self._plan, self._operated.history, now)
            self._learned = learn(self._plan, past, start=lead, day=day)
        return self._learned


def in_flight_at_capacity(plan: Plan, capacity_rps: float) -> float:
    """Requests that one replica serves at a time at its capacity: as a benchmark recorded, else by Little's law."""
    measured = None if plan.measured is None else plan.measured.at_capacity.in_flight_mean
    return measured or capacity_rps * SERVICE_S
