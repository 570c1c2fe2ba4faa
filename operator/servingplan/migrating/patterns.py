"""Cron expressions for instants: every week, or by date, in the plan's zone or in UTC, whichever says them exactly.

In: instants at whole minutes that are alike, and a zone. Out: candidates, the most readable first. Whether one is exact
over a range is for who uses it to see, by what the target does with it (`keda_cron`, `robfig`). By date in UTC always
is: there is no clock change in it, and each date is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from servingplan.planning.series import StepFunction, largest, step_function

UTC = ZoneInfo("Etc/UTC")

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Expressions of one zone, one for each row of instants that they were made for. dated: they name dates."""

    zone: ZoneInfo
    expressions: tuple[str, ...]
    dated: bool


def by_the_minute(asked: StepFunction[int]) -> StepFunction[int]:
    """The largest of each minute: a rise at the start of its minute, a fall at the end of its."""
    minutes = {asked.start - _into_minute(asked.start)}
    for time in asked.times:
        start = time - _into_minute(time)
        minutes |= {start, start + _MINUTE}
    begun = [minute for minute in sorted(minutes) if minute < asked.end]
    points = [(max(asked.start, minute), largest(asked, minute, minute + _MINUTE)) for minute in begun]
    return step_function(points, end=asked.end)


def _into_minute(instant: datetime) -> timedelta:
    return timedelta(seconds=instant.second, microseconds=instant.microsecond)


def weekly(rows: Sequence[Sequence[datetime]], zone: ZoneInfo) -> Times | None:
    """For rows of instants (all starts, all ends) an expression each that names weekdays; None where they differ."""
    expressions = []
    for row in rows:
        walls = [instant.astimezone(zone) for instant in row]
        if len({wall.time() for wall in walls}) > 1:
            return None
        days = sorted({wall.isoweekday() % 7 for wall in walls})
        named = "*" if len(days) == 7 else ",".join(map(str, days))
        expressions.append(f"{walls[0].minute} {walls[0].hour} * * {named}")
    return Times(zone=zone, expressions=tuple(expressions), dated=False)


def dated(rows: Sequence[Sequence[datetime]], zone: ZoneInfo) -> Iterator[Times]:
    """For rows of instants that belong together one by one: expressions that name dates, by time and month."""
    groups: dict[object, list[tuple[datetime, ...]]] = {}
    for instants in zip(*rows, strict=True):
        walls = tuple(instant.astimezone(zone) for instant in instants)
        key = tuple((wall.hour, wall.minute, wall.year, wall.month) for wall in walls)
        groups.setdefault(key, []).append(walls)
    for _, group in sorted(groups.items(), key=lambda item: item[1][0]):
        yield Times(zone=zone, expressions=tuple(_dated(walls) for walls in zip(*group, strict=True)), dated=True)


def _dated(walls: Sequence[datetime]) -> str:
    first = walls[0]
    days = ",".join(str(day) for day in sorted({wall.day for wall in walls}))
    return f"{first.minute} {first.hour} {days} {first.month} *"


def candidates(rows: Sequence[Sequence[datetime]], zone: ZoneInfo) -> Iterator[Sequence[Times]]:
    """Ways to say the rows, the most readable first, the one that is always exact last."""
    every_week = weekly(rows, zone)
    if every_week is not None:
        yield [every_week]
    yield list(dated(rows, zone))
    yield list(dated(rows, UTC))
