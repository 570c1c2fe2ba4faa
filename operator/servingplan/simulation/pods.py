"""Replicas on virtual time: wanted, starting, ready, draining, gone; as a Deployment and its nodes would have them.

In: `Orders` of `simulation.operated`, or a number of replicas, and instants. Out: the `Observation` that a decision is
made from. Values only: every change is a new `Pods`. What happens to replicas in a scenario (a lost node, slower
starts) is a change like any other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from servingplan.planning.lead import Stages
from servingplan.planning.observation import Draining, Milestones, Observation, Replica, Stage, Trouble
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard
from servingplan.planning.victims import leaving
from servingplan.simulation.operated import Orders

NODE_SILENT = timedelta(seconds=50)
"""How long a node is not heard until its pods count as not ready: kube-controller-manager's default since 1.32
(--node-monitor-grace-period)."""

EVICTED_AFTER = NODE_SILENT + timedelta(minutes=5)
"""When the pods of a lost node are replaced: the default toleration of not-ready nodes is 300 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One replica. start: how long it takes. node: None where no node is left for it.

    ends: when it is gone, once it was removed. lost: when its node was.
    """

    name: str
    created: datetime
    start: Stages
    node: str | None
    draining: Draining | None = None
    ends: datetime | None = None
    lost: datetime | None = None

    @property
    def ready_at(self) -> datetime:
        """When it is verified, if it gets that far."""
        return self.created + self.start.total

    def serves(self, now: datetime) -> bool:
        """Whether it takes new requests."""
        stays = self.ends is None and self.lost is None and self.draining is None
        return stays and self.node is not None and self.ready_at <= now

    def answers(self, now: datetime) -> bool:
        """Whether its engine can be asked: it is ready, and its node is there."""
        return self._stage(now)[0] is Stage.READY and self.lost is None

    def replica(self, now: datetime) -> Replica:
        """As a look at the cluster finds it."""
        stage, trouble = self._stage(now)
        return Replica(
            name=self.name,
            stage=stage,
            since=self.created,
            node=self.node,
            trouble=trouble,
            milestones=self._milestones(now),
            draining=self.draining,
        )

    def next_change(self, now: datetime) -> datetime | None:
        """When it is further than now, by time alone."""
        instants = [self.ends] if self.ends is not None else []
        if self.lost is not None:
            instants += [self.lost + NODE_SILENT, self.lost + EVICTED_AFTER]
        elif self.node is not None:
            instants += self._passes()
        return min((instant for instant in instants if instant > now), default=None)

    def _passes(self) -> tuple[datetime, datetime, datetime]:
        """When it has a node, when its containers run, when it is verified."""
        scheduled = self.created + self.start.scheduling
        return scheduled, scheduled + self.start.pulling, self.ready_at

    def _stage(self, now: datetime) -> tuple[Stage, Trouble | None]:
        if self.ends is not None:
            return Stage.TERMINATING, None
        if self.node is None:
            return Stage.SCHEDULING, Trouble(reason=Reason.UNSCHEDULABLE, message="no node is left")
        passed = sum(instant <= now for instant in self._until_lost())
        stage = (Stage.SCHEDULING, Stage.PULLING, Stage.ENGINE, Stage.READY)[passed]
        if self.lost is None or now < self.lost + NODE_SILENT:
            return stage, None
        trouble = Trouble(reason=Reason.NODE_NOT_READY, message=f"node {self.node} is not ready")
        return (Stage.ENGINE if stage is Stage.READY else stage), trouble

    def _until_lost(self) -> tuple[datetime, ...]:
        return tuple(each for each in self._passes() if self.lost is None or each <= self.lost)

    def _milestones(self, now: datetime) -> Milestones:
        if self.node is None:
            return Milestones()
        known = [instant if instant <= now else None for instant in self._passes()]
        if self.lost is not None:
            known = [instant if instant is not None and instant <= self.lost else None for instant in known]
        return Milestones(scheduled=known[0], started=known[1], ready=known[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """The replicas of one plan. current: how many are wanted; None before there is a target.

    start: how long what is created from now on takes. grace: how long a removed one takes to be gone. nodes: their
    names; replicas go where the fewest are. made: how many were ever created.
    """

    start: Stages
    grace: timedelta = timedelta(0)
    nodes: tuple[str, ...] = ("node-1",)
    current: int | None = None
    pods: tuple[Pod, ...] = field(default=())
    made: int = 0

    def at(self, now: datetime) -> Pods:
        """As time alone has changed them until `now`: what was removed is gone, what was lost is replaced."""
        evictions = {pod.lost + EVICTED_AFTER for pod in self.pods if pod.lost is not None}
        found = self
        for instant in sorted(each for each in evictions if each <= now):
            kept = tuple(pod for pod in found.pods if pod.lost is None or pod.lost + EVICTED_AFTER > instant)
            found = replace(found, pods=kept)._filled(instant)
        return replace(found, pods=tuple(pod for pod in found.pods if pod.ends is None or pod.ends > now))

    def carried_out(self, orders: Orders, now: datetime) -> Pods:
        """With marks and replicas as they were ordered at `now`."""
        marks = {mark.replica.name: mark.draining for mark in orders.marks}
        found = self.at(now)
        pods = tuple(replace(pod, draining=marks.get(pod.name, pod.draining)) for pod in found.pods)
        found = replace(found, pods=pods)
        return found if orders.replicas is None else found.scaled(orders.replicas, now)

    def scaled(self, replicas: int, now: datetime) -> Pods:
        """Set to so many, as a Deployment does it: what is missing is created, what is too many removed."""
        found = replace(self.at(now), current=replicas)
        gone = {each.name for each in leaving(found._seen(now, current=None), replicas, {})}
        ends = now + self.grace
        pods = tuple(replace(pod, ends=ends) if pod.name in gone else pod for pod in found.pods)
        return replace(found, pods=pods).at(now)._filled(now)

    def observed(self, now: datetime, heard: Heard | None = None) -> Observation:
        """What a look at the cluster finds at `now`; heard: what the engines say."""
        found = self.at(now)
        return replace(found._seen(now, current=found.current), heard=heard)

    def next_change(self, now: datetime) -> datetime | None:
        """When time alone changes something; None where it does not."""
        instants = [instant for pod in self.pods if (instant := pod.next_change(now)) is not None]
        return min(instants, default=None)

    def serving(self, now: datetime) -> tuple[str, ...]:
        """The names of those that take new requests."""
        return tuple(pod.name for pod in self.at(now).pods if pod.serves(now))

    def answering(self, now: datetime) -> tuple[Pod, ...]:
        """Those whose engines can be asked."""
        return tuple(pod for pod in self.at(now).pods if pod.answers(now))

    def without_node(self, node: str, now: datetime) -> Pods:
        """The same after a node was lost at `now`: nothing on it answers, and after `EVICTED_AFTER` it is replaced."""
        found = self.at(now)
        pods = tuple(replace(pod, lost=now) if pod.node == node and pod.lost is None else pod for pod in found.pods)
        return replace(found, pods=pods, nodes=tuple(each for each in found.nodes if each != node))

    def _seen(self, now: datetime, *, current: int | None) -> Observation:
        replicas = tuple(pod.replica(now) for pod in self.pods)
        ready = sum(each.stage is Stage.READY for each in replicas)
        return Observation(current=current, ready=ready, available=ready, replicas=replicas)

    def _filled(self, now: datetime) -> Pods:
        """With what is missing created at `now`, each where the fewest are."""
        found = self
        active = sum(pod.ends is None for pod in self.pods)
        for _ in range((self.current or 0) - active):
            found = found._with_one_more(now)
        return found

    def _with_one_more(self, now: datetime) -> Pods:
        on = Counter(pod.node for pod in self.pods if pod.ends is None)
        node = min(self.nodes, key=lambda name: (on[name], name), default=None)
        pod = Pod(name=f"replica-{self.made + 1:05}", created=now, start=self.start, node=node)
        return replace(self, pods=(*self.pods, pod), made=self.made + 1)
