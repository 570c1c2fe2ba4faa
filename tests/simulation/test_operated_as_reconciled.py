"""The simulated operator beside the operator's own reconcile: the same orders, and a memory that status keeps."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from planning.loop import berlin
from servingplan.api.resolve import resolve
from servingplan.controller.drain import KUBERNETES_GRACE
from servingplan.controller.pods import TIMESTAMP_GRAIN, replicas
from servingplan.planning.lead import Stages
from servingplan.planning.observation import Replica, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, NoSignals
from servingplan.rendering.metadata import (
    DELETION_COST_ANNOTATION,
    DRAINING_ANNOTATION,
    FIRST_TO_GO,
    PLAN_LABEL,
    SERVING_LABEL,
)
from servingplan.rendering.status import history_from_wire
from servingplan.rendering.times import wire_time
from servingplan.simulation.operated import Operated
from servingplan.simulation.pods import Pods
from support.signals import some_signals, steady
from support.small_operator import ENGINE, KEY, TARGET, SmallOperator
from support.specs import document, scheduled, targeting

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
SILENT = NoSignals(reason=Reason.METRICS_UNREACHABLE, message="no answer")


def pod_of(found: Replica) -> dict[str, Any]:
    """A replica as its pod; timestamps are cut to seconds, and read as the end of that second."""
    passed = found.milestones

    def since(instant: datetime | None) -> dict[str, str]:
        return {} if instant is None else {"status": "True", "lastTransitionTime": wire_time(instant - TIMESTAMP_GRAIN)}

    annotations = {}
    if found.draining is not None:
        annotations[DRAINING_ANNOTATION] = wire_time(found.draining.since)
        if found.draining.released:
            annotations[DELETION_COST_ANNOTATION] = FIRST_TO_GO
    running = {} if passed.started is None else {"running": {"startedAt": wire_time(passed.started - TIMESTAMP_GRAIN)}}
    labels = {PLAN_LABEL: "support-chat"} | ({} if found.draining is not None else {SERVING_LABEL: "true"})
    conditions = [
        {"type": type_, **since(instant)}
        for type_, instant in (("PodScheduled", passed.scheduled), ("Ready", passed.ready))
        if instant is not None
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": found.name,
            "namespace": "llm",
            "creationTimestamp": wire_time(found.since),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"nodeName": found.node if passed.scheduled is not None else None},
        "status": {
            "conditions": conditions,
            "containerStatuses": [{"name": "engine", "state": running or {"waiting": {}}, "restartCount": 0}],
        },
    }


class Beside:
    """A plan that both operate: each look is one of either, at the same instant, of the same replicas.

    found: how many replicas of somebody's Deployment there are, which the plan takes over; None: it owns an engine.
    """

    def __init__(self, start: datetime, *, found: int | None = None, **changes: Any) -> None:
        self.operator, self.now = SmallOperator(), start
        self.ref = ENGINE if found is None else TARGET
        self.pods = Pods(start=Stages(scheduling=2 * SECOND, engine=9 * MINUTE))
        if found is not None:
            changes |= targeting()
            self.operator.run_target(found)
            self.pods = self.pods.scaled(found, start - 60 * MINUTE)
        self.plan: Plan = resolve(document(**changes), {})
        self.operated = Operated(self.plan, drain_timeout=KUBERNETES_GRACE)
        self.operator.server.put(document(**changes))
        self.levels: list[int] = []

    async def look(self, heard: Heard) -> None:
        """Both look, and their memories and orders must be equal."""
        self.operator.clock.instant = self.now
        self._show()
        self.operator.observer.forget(KEY)  # pods of a named target may be half a minute old, by the machine's clock
        self.operator.poller.heard = lambda *_: heard  # type: ignore[method-assign]
        await self.operator.reconciler.reconcile(KEY)
        self.operated.step(self.pods.observed(self.now, heard), self.now)
        self.pods = self.pods.carried_out(self.operated.orders, self.now)
        if self.operated.orders.scaled is not None:
            self.levels.append(self.operated.orders.scaled.after)
        self._compare()

    def _show(self) -> None:
        """Let the cluster show the replicas as they are now."""
        server = self.operator.server
        found = {each.name: pod_of(each) for each in self._replicas()}
        for ref in [ref for ref in server.objects if ref.kind == "Pod"]:
            if ref.name not in found:
                del server.objects[ref]
        for manifest in found.values():
            server.put(manifest)
        if self.ref in server.objects:
            server.make_ready(self.ref, self.pods.observed(self.now).ready)

    def _replicas(self) -> list[Replica]:
        return [each for each in self.pods.observed(self.now).replicas if each.stage is not Stage.TERMINATING]

    def _compare(self) -> None:
        server = self.operator.server
        assert self.operator.replicas(self.ref) == self.pods.current, self.now
        before = history_from_wire(self.operator.status)
        rises = replace(before.rises, fingerprint="")
        assert replace(before, rises=rises) == self.operated.history, self.now
        live = replicas([one for ref, one in server.objects.items() if ref.kind == "Pod"], self.operator.clock)
        marks = {each.name: each.draining for each in live}
        # What is created now is no pod yet, and what is removed now still is one.
        both = {each.name: each.draining for each in self._replicas() if each.name in marks}
        assert both == {name: marks[name] for name in both}, self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What engines say for a while: so many arrivals, and in flight in each replica in turn. rate None: nothing."""

    rate: float | None
    in_flight: tuple[float, ...]

    @classmethod
    def drawn(cls, draw: random.Random) -> Said:
        """Silence, calm, or more arrivals than planned; busy or idle."""
        rate = None if draw.random() < 0.1 else draw.choice([1.0, 15.0, 17.0, 24.0, 30.0])
        return cls(rate=rate, in_flight=tuple(draw.choice([0.0, 0.0, 3.0]) for _ in range(5)))

    def heard(self, beside: Beside) -> Heard:
        """What is heard of it now."""
        ready = [each.name for each in beside.pods.observed(beside.now).in_stage(Stage.READY)]
        if not ready or self.rate is None:
            return SILENT
        return some_signals(
            beside.now,
            in_flight=dict(zip(ready, itertools.cycle(self.in_flight), strict=False)),
            arrivals_2m=steady(self.rate),
            arrivals_10m=steady(self.rate),
            first_heard=dict.fromkeys(ready, beside.now - 60 * MINUTE),
        )


LAUNCH = {"name": "launch", "start": "2026-12-01T12:00", "end": "2026-12-01T16:00", "requestsPerSecond": 28}
LISTENS = {"prometheus": {"source": "default"}, "maxExtra": 2}


@pytest.mark.parametrize(
    ("seed", "found", "feedback"),
    [
        pytest.param(0, None, LISTENS, id="an engine"),
        pytest.param(1, None, LISTENS, id="an engine again"),
        pytest.param(2, 2, LISTENS, id="a Deployment that is taken over"),
        pytest.param(3, None, None, id="by the schedule alone"),
    ],
)
async def test_whatever_happens_both_order_and_remember_the_same(
    seed: int, found: int | None, feedback: dict[str, Any] | None
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test's choice
    start, end = berlin("2026-12-01T07:00"), berlin("2026-12-01T23:00")
    beside = Beside(start, found=found, feedback=feedback, **scheduled(overrides=[LAUNCH]))
    said, changed_at = Said.drawn(draw), start
    while beside.now < end:
        if beside.now >= changed_at:
            said, changed_at = Said.drawn(draw), beside.now + draw.randint(1, 40) * MINUTE
            beside.pods = replace(beside.pods, start=Stages(engine=draw.choice([4, 9, 14, 40]) * MINUTE))
        await beside.look(said.heard(beside))
        drains = any(each.draining is not None for each in beside.pods.pods)
        known = [beside.operated.wake_at, beside.pods.next_change(beside.now), changed_at]
        soon = beside.now + (20 * SECOND if drains else 10 * MINUTE)
        following = max(min([soon, *(instant for instant in known if instant is not None)]), beside.now + SECOND)
        beside.now = following.replace(microsecond=0) + (SECOND if following.microsecond else timedelta())
    assert len(beside.levels) > 6
