"""What the author of a cron trigger meant: from each start to the end that belongs to it.

In: a trigger. Out: its windows as wall times, and the intervals they cover, by this project's rules for clock changes
(`planning.calendar`). A window ends when the wall shows the end's time next, whatever day that is, where that is what
`end` says for at least one window: ``0 22 * * 1-5`` to ``0 6 * * 1-5`` means every night, Friday's too. Else it ends at
the first end that fires, as in Monday's start and Friday's end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from servingplan.migrating.keda_cron import CronTrigger
from servingplan.migrating.robfig import Schedule
from servingplan.migrating.spans import union
from servingplan.planning.calendar import Edge, Interval, dates_between, local_date, resolve_wall

LONGEST = timedelta(days=31)
"""A window that is meant to last longer is no window."""

SURVEY = timedelta(days=366)
"""So many days show what an expression says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WallWindow:
    """From one wall time to another one, naive, of the trigger's zone."""

    start: datetime
    end: datetime


def wall_windows(trigger: CronTrigger, first: date, last: date) -> tuple[WallWindow, ...]:
    """The windows that start on the dates from `first` to `last`, in order; those without an end are left out."""
    starts = _walls(trigger.start, first, last)
    natural = ends_by_the_clock(trigger, first)
    ends = [] if natural else _walls(trigger.end, first, last + LONGEST)
    found: list[WallWindow] = []
    position = 0
    for start in starts:
        if natural:
            found.append(WallWindow(start=start, end=_next_on_the_clock(trigger.end, start)))
            continue
        while position < len(ends) and ends[position] <= start:
            position += 1
        if position < len(ends) and ends[position] - start <= LONGEST:
            found.append(WallWindow(start=start, end=ends[position]))
    return tuple(found)


def ends_by_the_clock(trigger: CronTrigger, first: date) -> bool:
    """Whether at least one window ends when the wall shows the end's time next."""
    starts = _walls(trigger.start, first, first + SURVEY)
    return any(trigger.end.falls_on(_next_on_the_clock(trigger.end, start).date()) for start in starts)


def intended_intervals(trigger: CronTrigger, start: datetime, end: datetime) -> tuple[Interval, ...]:
    """The intervals of [start, end) that the trigger was meant to cover, in order, apart from each other."""
    first, last = local_date(start, trigger.zone) - LONGEST, local_date(end, trigger.zone)
    found = [
        Interval(
            start=max(start, resolve_wall(window.start, trigger.zone, Edge.START)),
            end=min(end, resolve_wall(window.end, trigger.zone, Edge.END)),
        )
        for window in wall_windows(trigger, first, last)
    ]
    return union(found)


def clock_times(schedule: Schedule) -> tuple[time, ...]:
    """The times of day at which an expression fires, in order."""
    return tuple(time(hour, minute) for hour in sorted(schedule.hours) for minute in sorted(schedule.minutes))


def _walls(schedule: Schedule, first: date, last: date) -> list[datetime]:
    times = clock_times(schedule)
    days = (day for day in dates_between(first, last) if schedule.falls_on(day))
    return [datetime.combine(day, at) for day in days for at in times]


def _next_on_the_clock(schedule: Schedule, after: datetime) -> datetime:
    times = clock_times(schedule)
    today = next((at for at in times if at > after.time()), None)
    if today is not None:
        return datetime.combine(after.date(), today)
    return datetime.combine(after.date() + timedelta(days=1), times[0])
