"""When a cron expression fires, exactly as the library robfig/cron v3 computes it for KEDA and for CronJobs.

In: an expression, a zone, an instant. Out: the next instant at which it fires. The rules for clock changes are that
library's own, not `planning.calendar`'s: a wall time that is missing is passed over, one that comes twice fires twice.
They depend on how it walks (month, day, hour, minute) and on how Go makes an instant of a wall time, so the walk here
is the same. A test compares it with recordings of the library, minute by minute, over three years in 13 zones.

Instants are whole Unix seconds in here, wall times are seconds since 1970 on the wall.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from servingplan.planning.calendar import dates_between, offset_changes

MINUTE, HOUR, DAY = 60, 3_600, 86_400
EPOCH = date(1970, 1, 1).toordinal()

YEARS_AHEAD = 5
"""An expression that does not fire within five years never does, says the library."""


class Field(NamedTuple):
    """What a field of an expression may hold."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS = (
    Field("minute", 0, 59, {}),
    Field("hour", 0, 23, {}),
    Field("day of the month", 1, 31, {}),
    Field("month", 1, 12, {name: i + 1 for i, name in enumerate(_MONTHS)}),
    Field("weekday", 0, 6, {name: i for i, name in enumerate(_DAYS)}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A parsed expression. weekdays: 0 is Sunday. any_date, any_weekday: the field is a star without a step.

    Where neither of both is a star, a day matches by its date or by its weekday.
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    dates: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_date: bool
    any_weekday: bool

    def falls_on(self, day: date) -> bool:
        """Whether the expression names that day."""
        return day.month in self.months and self._names(day.day, day.isoweekday() % 7)

    def _names(self, day_of_month: int, weekday: int) -> bool:
        by_date, by_weekday = day_of_month in self.dates, weekday in self.weekdays
        return (by_date and by_weekday) if self.any_date or self.any_weekday else (by_date or by_weekday)


@lru_cache(maxsize=1024)
def parse(text: str) -> Schedule:
    """The expression ``minute hour day month weekday``. Raises ValueError that says what is wrong with it."""
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise ValueError(f"{text!r} has {len(parts)} fields: write minute, hour, day of the month, month and weekday")
    values = [_field(part, field) for part, field in zip(parts, FIELDS, strict=True)]
    minutes, hours, dates, months, weekdays = (found for found, _ in values)
    return Schedule(
        text=" ".join(parts),
        minutes=minutes,
        hours=hours,
        dates=dates,
        months=months,
        weekdays=weekdays,
        any_date=values[2][1],
        any_weekday=values[4][1],
    )


def _field(text: str, field: Field) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether one of its parts is a star."""
    ranges = [_range(part, field) for part in text.split(",") if part]
    if not ranges:
        raise ValueError(f"{text!r} names no {field.name}")
    return frozenset().union(*(values for values, _ in ranges)), any(star for _, star in ranges)


def _range(text: str, field: Field) -> tuple[range, bool]:
    span, slash, step_text = text.partition("/")
    step = _number(step_text, text, field) if slash else 1
    if step == 0:
        raise ValueError(f"{text!r} as {field.name}: a step is at least 1")
    low_text, dash, high_text = span.partition("-")
    if low_text in {"*", "?"}:
        return range(field.low, field.high + 1, step), step == 1
    low = _named(low_text, text, field)
    last = field.high if slash else low
    high = _named(high_text, text, field) if dash else last
    if not field.low <= low <= high <= field.high:
        raise ValueError(f"{text!r} as {field.name}: write values from {field.low} to {field.high}, ascending")
    return range(low, high + 1, step), False


def _named(text: str, whole: str, field: Field) -> int:
    return field.names[text.lower()] if text.lower() in field.names else _number(text, whole, field)


def _number(text: str, whole: str, field: Field) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{whole!r} is no {field.name}")
    return int(text)


# ---- offsets ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _offsets(zone: ZoneInfo, year: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The instants in a year (UTC) from which an offset holds, and the offsets in seconds."""
    first = datetime(year, 1, 1, tzinfo=UTC)
    changes = {change for day in dates_between(date(year, 1, 1), date(year, 12, 31)) for change in _near(day, zone)}
    instants = [first, *sorted(change for change in changes if change > first and change.year == year)]
    offsets = [instant.astimezone(zone).utcoffset() or timedelta() for instant in instants]
    return tuple(round(i.timestamp()) for i in instants), tuple(round(o.total_seconds()) for o in offsets)


def _near(day: date, zone: ZoneInfo) -> tuple[datetime, ...]:
    # The first and the last dates of the calendar have no neighbour to look at.
    return offset_changes(day, zone) if date(2, 1, 1) < day < date(9998, 12, 31) else ()


def offset(instant: int, zone: ZoneInfo) -> int:
    """The zone's offset in seconds at an instant."""
    times, offsets = _offsets(zone, date.fromordinal(EPOCH + instant // DAY).year)
    return offsets[bisect_right(times, instant) - 1]


def _instant(wall: int, zone: ZoneInfo) -> int:
    """The instant that Go's time.Date makes of a wall time: it looks the offset up twice, but not where it is 0."""
    first = offset(wall, zone)
    return wall - offset(wall - first, zone) if first else wall


# ---- the walk ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wall:
    """What the wall shows at an instant."""

    seconds: int

    @property
    def day(self) -> date:
        return date.fromordinal(EPOCH + self.seconds // DAY)

    @property
    def hour(self) -> int:
        return self.seconds // HOUR % 24

    @property
    def minute(self) -> int:
        return self.seconds // MINUTE % 60


def _wall(instant: int, zone: ZoneInfo) -> _Wall:
    return _Wall(instant + offset(instant, zone))


class _Unit(NamedTuple):
    """A field of the walk: whether it matches, its lowest instant, one step further, whether that wrapped around."""

    matches: Callable[[Schedule, _Wall], bool]
    lowest: Callable[[int, ZoneInfo], int]
    further: Callable[[int, ZoneInfo], int]
    wrapped: Callable[[_Wall], bool]


def _next_month(instant: int, zone: ZoneInfo) -> int:
    wall = _wall(instant, zone)
    day = wall.day
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1).toordinal() + day.day - 1
    return _instant((following - EPOCH) * DAY + wall.seconds % DAY, zone)


def _next_day(instant: int, zone: ZoneInfo) -> int:
    following = _instant(_wall(instant, zone).seconds + DAY, zone)
    hour = _wall(following, zone).hour
    # No midnight there, or a day of 23 hours before it: the library goes to the next or to the last full one.
    return following + ((24 - hour) * HOUR if hour > 12 else -hour * HOUR)


def _month_start(instant: int, zone: ZoneInfo) -> int:
    return _instant((_wall(instant, zone).day.replace(day=1).toordinal() - EPOCH) * DAY, zone)


def _day_start(instant: int, zone: ZoneInfo) -> int:
    return _instant(_wall(instant, zone).seconds // DAY * DAY, zone)


def _hour_start(instant: int, zone: ZoneInfo) -> int:
    return _instant(_wall(instant, zone).seconds // HOUR * HOUR, zone)


def _minute_start(instant: int, _: ZoneInfo) -> int:
    return instant - instant % MINUTE


_UNITS = (
    _Unit(lambda s, w: w.day.month in s.months, _month_start, _next_month, lambda w: w.day.month == 1),
    _Unit(lambda s, w: s.falls_on(w.day), _day_start, _next_day, lambda w: w.day.day == 1),
    _Unit(lambda s, w: w.hour in s.hours, _hour_start, lambda i, _: i + HOUR, lambda w: w.hour == 0),
    _Unit(lambda s, w: w.minute in s.minutes, _minute_start, lambda i, _: i + MINUTE, lambda w: w.minute == 0),
    _Unit(lambda _, w: w.seconds % MINUTE == 0, _minute_start, lambda i, _: i + MINUTE, lambda _: True),
)
"""Month, day, hour, minute, second."""


def next_fire(schedule: Schedule, after: int, zone: ZoneInfo) -> int | None:
    """The first fire strictly after an instant; None where there is none within five years.

    A field that does not match is advanced until it does, and the smaller ones are looked at anew. The first one to be
    advanced begins at its lowest instant, so that most instants of a day or an hour lead to one and the same walk.
    """
    instant = after + 1
    wall = _wall(instant, zone)
    for position, unit in enumerate(_UNITS):
        if not unit.matches(schedule, wall):
            return _walk(schedule, zone, unit.lowest(instant, zone), position, wall.day.year + YEARS_AHEAD)
    return instant


@lru_cache(maxsize=65536)
def _walk(schedule: Schedule, zone: ZoneInfo, instant: int, begun: int, last_year: int) -> int | None:
    """The walk from an instant at which the field at `begun` has to be advanced."""
    instant = _UNITS[begun].further(instant, zone)
    position = 0 if _UNITS[begun].wrapped(_wall(instant, zone)) else begun
    while position < len(_UNITS):
        unit, wall = _UNITS[position], _wall(instant, zone)
        if position == 0 and wall.day.year > last_year:
            return None
        if unit.matches(schedule, wall):
            position += 1
            continue
        instant = unit.further(instant, zone)
        if unit.wrapped(_wall(instant, zone)):
            position = 0
    return instant


def fires(schedule: Schedule, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    """All fires in [start, end), one after the other, as a CronJob would have them."""
    instant = next_fire(schedule, start - 1, zone)
    while instant is not None and instant < end:
        yield instant
        instant = next_fire(schedule, instant, zone)
