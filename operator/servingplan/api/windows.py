"""Zones, windows and overrides, from the wire to values.

Place in the flow: part of ``resolve``. In: wire models whose form is valid. Out: values of ``planning.plan``, or
`InputError`. Cron expressions are read on naive wall time; zones are applied later, by ``planning.calendar``.
"""

from __future__ import annotations

import re
from datetime import datetime, time
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterBadDateError, croniter

from servingplan.api.schedule import OverrideSpec, WindowSpec
from servingplan.errors import InputError, Problem
from servingplan.planning.plan import WEEKDAYS, CronWindow, Level, Override, Rate, Total, Window
from servingplan.planning.units import exact, parse_duration

CRON_SEARCH_START = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall time, of no zone
"""Where the search for a first fire begins: fixed, so that the result never depends on today. A leap year, and
croniter looks 50 years ahead, so 29 February is found."""

_NOT_THE_SAME_EVERY_TIME = re.compile(r"(?<![a-z])[rh](?![a-z])", re.IGNORECASE)
"""croniter's R (random) and H (hashed) fields: they need not mean the same on the next reading."""


def zone(name: str, path: str) -> ZoneInfo:
    """The time zone. Raises InputError where the name is none of the IANA database."""
    if name not in _zone_names():
        raise InputError(
            Problem(
                path=path,
                reason="UnknownTimeZone",
                message=f"{name!r} is no time zone of the IANA database: write for example Europe/Berlin or UTC",
            )
        )
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    # Cached: reading them walks the whole database on disk.
    return frozenset(available_timezones())


def level(requests_per_second: float | None, replicas: int | None) -> Level:
    """The one of both that is stated."""
    if requests_per_second is not None:
        return Rate(requests_per_second=exact(requests_per_second))
    if replicas is not None:
        return Total(replicas=replicas)
    raise ValueError("neither requestsPerSecond nor replicas: the document was not validated")


def window(wire: WindowSpec, path: str) -> Window | CronWindow:
    """The window. Raises InputError for a cron expression that is none or never fires."""
    stated = level(wire.requests_per_second, wire.replicas)
    if wire.cron is not None and wire.duration is not None:
        return CronWindow(
            name=wire.name,
            cron=wire.cron,
            at=_fire_time(wire.cron, f"{path}.cron"),
            duration=parse_duration(wire.duration),
            level=stated,
        )
    if wire.days is None or wire.start is None or wire.end is None:
        raise ValueError("neither days, start and end nor cron and duration: the document was not validated")
    return Window(
        name=wire.name,
        days=frozenset(WEEKDAYS.index(day) for day in wire.days),
        start=time.fromisoformat(wire.start),
        end=time.fromisoformat(wire.end),
        level=stated,
    )


def _fire_time(cron: str, path: str) -> time:
    if _NOT_THE_SAME_EVERY_TIME.search(cron):
        message = f"{cron!r} has a random or hashed field (R or H): write plain days and months"
        raise InputError(Problem(path=path, reason="InvalidCron", message=message))
    try:
        first: datetime = croniter(cron, CRON_SEARCH_START).get_next(datetime)
    except CroniterBadDateError:
        message = f"{cron!r} never fires: no year has such a date; correct day and month"
        raise InputError(Problem(path=path, reason="CronNeverFires", message=message)) from None
    except (ValueError, KeyError, AttributeError) as error:
        message = f"{cron!r} is no cron expression ({error}): write minute hour day month weekday"
        raise InputError(Problem(path=path, reason="InvalidCron", message=message)) from error
    return first.time()


def override(wire: OverrideSpec, path: str) -> Override:
    """The override. Raises InputError for a date that the calendar does not have."""
    problems = []
    for field, text in (("start", wire.start), ("end", wire.end)):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            message = f"{text} is a date that does not exist: correct it"
            problems.append(Problem(path=f"{path}.{field}", reason="InvalidDate", message=message))
    if problems:
        raise InputError(*problems)
    return Override(
        name=wire.name,
        start=datetime.fromisoformat(wire.start),
        end=datetime.fromisoformat(wire.end),
        level=level(wire.requests_per_second, wire.replicas),
    )
