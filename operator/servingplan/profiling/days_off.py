"""Days off and silences: dates that say nothing about an ordinary week. Pure.

Days off are told by their rates, because no log says in which country its users live: a date of a working weekday with
far fewer requests than the working days around it. A name comes from a list of holidays, where one is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from servingplan.profiling.days import Days

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFF = 0.6
"""A working weekday has more than this share of the busiest weekday's requests; a day off has less of the days
around."""

_FEWEST_WORKING = 3
"""Working weekdays. With fewer, a quiet day is ordinary."""

_AROUND_DAYS = 10
"""What is compared: a workload that grows is not full of days off."""

_FEWEST_AROUND = 3
_NEARLY_ALL = 90
"""Per cent of the other working days that must be alike: among days that differ wildly a quiet one is no sign."""

_FEWEST_WEEKS = 2
"""Other weeks that had requests at that time: with one alone, either of the two may be the odd one."""

_EXPECTED = 100
"""Requests of a slot in each other week: fewer may be absent by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOff:
    """A date like a day off.

    share: of the requests that working days around it have. name: of the holiday, or empty.
    """

    day: date
    share: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Whole hours of a date without any request, where every other week has many. Taken as not logged.

    start, end: hours of the day.
    """

    day: date
    start: float
    end: float


def working_weekdays(days: Days) -> frozenset[int]:
    """The weekdays with about as many requests as the busiest; empty where the week does not have that form."""
    typical = _typical(days)
    working = frozenset(day for day in range(7) if typical[day] > _OFF * np.nanmax(typical))
    return working if len(working) >= _FEWEST_WORKING else frozenset()


def _typical(days: Days) -> NDArray[np.float64]:
    """Of each weekday, the upper median of its totals: one of two may be a day off."""
    totals, weekdays = days.totals, days.weekdays
    found = np.zeros(7)
    for weekday in range(7):
        those = totals[(weekdays == weekday) & np.isfinite(totals)]
        found[weekday] = np.percentile(those, 50, method="higher") if len(those) else 0.0
    return found


def days_off(days: Days, names: Mapping[date, str]) -> tuple[DayOff, ...]:
    """Dates of working weekdays that are like days off. names: of holidays."""
    working = working_weekdays(days)
    totals = days.totals
    is_working = np.isin(days.weekdays, list(working)) & np.isfinite(totals)
    shares = {int(row): _share(totals, is_working, int(row)) for row in np.flatnonzero(is_working)}
    compared = {row: share for row, share in shares.items() if share is not None}
    off = {row: share for row, share in compared.items() if share < _OFF}
    ordinary = [abs(share - 1) for row, share in compared.items() if row not in off]
    if not ordinary or np.percentile(ordinary, _NEARLY_ALL) > 1 - _OFF:
        return ()
    dates = days.dates
    return tuple(DayOff(day=dates[row], share=share, name=names.get(dates[row], "")) for row, share in off.items())


def _share(totals: NDArray[np.float64], is_working: NDArray[np.bool_], row: int) -> float | None:
    """A date's requests over the median of the working days around it; None where these are too few."""
    around = is_working.copy()
    around[row] = False
    around[: max(0, row - _AROUND_DAYS)] = False
    around[row + _AROUND_DAYS + 1 :] = False
    usual = float(np.median(totals[around])) if around.sum() >= _FEWEST_AROUND else 0.0
    return float(totals[row] / usual) if usual else None


def like_weekday(days: Days, off: tuple[DayOff, ...]) -> int | None:
    """The weekday, not a working one, that days off are like; None where there is none."""
    working = working_weekdays(days)
    rest = [day for day in range(7) if day not in working]
    if not off or not rest:
        return None
    dates = {each.day for each in off}
    rows = np.array([day in dates for day in days.dates])
    level, typical = float(np.nanmean(days.totals[rows])), _typical(days)
    nearest = min(rest, key=lambda day: abs(typical[day] - level))
    return nearest if abs(typical[nearest] - level) <= (1 - _OFF) * max(level, typical[nearest]) else None


def silences(days: Days) -> tuple[NDArray[np.bool_], tuple[Silence, ...]]:
    """Slots that were not logged, and the same in words."""
    silent = np.zeros(days.mean.shape, dtype=bool)
    weekdays, seconds = days.weekdays, 86400 / days.slots
    for row in range(len(days.dates)):
        others = days.mean[(weekdays == weekdays[row]) & (np.arange(len(days.dates)) != row)]
        heard = np.isfinite(others)
        least = np.where(heard, others, np.inf).min(axis=0, initial=np.inf) * seconds
        silent[row] = (days.mean[row] == 0) & (heard.sum(axis=0) >= _FEWEST_WEEKS) & (least >= _EXPECTED)
    return silent, tuple(
        Silence(day=days.dates[row], start=start * 24 / days.slots, end=end * 24 / days.slots)
        for row in range(len(days.dates))
        for start, end in _runs(silent[row])
    )


def _runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], marked, [False])).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
