"""A plan that does what a ScaledObject's cron triggers were meant to do.

In: a `ScaledObject` and what it cannot say (capacity, reserve, start time). Out: a ServingPlan as plain JSON, which
``api.resolve`` takes, and notes on what to do and what is not exactly the same. Raises InputError for what a plan
cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.api import v1alpha1
from servingplan.errors import InputError, Problem
from servingplan.migrating.intended import SURVEY, WallWindow, wall_windows
from servingplan.migrating.keda_cron import CronTrigger
from servingplan.migrating.robfig import Schedule
from servingplan.migrating.scaled_object import API_VERSION, DEFAULT_MAXIMUM, KIND, ScaledObject
from servingplan.planning.calendar import MAX_CRON_DURATION, dates_between
from servingplan.planning.plan import WEEKDAYS
from servingplan.planning.units import format_duration, rate_number

_DAY = timedelta(days=1)
_MIDNIGHT = time()

Document = dict[str, Any]


class Onto(StrEnum):
    """What the plan scales: the workload, and KEDA goes; or the ScaledObject's minimum, and KEDA stays."""

    WORKLOAD = "workload"
    SCALED_OBJECT = "scaled-object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a ScaledObject cannot say. onto: None where its other triggers decide that.

    capacity: requests/s of one replica, None for stated totals. reserve: replicas of each level that are not needed for
    the demand; counts only with a capacity.
    """

    name: str
    onto: Onto | None
    capacity: Decimal | None
    reserve: int
    start_time: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A plan as plain JSON, and what to know about it."""

    plan: Document
    notes: Sequence[str]


def adopt(found: ScaledObject, wishes: Wishes, today: date) -> Adopted:
    """The plan. today: where the year begins that shows on which days the triggers fire."""
    if not found.crons:
        raise _cannot("spec.triggers", "has no trigger of type cron: there is no schedule to take over")
    zone = found.crons[0].zone
    notes: list[str] = []
    windows = [
        {**when, **_level(found, trigger, wishes, notes)}
        for trigger in found.crons
        for when in _windows(trigger, zone, today, notes)
    ]
    onto = wishes.onto or (Onto.SCALED_OBJECT if found.others else Onto.WORKLOAD)
    plan = {
        "apiVersion": v1alpha1.API_VERSION,
        "kind": v1alpha1.KIND,
        "metadata": {"name": wishes.name, "namespace": found.namespace},
        "spec": {
            "targetRef": _target(found, onto),
            **_capacity(found, wishes),
            "schedule": {
                "timeZone": zone.key,
                "base": {"requestsPerSecond": _base(found, wishes)},
                "windows": windows,
            },
            "leadTime": {"declared": format_duration(wishes.start_time)},
            "bounds": {"minReplicas": _minimum(found, onto), "maxReplicas": _maximum(found)},
        },
    }
    return Adopted(plan=plan, notes=(*dict.fromkeys(notes), *_next_steps(found, onto, wishes)))


# ---- levels -----------------------------------------------------------------------------------------------


def _level(found: ScaledObject, trigger: CronTrigger, wishes: Wishes, notes: list[str]) -> Document:
    replicas = found.bounded(trigger.replicas)
    if replicas < trigger.replicas:
        notes.append(f"trigger {trigger.index} asks for {trigger.replicas}, of which maxReplicaCount allows {replicas}")
    if wishes.capacity is None:
        return {"replicas": replicas}
    if replicas <= wishes.reserve:
        notes.append(f"trigger {trigger.index} asks for {replicas}, which the reserve takes: stated as a total")
        return {"replicas": replicas}
    return {"requestsPerSecond": rate_number(wishes.capacity * (replicas - wishes.reserve))}


def _capacity(found: ScaledObject, wishes: Wishes) -> Document:
    """Without a capacity every level is a total, and what a replica serves decides nothing."""
    if wishes.capacity is None:
        return {"capacity": {"requestsPerSecond": 1}, "reserve": {"replicas": 0}}
    reserve: Document = {"replicas": wishes.reserve}
    if found.outside < wishes.reserve:
        reserve["quiet"] = found.outside
    return {"capacity": {"requestsPerSecond": rate_number(wishes.capacity)}, "reserve": reserve}


def _base(found: ScaledObject, wishes: Wishes) -> float | int:
    if wishes.capacity is None:
        return 0
    return rate_number(wishes.capacity * (found.outside - min(wishes.reserve, found.outside)))


def _minimum(found: ScaledObject, onto: Onto) -> int:
    return max(found.outside, 1) if onto is Onto.SCALED_OBJECT else found.outside


def _maximum(found: ScaledObject) -> int:
    """What is stated; of KEDA's default only what the triggers ask for."""
    levels = (*(found.bounded(trigger.replicas) for trigger in found.crons), found.outside)
    return found.maximum if found.others or found.maximum != DEFAULT_MAXIMUM else max(levels)


# ---- windows ----------------------------------------------------------------------------------------------


def _windows(trigger: CronTrigger, zone: ZoneInfo, today: date, notes: list[str]) -> Iterator[Document]:
    """The windows of a trigger, as days, start and end where every week is the same, else as cron and duration."""
    meant = wall_windows(trigger, today, today + SURVEY - _DAY)
    if not meant:
        raise _cannot(_path(trigger, "start"), "no window begins in a year: remove the trigger or correct start")
    shortest, longest = _shift(trigger, zone, today)
    if shortest != longest:
        notes.append(
            f"trigger {trigger.index} is in {trigger.zone.key}, whose clocks change apart from {zone.key}: its windows "
            f"are {format_duration(longest - shortest)} longer, so that they cover both"
        )
    shifted = [WallWindow(start=w.start + shortest, end=w.end + longest) for w in meant]
    found: list[Document] = []
    for (start, lasts), dates in sorted(_alike(shifted).items()):
        days = _weekly(dates, today + shortest // _DAY * _DAY)
        if days is not None:
            found += _weekly_windows(days, start, lasts)
        else:
            found.append(_dated_window(trigger, start, lasts, dates, moved=bool(shortest or longest)))
            notes.append(
                f"trigger {trigger.index} names dates: its windows last {format_duration(lasts)}, also where a clock "
                "change lies in them"
            )
    for number, window in enumerate(found):
        name = f"cron-{trigger.index}" if len(found) == 1 else f"cron-{trigger.index}-{number + 1}"
        yield {"name": name, **window}


def _alike(windows: Sequence[WallWindow]) -> dict[tuple[time, timedelta], list[date]]:
    """Dates of windows that begin at the same time of day and last as long."""
    found: dict[tuple[time, timedelta], list[date]] = {}
    for window in windows:
        found.setdefault((window.start.time(), window.end - window.start), []).append(window.start.date())
    return found


def _weekly(dates: Sequence[date], first: date) -> frozenset[int] | None:
    """The weekdays of the dates where these are all of them in the year, but at its edges."""
    days = frozenset(day.weekday() for day in dates)
    inner = dates_between(first + _DAY, first + SURVEY - 2 * _DAY)
    every = {day for day in inner if day.weekday() in days}
    return days if every <= set(dates) else None


def _weekly_windows(days: frozenset[int], start: time, lasts: timedelta) -> Iterator[Document]:
    """One window, or, where it lasts more than a day, one for each day that it touches."""
    begin = datetime.combine(date.min, start)
    end = begin + lasts
    if lasts <= _DAY:
        yield _window(days, start, end.time())
        return
    for later in range((end - datetime.combine(begin.date(), _MIDNIGHT)) // _DAY + 1):
        day = datetime.combine(begin.date() + later * _DAY, _MIDNIGHT)
        first, last = max(begin, day), min(end, day + _DAY)
        if first < last:
            yield _window(frozenset((d + later) % 7 for d in days), first.time(), last.time())


def _window(days: frozenset[int], start: time, end: time) -> Document:
    return {"days": [WEEKDAYS[day] for day in sorted(days)], "start": f"{start:%H:%M}", "end": f"{end:%H:%M}"}


def _dated_window(
    trigger: CronTrigger, start: time, lasts: timedelta, dates: Sequence[date], *, moved: bool
) -> Document:
    """A window by cron: only where its fires are all of the trigger's, in the plan's own zone."""
    named = [day for day in dates_between(dates[0], dates[-1]) if trigger.start.falls_on(day)]
    if moved or named != sorted(set(dates)):
        raise _cannot(
            _path(trigger, "start"),
            "names dates in another zone than the first trigger, or windows of different lengths, which no window of a "
            "plan can say: write it with one zone and one length, or leave it out and state an override",
        )
    if lasts > MAX_CRON_DURATION:
        most = format_duration(MAX_CRON_DURATION)
        raise _cannot(_path(trigger, "end"), f"a window by date lasts at most {most}: divide it, or state an override")
    return {"cron": f"{start.minute} {start.hour} {_dates(trigger.start)}", "duration": format_duration(lasts)}


def _dates(schedule: Schedule) -> str:
    """Day of the month, month and weekday as lists, read alike everywhere. A star beside a list means "and"."""
    by_date, by_weekday = _list(schedule.dates, 31), _list(schedule.weekdays, 7)
    if not (schedule.any_date or schedule.any_weekday) and "*" in {by_date, by_weekday}:
        by_date = by_weekday = "*"
    return f"{by_date} {_list(schedule.months, 12)} {by_weekday}"


def _list(values: frozenset[int], count: int) -> str:
    return "*" if len(values) == count else ",".join(str(value) for value in sorted(values))


def _shift(trigger: CronTrigger, zone: ZoneInfo, today: date) -> tuple[timedelta, timedelta]:
    """How far the plan's wall is ahead of the trigger's, at least and at most, in the year."""
    noons = [datetime.combine(day, time(12), tzinfo=UTC) for day in dates_between(today, today + SURVEY)]
    ahead = {_offset(noon, zone) - _offset(noon, trigger.zone) for noon in noons}
    return min(ahead), max(ahead)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


# ---- target and words -------------------------------------------------------------------------------------


def _target(found: ScaledObject, onto: Onto) -> Document:
    if onto is Onto.SCALED_OBJECT:
        return {"apiVersion": API_VERSION, "kind": KIND, "name": found.name}
    return {"apiVersion": found.target.api_version, "kind": found.target.kind, "name": found.target.name}


def _next_steps(found: ScaledObject, onto: Onto, wishes: Wishes) -> Iterator[str]:
    lead = format_duration(wishes.start_time)
    yield (
        f"replicas are ready when a window starts, asked for {lead} (and a margin) earlier: where start was early for "
        "that, move it to when they are needed"
    )
    if wishes.capacity is None:
        yield (
            "levels are totals of replicas, and the capacity decides nothing; with --capacity and --reserve they "
            "become rates, which follow what you measure"
        )
    if onto is Onto.SCALED_OBJECT:
        indices = ", ".join(str(trigger.index) for trigger in found.crons)
        yield (
            f"the plan sets minReplicaCount of ScaledObject {found.name}: take triggers {indices} out of it before you "
            "apply the plan, and minReplicaCount out of what deploys it"
        )
        if not found.others:
            yield "KEDA takes no ScaledObject without triggers: add one that measures, or use --onto workload"
    else:
        yield (
            f"delete ScaledObject {found.name} before you apply the plan; its replicas stay as they are, unless "
            "restoreToOriginalReplicaCount says otherwise"
        )
        if found.others:
            others = ", ".join(dict.fromkeys(found.others))
            yield f"nothing takes over {others}: state feedback, or use --onto scaled-object"


def _path(trigger: CronTrigger, key: str) -> str:
    return f"spec.triggers[{trigger.index}].metadata.{key}"


def _cannot(path: str, message: str) -> InputError:
    return InputError(Problem(path=path, reason="CannotAdopt", message=message))
