"""Instants as people and as Kubernetes write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def local_time(instant: datetime, zone: ZoneInfo) -> str:
    """``Tue 1 Dec 08:00 CET``: absolute, so that a message that holds it never changes by itself."""
    local = instant.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b %H:%M %Z}"


def local_weekday_time(instant: datetime, zone: ZoneInfo) -> str:
    """``Tue 08:00 CET``, for the column that is read at a glance."""
    return f"{instant.astimezone(zone):%a %H:%M %Z}"


def wire_time(instant: datetime) -> str:
    """RFC 3339 in UTC, to the second, as Kubernetes writes it; finer only where there is a fraction."""
    utc = instant.astimezone(UTC)
    text = utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def parse_wire_time(text: str) -> datetime:
    """The inverse of `wire_time`."""
    return datetime.fromisoformat(text)
