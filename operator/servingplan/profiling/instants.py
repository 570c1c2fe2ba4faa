"""Times as logs write them become instants. In: text or numbers. Out: seconds since 1970 in UTC. Pure.

Naive wall times are read in a stated zone, by the rules of ``planning.calendar``; in the hour that an autumn change
doubles, a log that goes on in order says which of the two is meant. Small numbers count from a stated start.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from servingplan.planning.calendar import Edge, resolve_wall

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  wall time, counted without any zone
_QUARTER = 900
"""Seconds. Offsets of zones change at whole quarters of an hour."""

_RELATIVE_BELOW = 1e8
"""Numbers below it (three years of seconds) count from a start; epoch seconds have ten digits."""

_UNITS = ((1e11, 1.0), (1e14, 1e-3), (1e17, 1e-6), (math.inf, 1e-9))
"""Epoch numbers below the first are seconds, then milliseconds, microseconds, nanoseconds."""

_OUT_OF_ORDER_SECONDS = 1800
"""A line may be this much older than the one before it and still be of the same hour."""


class NoInstant(ValueError):
    """A text that is no time, or one that needs what was not stated."""


class Instants:
    """Reads times. zone: of wall times without an offset. start: of small numbers, None where not stated."""

    def __init__(self, *, zone: ZoneInfo, start: datetime | None) -> None:
        self._zone = zone
        self._start = None if start is None else start.timestamp()
        self._offsets: dict[float, tuple[float, float]] = {}
        self._last = -math.inf
        self.naive = 0
        """How many wall times without an offset were read."""

    def of_text(self, text: str) -> float:
        """An ISO 8601 time or a number. Raises NoInstant."""
        try:
            number = float(text)
        except ValueError:
            return self.of_iso(text)
        return self.of_number(number)

    def of_iso(self, text: str) -> float:
        """An ISO 8601 time, with an offset or without. Raises NoInstant."""
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            raise NoInstant(f"{text[:40]!r} is no time: ISO 8601, epoch seconds, or seconds from --start") from None
        return moment.timestamp() if moment.tzinfo is not None else self.of_wall(moment)

    def of_number(self, number: float) -> float:
        """Epoch seconds, milliseconds and so on by their size, or seconds from the start. Raises NoInstant."""
        if not number >= 0 or number == math.inf:
            raise NotANumber(number)
        if number < _RELATIVE_BELOW:
            return self.since_start(number)
        return number * next(unit for limit, unit in _UNITS if number < limit)

    def since_start(self, seconds: float) -> float:
        """Seconds from the stated start. Raises NoInstant where none is."""
        if self._start is None:
            raise StartMissing
        return self._start + seconds

    def of_wall(self, wall: datetime) -> float:
        """A wall time of the zone."""
        self.naive += 1
        seconds = (wall - _EPOCH).total_seconds()
        quarter = seconds // _QUARTER
        offsets = self._offsets.get(quarter)
        if offsets is None:
            offsets = self._offsets[quarter] = self._offsets_at(quarter)
        first = seconds - offsets[0]
        second = seconds - offsets[1]
        found = first if first == second or first > self._last - _OUT_OF_ORDER_SECONDS else second
        self._last = found
        return found

    def _offsets_at(self, quarter: float) -> tuple[float, float]:
        """What to take off wall times of a quarter: for the first and for the second time that they come."""
        wall = _EPOCH + timedelta(seconds=quarter * _QUARTER)
        first, second = (resolve_wall(wall, self._zone, edge).timestamp() for edge in (Edge.START, Edge.END))
        return quarter * _QUARTER - first, quarter * _QUARTER - second


class StartMissing(NoInstant):
    """Times count from a start that was not stated."""

    def __init__(self) -> None:
        super().__init__("its times count from a start that is not in the log: state it with --start 2026-11-02T00:00")


class NotANumber(NoInstant):
    """A number that cannot be a time."""

    def __init__(self, number: float) -> None:
        super().__init__(f"{number} is no time")


@lru_cache(maxsize=4096)
def clf_minute(text: str) -> float:
    """The minute of a time as access logs write it, ``30/Nov/2026:03:06:20 +0000``, its seconds replaced by 00."""
    return datetime.strptime(text, "%d/%b/%Y:%H:%M:00 %z").astimezone(UTC).timestamp()
