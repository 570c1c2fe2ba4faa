"""Instants as people type them, and the only place of the command line that reads the clock.

In: text such as ``2026-12-01T07:00``, in the plan's zone. Out: aware instants in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from servingplan.errors import UsageError
from servingplan.planning.calendar import Edge, resolve_wall
from servingplan.planning.units import parse_duration
from servingplan.reporting.local import midnight

_CLOCK_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def now() -> datetime:
    """The present instant."""
    return datetime.now(UTC)


def parse_instant(text: str, zone: ZoneInfo, option: str, *, after: datetime, edge: Edge = Edge.START) -> datetime:
    """``2026-12-01``, ``2026-12-01T07:00`` or ``07:00`` in the zone, or any of the first two with an offset.

    A time alone is the first one at or after `after`. Raises UsageError, naming the option, for anything else.
    """
    if match := _CLOCK_TIME.fullmatch(text):
        return _next_clock_time(int(match[1]), int(match[2]), zone, after, edge)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is no time: write 2026-12-01T07:00 (in {zone.key}), 07:00, or 2026-12-01T07:00+01:00"
        ) from None
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    return resolve_wall(moment, zone, edge)


def parse_start(text: str | None, zone: ZoneInfo) -> datetime:
    """``--from`` as typed, a time alone from today 00:00 on; today 00:00 in the zone where nothing is typed."""
    today = midnight(now().astimezone(zone).date(), zone)
    return today if text is None else parse_instant(text, zone, "--from", after=today)


def _next_clock_time(hour: int, minute: int, zone: ZoneInfo, after: datetime, edge: Edge) -> datetime:
    wall = after.astimezone(zone).replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    for days in range(3):
        instant = resolve_wall(wall + timedelta(days=days), zone, edge)
        if instant >= after:
            return instant
    raise UsageError(f"{hour:02d}:{minute:02d} does not come in {zone.key} within two days: give the date too")


def parse_span(text: str, option: str) -> timedelta:
    """``2h`` or ``1h30m``. Raises UsageError, naming the option, for anything else and for nothing."""
    try:
        span = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    if not span:
        raise UsageError(f"{option} must be longer than 0s")
    return span
