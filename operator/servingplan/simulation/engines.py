"""What the engines of a simulated fleet would report, and what an operator would see of its replicas.

In: what an operator orders, which replicas are lost, and what the fleet did. Out: an `Observation` with the signals
that `planning.record` makes of the engines' counters: arrivals, requests in flight and waiting, and nothing else,
because a fluid knows no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from servingplan.planning.observation import Draining, Milestones, Observation, Replica, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.record import Record
from servingplan.planning.signals import Reading
from servingplan.simulation.fleet import Rules
from servingplan.simulation.operated import Orders
from servingplan.simulation.policies import SERVICE_S


@dataclass(slots=True)
class _Pod:
    """A replica: since when it is there, and how many requests its engine counted. draining: None where it serves."""

    name: str
    since: datetime
    draining: Draining | None = None
    arrived: float = 0.0
    heard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What the fleet has now, in requests. running: at a time, on average."""

    waiting: float
    running: float


class Engines:
    """The replicas of one fleet, as in `playing`: the newest goes first, what is lost or comes back starts anew."""

    def __init__(self, plan: Plan, rules: Rules) -> None:
        self._plan, self._start, self._drain = plan, timedelta(seconds=rules.start_s), timedelta(seconds=rules.drain_s)
        self._pods: list[_Pod] = []
        self._named = 0
        self._began = 0.0
        self._record = Record()
        self._shown: Sequence[Replica] = ()
        self._shown_until: datetime | None = None

    def copied(self) -> Engines:
        """The same ones, to go on by themselves."""
        other = copy(self)
        other._pods = [replace(pod) for pod in self._pods]
        return other

    @property
    def serving(self) -> int:
        """Replicas that serve or start: all but those that drain."""
        return sum(pod.draining is None for pod in self._pods)

    def changed(self, now: datetime) -> bool:
        """Whether replicas came, went or got ready since somebody looked."""
        return self._shown_until is None or now >= self._shown_until

    def carry_out(self, orders: Orders, now: datetime) -> None:
        """Do what an operator orders. The first replicas have been there all along."""
        before = len(self._pods)
        replicas = before if orders.replicas is None else orders.replicas
        if replicas == before and not orders.marks:
            return
        self._mark(orders, now)
        # Those that drain stand at the end, behind the newest, and go first.
        line = sorted(self._pods, key=lambda pod: (pod.draining is not None, pod.since))
        since = now if before else now - self._start
        self._pods = [*line[:replicas], *(self._new(since) for _ in range(replicas - before))]
        self._shown_until = None

    def _mark(self, orders: Orders, now: datetime) -> None:
        marks = {mark.replica.name: mark.draining for mark in orders.marks}
        for pod in self._pods:
            if pod.name in marks:
                if pod.draining is not None and marks[pod.name] is None:
                    pod.since, pod.heard = now, False
                pod.draining = marks[pod.name]

    def lose(self, count: int, now: datetime) -> None:
        """So many of those that serve are gone, and start anew."""
        if not count:
            return
        serving = [pod for pod in self._ready(now) if pod.draining is None]
        gone = serving[max(0, len(serving) - count) :]
        self._pods = [pod for pod in self._pods if pod not in gone] + [self._new(now) for _ in gone]
        self._shown_until = None

    def _new(self, since: datetime) -> _Pod:
        self._named += 1
        return _Pod(name=f"replica-{self._named}", since=since)

    def count(self, began: float) -> None:
        """So many requests got their first token since the last time."""
        self._began += began

    def hear(self, happened: Happened, now: datetime, *, silent: bool) -> None:
        """Ask the engines. silent: nobody gets an answer, but they count on."""
        ready = self._ready(now)
        readings = self._readings(ready, happened, now)
        self._record = self._record.heard([] if silent else readings, now, {pod.name: pod.since for pod in ready})

    def _readings(self, ready: Sequence[_Pod], happened: Happened, now: datetime) -> list[Reading]:
        """Requests are balanced over those that served; one that drains finishes what it has."""
        takes = [pod for pod in ready if pod.draining is None]
        served = [pod for pod in takes if pod.heard] or takes
        share = 1 / max(1, len(served))
        for pod in served:
            pod.arrived += self._began * share
        self._began = 0.0
        found = []
        for pod in ready:
            drains = pod.draining is not None and now - pod.draining.since < self._drain
            waits = pod.heard and pod.draining is None
            found.append(
                Reading(
                    pod=pod.name,
                    at=now,
                    running=happened.running * share if waits or drains else 0.0,
                    waiting=happened.waiting * share if waits else 0.0,
                    arrived=pod.arrived,
                    finished=pod.arrived,
                    preemptions=0.0,
                    rejections=0.0,
                )
            )
        for pod in ready:
            pod.heard = True
        return found

    def observed(self, current: int | None, now: datetime) -> Observation:
        """What an operator sees. current: what it ordered last; None where there is nothing yet."""
        ready, feedback = self._ready(now), self._plan.feedback
        names = [pod.name for pod in ready]
        return Observation(
            current=current,
            ready=len(ready),
            available=len(ready),
            replicas=self._replicas(now),
            heard=None if feedback is None else self._record.signals(now, feedback.stale_after, names),
        )

    def _ready(self, now: datetime) -> list[_Pod]:
        return [pod for pod in self._pods if pod.since + self._start <= now]

    def _replicas(self, now: datetime) -> Sequence[Replica]:
        """Made anew only where something changed."""
        if self.changed(now):
            self._shown = tuple(self._replica(pod, now) for pod in self._pods)
            later = [ready for pod in self._pods if (ready := pod.since + self._start) > now]
            self._shown_until = min(later, default=datetime.max.replace(tzinfo=now.tzinfo))
        return self._shown

    def _replica(self, pod: _Pod, now: datetime) -> Replica:
        ready = pod.since + self._start
        there = ready <= now
        return Replica(
            name=pod.name,
            stage=Stage.READY if there else Stage.ENGINE,
            since=pod.since,
            milestones=Milestones(scheduled=pod.since, started=pod.since, ready=ready if there else None),
            draining=pod.draining,
        )


def in_flight_at_capacity(plan: Plan, capacity_rps: float) -> float:
    """Requests that one replica serves at a time at its capacity: as a benchmark recorded, else by Little's law."""
    measured = None if plan.measured is None else plan.measured.at_capacity.in_flight_mean
    return measured or capacity_rps * SERVICE_S
