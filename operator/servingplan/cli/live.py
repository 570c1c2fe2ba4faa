"""Plans as the cluster shows them, in the words of people: states, conditions, the next change.

In: plain JSON of plans. Out: values for tables. Reads only what the API declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from servingplan.rendering.stated import StatedCondition, stated_conditions
from servingplan.rendering.times import parse_wire_time

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """The next change of a plan's replicas."""

    time: datetime
    replicas: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """A plan of the cluster; None where the operator has not said yet."""

    key: str
    zone: ZoneInfo
    suspended: bool
    window: str
    desired: int | None
    ready: int | None
    conditions: Sequence[StatedCondition]
    upcoming: Upcoming | None
    seen: bool
    demo_clock: str

    def condition(self, name: str) -> StatedCondition | None:
        """The condition of that type."""
        return next((c for c in self.conditions if c.type == name), None)

    @property
    def state(self) -> str:
        """``Ready``, or why not, in one word or two."""
        ready = self.condition("Ready")
        if ready is None:
            return "not seen by an operator"
        word = "Ready" if ready.good else "not ready" if ready.status == "False" else "unknown"
        return word if ready.good and ready.reason == "AsPlanned" else f"{word}: {ready.reason}"

    @property
    def not_good(self) -> Sequence[StatedCondition]:
        """The conditions that somebody should look at."""
        return tuple(condition for condition in self.conditions if not condition.good)


def live_plan(plan: Json) -> LivePlan:
    """A plan as the cluster shows it, with or without a status."""
    metadata, spec, status = plan["metadata"], plan["spec"], plan.get("status") or {}
    generation = metadata.get("generation")
    return LivePlan(
        key=f"{metadata['namespace']}/{metadata['name']}",
        zone=_zone(spec["schedule"]["timeZone"]),
        suspended=bool(spec.get("suspend", False)),
        window=status.get("window", ""),
        desired=status.get("desiredReplicas"),
        ready=status.get("readyReplicas"),
        conditions=stated_conditions(status),
        upcoming=_upcoming(status.get("nextChange")),
        seen=generation is None or status.get("observedGeneration") == generation,
        demo_clock=status.get("demoClock", ""),
    )


def _upcoming(wire: Json | None) -> Upcoming | None:
    if wire is None:
        return None
    return Upcoming(time=parse_wire_time(wire["time"]), replicas=wire["replicas"], because=wire["because"])


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        # The plan's own condition says that the zone is wrong; what is known is shown in UTC.
        return ZoneInfo("UTC")
