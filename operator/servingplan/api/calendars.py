"""Calendars, from the text of a ConfigMap to dates.

Place in the flow: part of ``resolve``. In: ``calendar.ics`` (iCalendar) or ``dates`` (one ISO date a line), and
``validUntil``. Out: a `Calendar` and warnings, or `InputError`. A calendar that ran out is no problem here: the
decision compares `valid_until` with its instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

import icalendar
import recurring_ical_events

from servingplan.api.config_maps import data_of, entry_of, limited
from servingplan.api.references import References
from servingplan.api.schedule import CalendarSpec
from servingplan.errors import InputError, Problem
from servingplan.planning.plan import WEEKDAYS, Calendar, Rate, TreatAs
from servingplan.planning.units import exact

FIRST_DATE, LAST_DATE = date(2024, 1, 1), date(2040, 12, 31)
"""Recurring events are expanded over these dates. Fixed, because what a plan means must not depend on when it is
read; wide enough for any plan in use, short enough that a yearly recurrence stays a handful of dates."""

ICS_KEY, DATES_KEY, VALID_UNTIL_KEY = "calendar.ics", "dates", "validUntil"

_TOO_FREQUENT = frozenset({"SECONDLY", "MINUTELY", "HOURLY"})


def calendar(wire: CalendarSpec, path: str, references: References) -> tuple[Calendar, tuple[Problem, ...]]:
    """The calendar and its warnings. Raises InputError where it is missing, empty or cannot be read."""
    name = wire.config_map.name
    key, text = entry_of(references, name, (ICS_KEY, DATES_KEY), path)
    dates, complaints, remarks = _parsed_ics(text) if key == ICS_KEY else _parsed_dates(text)
    valid_until, complaint = _valid_until(references, name)
    where, source = f"{path}.configMap.name", f"of ConfigMap {name!r}"
    problems = [
        Problem(path=where, reason="InvalidCalendar", message=f"{key} {source}, {words}") for words in complaints
    ]
    if complaint:
        problems.append(Problem(path=where, reason="InvalidCalendar", message=complaint))
    if not dates and not problems:
        message = f"{key} {source} has no date: add all-day events or dates, or remove the calendar from the plan"
        problems.append(Problem(path=where, reason="CalendarEmpty", message=message))
    if problems:
        raise InputError(*limited(problems))
    warnings = tuple(
        Problem(path=where, reason="EventSkipped", message=f"{key} {source}, {words}") for words in remarks
    )
    resolved = Calendar(name=wire.name, dates=dates, treat_as=_treat_as(wire), valid_until=valid_until)
    return resolved, limited(list(warnings))


def _treat_as(wire: CalendarSpec) -> TreatAs | int | Rate:
    if wire.requests_per_second is not None:
        return Rate(requests_per_second=exact(wire.requests_per_second))
    if wire.treat_as is None:
        raise ValueError("neither treatAs nor requestsPerSecond: the document was not validated")
    return TreatAs.BASE if wire.treat_as == "Base" else WEEKDAYS.index(wire.treat_as)


def _valid_until(references: References, name: str) -> tuple[date | None, str | None]:
    text = (data_of(references, name) or {}).get(VALID_UNTIL_KEY)
    if text is None:
        return None, None
    try:
        # Beyond the last expanded date nobody knows the calendar, whatever it says.
        return min(date.fromisoformat(text.strip()), LAST_DATE), None
    except ValueError:
        return (
            None,
            f"{VALID_UNTIL_KEY} of ConfigMap {name!r} is {text.strip()!r}: write a date, for example 2027-12-31",
        )


Parsed = tuple[frozenset[date], tuple[str, ...], tuple[str, ...]]
"""Dates, what is wrong, and what was skipped."""


@lru_cache(maxsize=256)
def _parsed_dates(text: str) -> Parsed:
    dates, complaints = set(), []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stated = line.partition("#")[0].strip()
        if not stated:
            continue
        try:
            dates.add(datetime.strptime(stated, "%Y-%m-%d").date())  # noqa: DTZ007 - a date has no zone
        except ValueError:
            complaints.append(f"line {number}: {stated!r} is no date: write for example 2026-12-25")
    return frozenset(dates), tuple(complaints), ()


@lru_cache(maxsize=256)
def _parsed_ics(text: str) -> Parsed:
    """Cached by text: expanding recurrences takes a while, and a plan is resolved far more often than edited."""
    try:
        read: Any = icalendar.Calendar.from_ical(text)
        events = read.walk("VEVENT")
        all_day = [event for event in events if _is_all_day(event)]
        remarks = tuple(
            f"event {_title(event)} is skipped: it has a time of day, and only all-day events count"
            for event in events
            if event not in all_day
        )
        if broken := tuple(_unusable(all_day)):
            return frozenset(), broken, remarks
        return _expanded(all_day), (), remarks
    except Exception as error:  # noqa: BLE001 - two parsers of foreign text, with many error types of their own
        return frozenset(), (f"it cannot be read as iCalendar ({_first_line(error)}): export it again",), ()


def _is_all_day(event: Any) -> bool:
    start = event.get("DTSTART")
    return start is not None and not isinstance(start.dt, datetime)


def _unusable(events: list[Any]) -> Iterator[str]:
    for event in events:
        rules = event.get("RRULE") or []
        for rule in rules if isinstance(rules, list) else [rules]:
            if _TOO_FREQUENT & {str(frequency).upper() for frequency in rule.get("FREQ", [])}:
                yield f"event {_title(event)} recurs within a day: all-day events recur daily at most"


def _expanded(events: list[Any]) -> frozenset[date]:
    calendar_of_days = icalendar.Calendar()
    for event in events:
        calendar_of_days.add_component(event)
    occurrences = recurring_ical_events.of(calendar_of_days).between(FIRST_DATE, LAST_DATE + timedelta(days=1))
    return frozenset(day for event in occurrences if not _is_cancelled(event) for day in _days_of(event))


def _is_cancelled(event: Any) -> bool:
    return str(event.get("STATUS", "")).upper() == "CANCELLED"


def _days_of(event: Any) -> Iterator[date]:
    first, end = event.start, event.end
    day = max(first, FIRST_DATE)
    # An event without an end, or that ends on its first day, is that day.
    last = min(max(end - timedelta(days=1), first), LAST_DATE)
    while day <= last:
        yield day
        day += timedelta(days=1)


def _title(event: Any) -> str:
    return repr(str(event.get("SUMMARY") or event.get("UID") or "without a title"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
