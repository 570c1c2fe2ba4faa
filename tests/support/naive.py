"""What a plan requires, evaluated minute by minute from the contract's words alone.

Deliberately naive: every instance of every date is resolved to instants by looking at what the clock on the wall
shows at each minute, then painted on a row of minutes. It shares no code with the package beyond the plan's values,
so that a test which compares both can fail. numpy only paints; the rules are plain loops.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from servingplan.planning.plan import Capacity, Level, Plan, Rate, Total

Minutes = NDArray[np.int64]

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times are naive
UTC_EPOCH = EPOCH.replace(tzinfo=UTC)
LONGEST_CARRY_OVER = 9
"""Dates before the first that can still reach into it: cron windows last up to 168 h."""


@lru_cache(maxsize=8192)
def shown_on(zone: ZoneInfo, utc_day: date) -> Minutes:
    """What the clock shows at each minute of a UTC day, as minutes since `EPOCH`."""
    midnight = datetime.combine(utc_day, time(), tzinfo=UTC)
    walls = [(midnight + i * MINUTE).astimezone(zone).replace(tzinfo=None) for i in range(1440)]
    return np.array([(wall - EPOCH) // MINUTE for wall in walls], dtype=np.int64)


@lru_cache(maxsize=4096)
def shown_between(zone: ZoneInfo, start: datetime, end: datetime) -> Minutes:
    """What the clock shows at each minute from one UTC midnight to another."""
    days = [start.date() + i * DAY for i in range((end - start) // DAY)]
    return np.concatenate([shown_on(zone, day) for day in days])


@lru_cache(maxsize=500_000)
def instant_of(zone: ZoneInfo, wall: datetime, *, last: bool) -> int:
    """The UTC minute (since `UTC_EPOCH`) at which the clock shows `wall`; the end of the gap where it never does."""
    first_day = wall.date() - DAY
    midnight = datetime.combine(first_day, time(), tzinfo=UTC)
    shown = shown_between(zone, midnight, midnight + 3 * DAY)
    wanted = (wall - EPOCH) // MINUTE
    found = np.flatnonzero(shown == wanted)
    offset = (found[-1] if last else found[0]) if len(found) else np.flatnonzero(shown > wanted)[0]
    return (midnight - UTC_EPOCH) // MINUTE + int(offset)


@lru_cache(maxsize=500_000)
def cron_fires(cron: str, day: date) -> bool:
    """Does a cron expression with a plain minute and hour fire on a date? Day of month or of week, as cron has it."""
    _, _, month_days, months, week_days = cron.split()
    in_month_days = day.day in _numbers(month_days, 1, 31)
    in_week_days = day.isoweekday() % 7 in {n % 7 for n in _numbers(week_days, 0, 7)}
    either = month_days != "*" and week_days != "*"
    on_day = (in_month_days or in_week_days) if either else (in_month_days and in_week_days)
    return on_day and day.month in _numbers(months, 1, 12)


def _numbers(field: str, lowest: int, highest: int) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, final = span.partition("-")
        if span == "*":
            numbers |= set(range(lowest, highest + 1, int(step or 1)))
        else:
            numbers |= set(range(int(first), int(final or first) + 1, int(step or 1)))
    return numbers


@lru_cache(maxsize=100_000)
def replicas_for(rate: Decimal, capacity: Capacity, maximum: int) -> int:
    """The smallest n up to the maximum that serves the rate, tried one by one."""
    for n in range(maximum + 1):
        if n * _capacity_at(capacity, n) >= Fraction(rate):
            return n
    return maximum


def _capacity_at(capacity: Capacity, pool: int) -> Fraction:
    below = [p for p in capacity.points if p.replicas <= pool]
    above = [p for p in capacity.points if p.replicas >= pool]
    if not below:
        return Fraction(above[0].requests_per_second)
    if not above:
        return Fraction(below[-1].requests_per_second)
    low, high = below[-1], above[0]
    if low.replicas == high.replicas:
        return Fraction(low.requests_per_second)
    left, right = Fraction(low.requests_per_second), Fraction(high.requests_per_second)
    return left + (right - left) * (pool - low.replicas) / (high.replicas - low.replicas)


def required_by_minute(plan: Plan, start: datetime, end: datetime) -> Minutes:
    """The replicas that must be ready at each minute from one UTC midnight to another."""
    shown = shown_between(plan.zone, start, end)
    row = _Row(plan, start, len(shown))
    first, last = (EPOCH + int(shown[i]) * MINUTE for i in (0, -1))
    for day in _dates(first.date() - LONGEST_CARRY_OVER * DAY, last.date()):
        _paint_what_starts_on(plan, day, row, shown)
    stated, quiet = _profile(plan, shown)
    base_quiet = _total(plan, plan.base, quiet=True)
    unstated = np.where(quiet >= 0, quiet, base_quiet)
    row.total = np.where(row.total >= 0, np.maximum(row.total, stated), unstated)
    for override in sorted(plan.overrides, key=lambda o: (row.minute(o.start), _total(plan, o.level))):
        row.total[row.span(override.start, override.end)] = _total(plan, override.level)
    return np.clip(row.total, plan.bounds.minimum, plan.bounds.maximum)


class _Row:
    """One total for each minute; -1 where no window and no calendar rate is active."""

    def __init__(self, plan: Plan, start: datetime, length: int) -> None:
        self.zone = plan.zone
        self.first = (start - UTC_EPOCH) // MINUTE
        self.total: Minutes = np.full(length, -1, dtype=np.int64)

    def minute(self, wall: datetime, *, last: bool = False) -> int:
        return instant_of(self.zone, wall, last=last) - self.first

    def span(self, start: datetime, end: datetime) -> slice:
        return self.cut(self.minute(start), self.minute(end, last=True))

    def cut(self, start: int, end: int) -> slice:
        return slice(max(0, start), max(0, end))

    def paint(self, where: slice, total: int) -> None:
        part = self.total[where]
        np.maximum(part, total, out=part)


def _dates(first: date, last: date) -> list[date]:
    return [first + i * DAY for i in range((last - first).days + 1)]


def _words(plan: Plan, day: date) -> tuple[set[int], list[Rate]]:
    """The weekdays whose schedule a date takes, and the rates that calendars give it."""
    words = [calendar.treat_as for calendar in plan.calendars if day in calendar.dates]
    if not words:
        return {day.weekday()}, []
    return {w for w in words if isinstance(w, int)}, [w for w in words if isinstance(w, Rate)]


def _paint_what_starts_on(plan: Plan, day: date, row: _Row, shown: Minutes) -> None:
    midnight = datetime.combine(day, time())
    weekdays, rates = _words(plan, day)
    for window in plan.windows:
        if weekdays & window.days:
            end_day = day if window.start < window.end else day + DAY
            where = row.span(datetime.combine(day, window.start), datetime.combine(end_day, window.end))
            row.paint(where, _total(plan, window.level))
    for cron in plan.cron_windows:
        if cron_fires(cron.cron, day):
            begin = row.minute(datetime.combine(day, cron.at))
            row.paint(row.cut(begin, begin + cron.duration // MINUTE), _total(plan, cron.level))
    for rate in rates:
        begin = (midnight - EPOCH) // MINUTE
        that_day = (shown >= begin) & (shown < begin + 1440)
        row.total[that_day] = np.maximum(row.total[that_day], _total(plan, rate))


def _profile(plan: Plan, shown: Minutes) -> tuple[Minutes, Minutes]:
    """The profile's totals at each minute, with the reserve and with the quiet reserve; -1 where it is silent."""
    stated = np.full(len(shown), -1, dtype=np.int64)
    quiet = stated.copy()
    if plan.profile is None:
        return stated, quiet
    rates = plan.profile.rates
    with_reserve = np.array([_total(plan, Rate(requests_per_second=r)) for r in rates])
    with_quiet = np.array([_total(plan, Rate(requests_per_second=r), quiet=True) for r in rates])
    per_day = len(rates) // 7
    dates, positions = shown // 1440, shown % 1440 // (1440 // per_day)
    for number in np.unique(dates):
        that_day = dates == number
        for weekday in _words(plan, EPOCH.date() + int(number) * DAY)[0]:
            slots = positions[that_day] + weekday * per_day
            stated[that_day] = np.maximum(stated[that_day], with_reserve[slots])
            quiet[that_day] = np.maximum(quiet[that_day], with_quiet[slots])
    return stated, quiet


def _total(plan: Plan, level: Level, *, quiet: bool = False) -> int:
    """A level as a total; `quiet`: nothing is stated, so the quiet reserve holds while the need is base's."""
    if isinstance(level, Total):
        return level.replicas
    need = replicas_for(level.requests_per_second, plan.capacity, plan.bounds.maximum)
    base = replicas_for(plan.base.requests_per_second, plan.capacity, plan.bounds.maximum)
    return need + (plan.reserve.quiet if quiet and need <= base else plan.reserve.replicas)
