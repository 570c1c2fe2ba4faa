"""Situations for tests: what a reconcile found out, and days of them with the real decision, conditions and status.

`Day` is a small operator without a cluster: it looks, decides, sets replicas and keeps a status, as the real one does.
Pods come up and die when the test says so; nothing in it holds a rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from planning.loop import berlin
from servingplan.errors import Problem
from servingplan.planning.decision import Decision, decide
from servingplan.planning.observation import History, Observation, Replica, Scale, Stage, Trouble
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.conditions import conditions
from servingplan.rendering.situation import Condition, Situation
from servingplan.rendering.status import history_from_wire, render_status, same_meaning
from support.plans import a_plan

TARGET = "Deployment llm/support-chat"
MINUTE = timedelta(minutes=1)


def pods(ready: int, *, node: str | None = None, **stages: int) -> tuple[Replica, ...]:
    """Replicas by stage: ``pods(2, engine=3)``; ready ones on a node each, or all on `node`."""
    since = berlin("2026-12-01T07:48")
    found = [Replica(name=f"chat-{i}", stage=Stage.READY, since=since, node=node or f"node-{i}") for i in range(ready)]
    for stage, count in stages.items():
        found += [Replica(name=f"chat-{stage}-{i}", stage=Stage(stage), since=since) for i in range(count)]
    return tuple(found)


def in_trouble(reason: Reason, message: str, stage: Stage = Stage.SCHEDULING) -> Replica:
    """A replica that does not come up."""
    trouble = Trouble(reason=reason, message=message)
    return Replica(name="chat-x", stage=stage, since=berlin("2026-12-01T07:48"), trouble=trouble)


def an_observation(replicas: Sequence[Replica] = (), **changes: Any) -> Observation:
    """A target whose counts are those of its replicas."""
    ready = sum(replica.stage is Stage.READY for replica in replicas)
    observation = Observation(current=len(replicas), ready=ready, available=ready, replicas=tuple(replicas))
    return replace(observation, **changes)


def a_situation(
    at: str = "2026-12-01T12:00",
    *,
    plan: Plan | None = None,
    observation: Observation | None = None,
    history: History | None = None,
    **changes: Any,
) -> Situation:
    """What was found out at an instant of Berlin's clock: the worked example at noon, five ready on five nodes."""
    plan = plan or a_plan()
    observation = observation or an_observation(pods(5))
    history = history or History()
    situation = Situation(
        generation=7,
        now=berlin(at),
        plan=plan,
        decision=decide(plan, observation, history, berlin(at)),
        observation=observation,
        found=observation.current,
        target_name=TARGET,
        begun=history.ramp,
    )
    return replace(situation, **changes)


def an_invalid_situation(*problems: Problem, **changes: Any) -> Situation:
    """A plan that does not resolve."""
    problem = Problem(path="spec.schedule.timeZone", reason="UnknownTimeZone", message="Europe/Berln is no time zone")
    situation = Situation(generation=8, now=berlin("2026-12-01T12:00"), plan=None, problems=problems or (problem,))
    return replace(situation, **changes)


def condition(situation: Situation, type_: str) -> Condition | None:
    """The condition of a type, None where it is not present."""
    return next((found for found in conditions(situation) if found.type == type_), None)


@dataclass(slots=True)
class Pod:
    """A replica that is ready from an instant on."""

    name: str
    ready_at: datetime
    trouble: Trouble | None = None


@dataclass(kw_only=True)
class Day:
    """An operator that looks, decides, sets replicas and keeps a status; `start_time` is how long replicas take."""

    plan: Plan
    now: datetime
    start_time: timedelta = 11 * MINUTE
    status: dict[str, Any] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    generation: int = 1
    made: int = 0
    wakes_at: datetime | None = None
    written: int = 0
    decision: Decision | None = None

    def add_pods(self, count: int, *, ready_at: datetime | None = None) -> None:
        """Start replicas."""
        for _ in range(count):
            self.made += 1
            self.pods.append(Pod(f"chat-{self.made}", ready_at or self.now + self.start_time))

    def kill(self, index: int) -> None:
        """A pod dies; its successor starts at once."""
        if self.pods:
            del self.pods[index % len(self.pods)]
            self.add_pods(1)

    def edit(self, **changes: Any) -> None:
        """Edit the plan."""
        self.plan, self.generation = replace(self.plan, **changes), self.generation + 1

    def look(self) -> Mapping[str, Any]:
        """One reconcile now; the status afterwards."""
        new = self._status(self._act())
        if not same_meaning(new, self.status):
            self.written += 1
        self.status = new
        return new

    def run(self, until: datetime) -> None:
        """Look now, at every wake-up and whenever a pod becomes ready, until an instant."""
        while True:
            self.look()
            assert self.wakes_at is not None
            coming = [pod.ready_at for pod in self.pods if pod.ready_at > self.now]
            following = min(self.wakes_at, *coming, until)
            assert following > self.now or following == until
            self.now = following
            if self.now >= until:
                self.look()
                return

    def condition(self, type_: str) -> Mapping[str, Any]:
        """A condition of the status; empty where it is not present."""
        return next((c for c in self.status.get("conditions", ()) if c["type"] == type_), {})

    def said(self, type_: str) -> str:
        """``True NoRampDue``: status and reason of a condition."""
        found = self.condition(type_)
        return f"{found['status']} {found['reason']}" if found else "absent"

    # ---- inside ----

    def _act(self) -> tuple[Situation, Scale | None]:
        before, history = len(self.pods), history_from_wire(self.status)
        decision = decide(self.plan, self._observation(), history, self.now)
        scale = history.last_scale
        if decision.desired != before and not self.plan.suspend:
            scale = Scale(time=self.now, before=before, after=decision.desired, because=decision.because)
            del self.pods[decision.desired :]
            self.add_pods(decision.desired - before)
        self.decision, self.wakes_at = decision, decision.next_change_at
        situation = Situation(
            generation=self.generation,
            now=self.now,
            plan=self.plan,
            decision=decision,
            observation=self._observation(),
            found=before,
            target_name=TARGET,
            begun=history.ramp,
            previous={c["type"]: c for c in self.status.get("conditions", ())},
        )
        return situation, scale

    def _observation(self) -> Observation:
        replicas = [
            Replica(
                name=pod.name,
                stage=Stage.READY if pod.ready_at <= self.now else Stage.ENGINE,
                since=pod.ready_at - self.start_time,
                node=pod.name,
                trouble=pod.trouble if pod.ready_at > self.now else None,
            )
            for pod in self.pods
        ]
        return an_observation(replicas)

    def _status(self, acted: tuple[Situation, Scale | None]) -> dict[str, Any]:
        situation, scale = acted
        return render_status(situation, self.status, last_scale=scale)


def a_day(at: str = "2026-12-01T07:00", *, running: int = 2, plan: Plan | None = None, **changes: Any) -> Day:
    """The worked example from an instant of Berlin's clock on, with replicas that have been ready for long."""
    day = Day(plan=plan or a_plan(), now=berlin(at), **changes)
    day.add_pods(running, ready_at=day.now - 60 * MINUTE)
    return day
