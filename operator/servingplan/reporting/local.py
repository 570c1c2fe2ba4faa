"""Instants as people read them: dates and times on a clock in the plan's zone, and spans of weekdays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from servingplan.planning.calendar import Edge, resolve_wall
from servingplan.planning.plan import WEEKDAYS

DASH, TIMES = "\u2013", "\u00d7"
"""The en dash of a span, and the sign before a count."""


def short_date(day: date) -> str:
    """``Tue 1 Dec``."""
    return f"{day:%a} {day.day} {day:%b}"


def date_span(first: date, last: date) -> str:
    """``1-4 Dec`` or ``28 Nov-3 Dec``, with en dashes."""
    same_month = (first.year, first.month) == (last.year, last.month)
    start = str(first.day) if same_month else f"{first.day} {first:%b}"
    return f"{start}{DASH}{last.day} {last:%b}"


def clock_time(instant: datetime, zone: ZoneInfo) -> str:
    """``07:48``; with seconds where there are any, so that no two changes look simultaneous."""
    local = instant.astimezone(zone)
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def clock_span(start: datetime, end: datetime, zone: ZoneInfo) -> str:
    """``22:00-06:00`` (with an en dash), and ``+2d`` where clock times alone do not say on which date it ends."""
    until = clock_time(end, zone)
    days = (end.astimezone(zone).date() - start.astimezone(zone).date()).days
    later = f" +{days}d" if days > 1 or (days == 1 and until != "00:00") else ""
    return f"{clock_time(start, zone)}{DASH}{until}{later}"


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of a local date."""
    return resolve_wall(datetime.combine(day, time()), zone, Edge.START)


def after_days(start: datetime, days: int, zone: ZoneInfo) -> datetime:
    """The same wall time so many local days later."""
    wall = start.astimezone(zone).replace(tzinfo=None) + timedelta(days=days)
    return resolve_wall(wall, zone, Edge.START)


def dates_of(start: datetime, end: datetime, zone: ZoneInfo) -> tuple[date, ...]:
    """All local dates that [start, end) touches."""
    first = start.astimezone(zone).date()
    last = (end - timedelta(microseconds=1)).astimezone(zone).date()
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))


def weekday_spans(days: Collection[int]) -> str:
    """``Mon-Fri`` (with an en dash) or ``Mon, Wed``, from weekday numbers."""
    spans: list[list[int]] = []
    for day in sorted(days):
        if spans and spans[-1][-1] == day - 1:
            spans[-1].append(day)
        else:
            spans.append([day])
    return ", ".join(_span(span) for span in spans)


def _span(days: Sequence[int]) -> str:
    joint = DASH if len(days) > 2 else ", "
    return WEEKDAYS[days[0]] if len(days) == 1 else f"{WEEKDAYS[days[0]]}{joint}{WEEKDAYS[days[-1]]}"


def dates_in_words(dates: Sequence[date]) -> str:
    """``Tue 1 Dec`` for one date, else the weekdays and how often: ``Mon-Fri x10``."""
    if len(dates) == 1:
        return short_date(dates[0])
    return f"{weekday_spans({day.weekday() for day in dates})} {TIMES}{len(dates)}"


def in_words(span: timedelta) -> str:
    """A span to the minute, at most two units: ``2h 10m``, ``3d 4h``, ``under a minute``."""
    minutes = int(span.total_seconds()) // 60
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m")]
    shown = [f"{count}{unit}" for count, unit in parts if count]
    return " ".join(shown[:2]) or "under a minute"
