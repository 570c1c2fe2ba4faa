"""What a cron trigger of KEDA does: it is active while its next end comes no later than its next start.

In: a trigger's two expressions and its zone. Out: the intervals in which it is active, exact to the minute, or to the
second where a fire is. The rule is that of KEDA's scaler (the same from 2.0 to 2.20), `robfig` says when both fire. It
remembers nothing: a start that is missed is no interval, and an end without a start opens one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from servingplan.migrating.robfig import DAY, HOUR, MINUTE, Schedule, next_fire
from servingplan.planning.calendar import Interval, dates_between, offset_changes

UNSTABLE = DAY + 2 * HOUR
"""So near to a clock change the next fire may depend on where the search begins: every minute is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronTrigger:
    """A trigger of type cron. index: its place in ``spec.triggers``."""

    index: int
    start: Schedule
    end: Schedule
    zone: ZoneInfo
    replicas: int


def is_active(trigger: CronTrigger, instant: int) -> bool:
    """Whether the trigger is active at an instant (Unix seconds)."""
    return _is_active(*_next_fires(trigger, instant))


def _is_active(start: int | None, end: int | None) -> bool:
    """The rule, given both next fires.

    What never fires has the year 1 as its next fire: a start that never comes is always active, an end that never
    comes never is, unless both never come.
    """
    if end is None:
        return start is None
    return start is None or end <= start


def _next_fires(trigger: CronTrigger, instant: int) -> tuple[int | None, int | None]:
    return next_fire(trigger.start, instant, trigger.zone), next_fire(trigger.end, instant, trigger.zone)


def active_intervals(trigger: CronTrigger, start: datetime, end: datetime) -> tuple[Interval, ...]:
    """The intervals of [start, end) in which the trigger is active, in order, apart from each other."""
    found: list[tuple[int, int]] = []
    for first, following in _active_steps(trigger, round(start.timestamp()), round(end.timestamp())):
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], following)
        else:
            found.append((first, following))
    return tuple(Interval(start=_moment(a), end=_moment(b)) for a, b in found)


def _active_steps(trigger: CronTrigger, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of [start, end) in which it is active, each so short that the answer cannot change in it."""
    changes = _changes(trigger.zone, start, end)
    instant = start
    while instant < end:
        fires = _next_fires(trigger, instant)
        following = min([end, *(fire for fire in fires if fire is not None)])
        near = next((change for change in changes if change + UNSTABLE > instant), end + UNSTABLE) - UNSTABLE
        following = min(following, near if near > instant else instant - instant % MINUTE + MINUTE)
        if _is_active(*fires):
            yield instant, following
        instant = following


def _changes(zone: ZoneInfo, start: int, end: int) -> list[int]:
    """The clock changes that matter on [start, end), in order."""
    first, last = (_moment(instant).date() for instant in (start - UNSTABLE, end + UNSTABLE))
    found = {change for day in dates_between(first, last) for change in offset_changes(day, zone)}
    return sorted(round(change.timestamp()) for change in found)


def _moment(instant: int) -> datetime:
    return datetime.fromtimestamp(instant, UTC)
