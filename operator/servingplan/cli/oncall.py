"""On-call overrides: one more override on a live plan, and what it will do.

In: the plan as the cluster shows it, and what the person asks for. Out: the override as the API has it, and an
`Effect`: when its replicas are ready, whether it wins, whether a bound limits it. No I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.errors import UsageError
from servingplan.planning.calendar import Edge, resolve_wall
from servingplan.planning.demand import requirements
from servingplan.planning.plan import Plan
from servingplan.planning.units import format_duration
from servingplan.rendering.times import local_time

PREFIX = "oncall-"
_WALL = "%Y-%m-%dT%H:%M"
_MINUTE = timedelta(minutes=1)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an override will do.

    start, end: its interval. asked_at, ready_at: when its replicas are asked for and ready. warnings: sentences
    about what a person would not expect.
    """

    start: datetime
    end: datetime
    replicas: int
    asked_at: datetime
    ready_at: datetime
    warnings: Sequence[str]


def override_entry(
    *, start: datetime, end: datetime, zone: ZoneInfo, replicas: int | None, rate: float | None, taken: Collection[str]
) -> Json:
    """The override for [start, end), to the minute and never shorter than asked. Exactly one level is not None."""
    first = start.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
    last = (end.astimezone(zone).replace(tzinfo=None) + _MINUTE - timedelta(microseconds=1)).replace(
        second=0, microsecond=0
    )
    if last <= first:
        raise UsageError(
            f"the override would end ({last:{_WALL}}) before it starts ({first:{_WALL}}, {zone.key}): "
            "give a later --until, or a longer --for"
        )
    level: Json = {"replicas": replicas} if replicas is not None else {"requestsPerSecond": rate}
    return {"name": _free_name(first, taken), "start": first.strftime(_WALL), "end": last.strftime(_WALL), **level}


def _free_name(start: datetime, taken: Collection[str]) -> str:
    name = f"{PREFIX}{start:%Y%m%d-%H%M}"
    candidates = [name, *(f"{name}-{i}" for i in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


def interval(override: Json, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The instants of an override of the API."""
    walls = [datetime.strptime(override[key], _WALL) for key in ("start", "end")]  # noqa: DTZ007  wall times
    return resolve_wall(walls[0], zone, Edge.START), resolve_wall(walls[1], zone, Edge.END)


def is_over(override: Json, zone: ZoneInfo, now: datetime) -> bool:
    """Whether an override has ended."""
    return interval(override, zone)[1] <= now


def effect(plan: Plan, name: str, current: int, now: datetime) -> Effect:
    """What the override `name` of the (changed) plan does, where `current` replicas run now."""
    override = next(override for override in plan.overrides if override.name == name)
    start = resolve_wall(override.start, plan.zone, Edge.START)
    end = resolve_wall(override.end, plan.zone, Edge.END)
    first = max(start, now)
    required = requirements(plan, first, end)
    met = required.at(first)
    lead = plan.lead.effective
    rises = met.replicas > current
    asked_at = max(now, start - lead) if rises else first
    ready_at = asked_at + lead if rises else first
    warnings = []
    if met.source.name != name:
        warnings.append(f"{met.source} counts instead: among active overrides the one that starts last wins")
    elif met.unbounded > met.replicas:
        warnings.append(f"spec.bounds.maxReplicas limits it to {met.replicas} of {met.unbounded}")
    elif met.unbounded < met.replicas:
        warnings.append(f"spec.bounds.minReplicas keeps {met.replicas}, not {met.unbounded}")
    if ready_at > first:
        warnings.append(_too_late(plan, ready_at, first, lead))
    if plan.suspend:
        warnings.append("the plan is suspended: nothing is written until it is resumed")
    return Effect(
        start=start, end=end, replicas=met.replicas, asked_at=asked_at, ready_at=ready_at, warnings=tuple(warnings)
    )


def _too_late(plan: Plan, ready_at: datetime, start: datetime, lead: timedelta) -> str:
    late = timedelta(minutes=-(-(ready_at - start) // _MINUTE))
    return (
        f"the rise comes {format_duration(late)} later than asked: replicas take {format_duration(lead)} to start, "
        f"so they are ready at about {local_time(ready_at, plan.zone)}"
    )
