"""The days of an outlook that are not ordinary: calendar dates, overrides, and clock changes.

In: an outlook. Out: rows of text: when, what, and what it means. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from servingplan.planning.calendar import offset_changes, override_interval
from servingplan.planning.plan import WEEKDAYS, Calendar, Level, Plan, Rate, TreatAs
from servingplan.planning.units import format_duration, format_rate
from servingplan.reporting.local import clock_time, dates_of, short_date
from servingplan.reporting.outlook import Outlook

DayRow = tuple[str, str, str]


def special_day_rows(outlook: Outlook) -> tuple[DayRow, ...]:
    """When, what, and what it means; in the order of time."""
    plan = outlook.plan
    days = dates_of(outlook.start, outlook.end, plan.zone)
    found = [row for day in days for row in (*_calendar_rows(plan, day), *_clock_rows(outlook, day))]
    found += _override_rows(outlook)
    return tuple((short_date(day), what, means) for day, what, means in sorted(found))


def _calendar_rows(plan: Plan, day: date) -> Iterator[tuple[date, str, str]]:
    for calendar in plan.calendars:
        if day in calendar.dates:
            yield day, f"calendar {calendar.name}", _treated(calendar)


def _treated(calendar: Calendar) -> str:
    treat_as = calendar.treat_as
    if isinstance(treat_as, Rate):
        return f"{format_rate(treat_as.requests_per_second)}/s all day"
    return "no windows start: base" if treat_as is TreatAs.BASE else f"like {WEEKDAYS[int(treat_as)]}"


def _override_rows(outlook: Outlook) -> Iterator[tuple[date, str, str]]:
    zone = outlook.plan.zone
    for override in outlook.plan.overrides:
        interval = override_interval(override, zone)
        if interval.start < outlook.end and outlook.start < interval.end:
            until = f"{short_date(interval.end.astimezone(zone).date())} {clock_time(interval.end, zone)}"
            means = f"{_level(override.level)} from {clock_time(interval.start, zone)} to {until}"
            yield interval.start.astimezone(zone).date(), f"override {override.name}", means


def _level(level: Level) -> str:
    if isinstance(level, Rate):
        return f"{format_rate(level.requests_per_second)}/s"
    return f"{level.replicas} replicas"


def _clock_rows(outlook: Outlook, day: date) -> Iterator[tuple[date, str, str]]:
    """A clock change on that date: the wall before it and after it."""
    zone = outlook.plan.zone
    for change in offset_changes(day, zone):
        if change.astimezone(zone).date() == day and outlook.start <= change < outlook.end:
            before = (change - timedelta(seconds=1)).astimezone(zone)
            ahead = (change.astimezone(zone).utcoffset() or timedelta()) - (before.utcoffset() or timedelta())
            yield day, "clock change", _moved(before + timedelta(seconds=1), change.astimezone(zone), ahead)


def _moved(before: datetime, after: datetime, ahead: timedelta) -> str:
    hours = timedelta(days=1) - ahead
    return f"{before:%H:%M} becomes {after:%H:%M}: the day lasts {format_duration(hours)}"
