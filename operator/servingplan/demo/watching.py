"""What the cluster shows at an instant: the plan's status, its pods by stage, events.

In: a `Link`. Out: a `Snapshot` of plain values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.controller.clock import Clock
from servingplan.controller.events import EVENTS_API
from servingplan.controller.pods import replicas
from servingplan.demo.link import Link
from servingplan.planning.observation import Stage
from servingplan.planning.plan import Plan
from servingplan.rendering.stated import StatedCondition, stated_conditions
from servingplan.rendering.times import parse_wire_time

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEvent:
    """One event about the plan. time: real. warning: somebody should look at it."""

    identity: str
    time: datetime
    reason: str
    note: str
    warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cluster at an instant of the demo clock. document: the plan, with its status."""

    time: datetime
    document: Json
    stages: Mapping[Stage, int]
    events: Sequence[SeenEvent]

    @property
    def status(self) -> Json:
        """The plan's status; empty before the operator wrote one."""
        status: Json = self.document.get("status") or {}
        return status

    @property
    def conditions(self) -> tuple[StatedCondition, ...]:
        """The plan's conditions."""
        return stated_conditions(self.status)

    @property
    def ready(self) -> int:
        """Replicas that serve."""
        return self.stages.get(Stage.READY, 0)


def look(link: Link, plan: Plan, clock: Clock) -> Snapshot:
    """Read what there is now. The time is that of the end, so that nothing looks earlier than it was."""
    document = link.find(API_VERSION, KIND, plan.name, plan.namespace) or {}
    pods = link.items("v1", "Pod", plan.namespace)
    events = link.items(EVENTS_API, "Event", plan.namespace)
    return Snapshot(
        time=clock.now(),
        document=document,
        stages=Counter(found.stage for found in replicas(pods, clock)),
        events=tuple(sorted((_event(e) for e in events if _is_about(e, plan)), key=lambda event: event.time)),
    )


def _is_about(event: Json, plan: Plan) -> bool:
    regarding = event.get("regarding") or {}
    return (regarding.get("kind"), regarding.get("name")) == (KIND, plan.name)


def _event(event: Json) -> SeenEvent:
    written = event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return SeenEvent(
        identity=event["metadata"]["name"],
        time=parse_wire_time(written),
        reason=event.get("reason", ""),
        note=str(event.get("note", "")),
        warning=event.get("type") == "Warning",
    )
