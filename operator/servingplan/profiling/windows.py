"""A schedule as a person would write it: a base rate and few windows on round times, from the ordinary week. Pure.

In: the slots of a week, and one replica's capacity where it is known. Out: `Schedule`s, one for each number of
windows, and the one that is worth its windows. Levels are whole replicas where the capacity is known, else sixteenths
of the peak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import time
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

import numpy as np

from servingplan.planning.plan import WEEKDAYS, Capacity, PoolCapacity
from servingplan.planning.sizing import need
from servingplan.profiling.fit import Fit, Piece, fits, worthwhile
from servingplan.profiling.week import HOUR, WeekSlot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUND_MINUTES = 30
"""Windows begin and end on half hours where the week is known that finely, else on hours."""

MOST_LEVELS = 16
_QUIET_AT_MIDNIGHT = 1.2
"""A day is fitted from midnight to midnight where midnight is at most so much busier than the quietest time: else from
that time on, so that a window may run over midnight."""

_DAY = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedWindow:
    """A weekly window; `end` at or before `start` is on the next date. rate: requests/s of its busiest five minutes."""

    name: str
    days: tuple[int, ...]
    start: time
    end: time
    rate: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Base and windows.

    hours: a week's replica-hours of need, or rate-hours where the capacity is unknown. short_hours: hours of the week
    in which the need lies above it.
    """

    base: Decimal
    windows: tuple[FittedWindow, ...]
    hours: float
    short_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """By number of windows, ascending.

    followed: hours of a week that follows every slot of the profile. flat: of one that keeps its peak.
    """

    by_windows: tuple[Schedule, ...]
    best: Schedule
    followed: float
    flat: float


def capacity_of(rate: Decimal) -> Capacity:
    """One replica's capacity, whatever the pool's size."""
    return Capacity(points=(PoolCapacity(replicas=1, requests_per_second=rate),))


def schedules(
    week: Sequence[WeekSlot], capacity: Capacity | None, outside: NDArray[np.bool_] | None = None
) -> Schedules:
    """Schedules for a week.

    outside: True for each slot (7 rows) that the schedule must serve; all where left out.
    """
    asked = _asked(week, capacity, outside)
    found = fits(asked.needed, asked.levels, asked.counts)
    built = {id(fit): _schedule(fit, asked) for fit in found}
    return Schedules(
        by_windows=tuple(built.values()),
        best=built[id(worthwhile(found))],
        followed=float((asked.needed * asked.counts).sum()) * asked.price,
        flat=float((asked.needed.max() * asked.counts).sum()) * asked.price,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a schedule has to serve, by day (rows) and slot; days begin at slot `origin`.

    needed: in levels. counts: 0 where others serve. unit: what a level of 1 serves. price: hours of a level and slot.
    """

    rates: Floats
    needed: Floats
    counts: Floats
    levels: list[float]
    origin: int
    minutes: int
    unit: Capacity
    price: float


def _asked(week: Sequence[WeekSlot], capacity: Capacity | None, outside: NDArray[np.bool_] | None) -> _Asked:
    minutes, rates = _rounded(week)
    counts = np.ones_like(rates) if outside is None else _counts(outside, rates.shape[1])
    unit = capacity or capacity_of(Decimal(str(max(rates.max(), 1e-6))) / MOST_LEVELS)
    needed = np.vectorize(lambda rate: float(need(decimal_rate(rate), unit, 1).unbounded))(rates)
    origin = _origin(rates)
    each = 1.0 if capacity is not None else float(unit.points[0].requests_per_second)
    return _Asked(
        rates=_turned(rates, origin),
        needed=_turned(needed, origin),
        counts=_turned(counts, origin),
        levels=_levels(needed),
        origin=origin,
        minutes=minutes,
        unit=unit,
        price=each * minutes / HOUR,
    )


def _rounded(week: Sequence[WeekSlot]) -> tuple[int, Floats]:
    """Minutes of a slot of the fit, and the highest rate in each, by weekday."""
    rates = np.array([slot.rate for slot in week]).reshape(7, -1)
    minutes = _DAY // rates.shape[1]
    if minutes >= HOUR:
        return minutes, rates
    return ROUND_MINUTES, rates.reshape(7, _DAY // ROUND_MINUTES, -1).max(axis=2)


def _counts(outside: NDArray[np.bool_], slots: int) -> Floats:
    return outside.reshape(7, slots, -1).any(axis=2).astype(float)


def _levels(needed: Floats) -> list[float]:
    every = np.unique(needed)
    if len(every) <= MOST_LEVELS:
        return [float(level) for level in every]
    return [float(level) for level in np.unique(np.ceil(np.linspace(every[0], every[-1], MOST_LEVELS)))]


def _origin(rates: Floats) -> int:
    """The slot at which a day begins, for the fit."""
    daily = rates.mean(axis=0)
    quietest = int(daily.argmin())
    return 0 if min(daily[0], daily[-1]) <= _QUIET_AT_MIDNIGHT * daily[quietest] else quietest


def _turned(grid: Floats, origin: int) -> Floats:
    """The same week with days that begin at `origin`."""
    return np.roll(grid.ravel(), -origin).reshape(grid.shape)


def _schedule(fit: Fit, asked: _Asked) -> Schedule:
    """A fit in rates: each window states the most that comes where no higher window lies over it."""
    level = np.full(asked.needed.shape, fit.base)
    owner = np.full(asked.needed.shape, -1)
    for number, piece in sorted(enumerate(fit.pieces), key=lambda each: each[1].level):
        inside = np.ix_(piece.days, range(piece.start, piece.end))
        level[inside], owner[inside] = piece.level, number
    given = np.asarray(asked.levels)[level]
    counts, short = asked.counts > 0, asked.needed > given
    served = counts & ~short
    windows = [
        _window(piece, float(asked.rates[served & (owner == number)].max()), asked)
        for number, piece in enumerate(fit.pieces)
        if (served & (owner == number)).any()
    ]
    return Schedule(
        base=round_up(float(asked.rates[served & (owner == -1)].max(initial=0.0)), asked.unit),
        windows=_named(sorted(windows, key=lambda each: (each.days, each.start))),
        hours=float((given * asked.counts).sum()) * asked.price,
        short_hours=float((short & counts).sum()) * asked.minutes / HOUR,
    )


def _window(piece: Piece, rate: float, asked: _Asked) -> FittedWindow:
    start, end = ((asked.origin + slot) * asked.minutes for slot in (piece.start, piece.end))
    return FittedWindow(
        name="",
        days=tuple(sorted((day + start // _DAY) % 7 for day in piece.days)),
        start=_clock(start),
        end=_clock(end),
        rate=round_up(rate, asked.unit),
    )


def _clock(minutes: int) -> time:
    return time(minutes % _DAY // 60, minutes % 60)


def round_up(rate: float, unit: Capacity) -> Decimal:
    """A rate as people write it, at least as high, of as many replicas: two digits, or as many as that takes."""
    exact = decimal_rate(rate)
    if not exact:
        return Decimal(0)
    wanted = need(exact, unit, 1).unbounded
    for digits in (2, 3, 4):
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(step, rounding=ROUND_CEILING)
        if need(rounded, unit, 1).unbounded == wanted:
            return rounded.normalize()
    return exact


def decimal_rate(rate: float) -> Decimal:
    """Rates to five digits: what logs know of them."""
    return Decimal(f"{rate:.5g}")


def levels_of(schedule: Schedule, minutes: int) -> list[float]:
    """What a schedule states in each slot of `minutes` of the week, from Monday 00:00 on, in requests/s."""
    levels = [float(schedule.base)] * (7 * _DAY // minutes)
    for window in schedule.windows:
        start, end = (clock.hour * 60 + clock.minute for clock in (window.start, window.end))
        length = (end - start) % _DAY or _DAY
        for day in window.days:
            for minute in range(day * _DAY + start, day * _DAY + start + length, minutes):
                slot = minute // minutes % len(levels)
                levels[slot] = max(levels[slot], float(window.rate))
    return levels


# ---- names ----------------------------------------------------------------------------------------------

_SPANS = {
    (0, 1, 2, 3, 4): "weekday",
    (5, 6): "weekend",
    tuple(range(7)): "daily",
}
_PARTS = ((5, "night"), (11, "morning"), (14, "midday"), (18, "afternoon"), (23, "evening"), (29, "night"))
"""By the hour in the middle of a window."""

_LONG_HOURS, _WHOLE_HOURS = 7, 20


def _named(windows: Sequence[FittedWindow]) -> tuple[FittedWindow, ...]:
    """Windows with names that people recognise, each once: ``working-day``, ``weekend-evening``, ``fri-morning``."""
    seen: dict[str, int] = {}
    named = []
    for window in windows:
        name = _name(window)
        seen[name] = seen.get(name, 0) + 1
        number = f"-{seen[name]}" if seen[name] > 1 else ""
        named.append(replace(window, name=f"{name}{number}"))
    return tuple(named)


def _name(window: FittedWindow) -> str:
    start = window.start.hour + window.start.minute / 60
    length = (window.end.hour + window.end.minute / 60 - start) % 24 or 24.0
    part = _part(start, length)
    span = _SPANS.get(window.days) or _run_name(window.days)
    if (span, part) == ("weekday", "day"):
        return "working-day"
    return span if (span, part) == ("daily", "all-day") else f"{span}-{part}"


def _part(start: float, length: float) -> str:
    if length >= _WHOLE_HOURS:
        return "all-day"
    if length >= _LONG_HOURS and 5 <= start <= 12 <= start + length <= 24:
        return "day"
    middle = math.fmod(start + length / 2, 24)
    return next(name for before, name in _PARTS if middle < before)


def _run_name(days: tuple[int, ...]) -> str:
    names = [WEEKDAYS[day].lower() for day in days]
    if len(days) < 3:
        return "-".join(names)
    first = next(day for day in days if (day - 1) % 7 not in days)
    return f"{WEEKDAYS[first].lower()}-{WEEKDAYS[(first + len(days) - 1) % 7].lower()}"
