"""The ordinary week: each hour or ten minutes of it by its busiest five minutes, over the weeks of a log. Pure.

In: `Days` without days off and silences. Out: a `WeekSlot` for each slot from Monday 00:00 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from servingplan.profiling.days import Days

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Combined = NDArray[np.float64]

HOUR, TEN_MINUTES = 60, 10
"""Minutes of a slot: the two forms of profile.csv."""

_ENOUGH_FOR_TEN_MINUTES = 0.5
"""Requests/s on average: 300 in ten minutes, so that chance moves a slot by 6 %."""


class Across(StrEnum):
    """What stands for a slot that several weeks have."""

    MEDIAN = "median"
    HIGHEST = "highest"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekSlot:
    """One slot of the week, in requests/s. weekday: 0 for Monday.

    rate: its busiest five minutes, over the weeks; lowest, highest: of them. mean: of the whole slot. weeks: how many
    have it; 0 where none has, and it is as the busiest weekday at that time.
    """

    weekday: int
    hour: int
    minute: int
    rate: float
    lowest: float
    highest: float
    mean: float
    weeks: int


def fitting_minutes(step: float, mean_rate: float) -> int:
    """Minutes of a slot that arrivals allow. step: of the log in seconds; mean_rate: requests/s."""
    fine = step <= TEN_MINUTES * 60 and mean_rate >= _ENOUGH_FOR_TEN_MINUTES
    return TEN_MINUTES if fine else HOUR


def ordinary_week(days: Days, across: Across) -> tuple[WeekSlot, ...]:
    """The week; empty where some time of the day was never seen."""
    combined = {weekday: _over_weeks(days, weekday, across) for weekday in range(7)}
    seen = [slots for slots in combined.values() if slots is not None]
    if not seen:
        return ()
    everyday = np.stack(seen)
    known = np.isfinite(everyday[:, 0])
    if not known.any(axis=0).all():
        return ()
    fallback = _busiest_weekday(everyday)
    minutes = 24 * 60 // days.slots
    return tuple(
        _slot(weekday, column * minutes, slots[:, column], fallback[:, column])
        for weekday, found in combined.items()
        for slots in [fallback if found is None else found]
        for column in range(days.slots)
    )


def _slot(weekday: int, minute: int, values: Combined, fallback: Combined) -> WeekSlot:
    rate, lowest, highest, mean, weeks = values if np.isfinite(values[0]) else fallback
    return WeekSlot(
        weekday=weekday,
        hour=minute // 60,
        minute=minute % 60,
        rate=float(rate),
        lowest=float(lowest),
        highest=float(highest),
        mean=float(mean),
        weeks=int(weeks),
    )


def _over_weeks(days: Days, weekday: int, across: Across) -> Combined | None:
    """Rate, lowest, highest, mean and number of weeks by slot; None where the weekday was never seen."""
    rows = days.weekdays == weekday
    busiest, mean = days.busiest[rows], days.mean[rows]
    there = np.isfinite(busiest).any(axis=0) if rows.any() else np.zeros(days.slots, dtype=bool)
    if not there.any():
        return None
    found = np.full((5, days.slots), np.nan)
    values = busiest[:, there]
    found[0, there] = np.nanmedian(values, axis=0) if across is Across.MEDIAN else np.nanmax(values, axis=0)
    found[1, there], found[2, there] = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    found[3, there] = np.nanmean(mean[:, there], axis=0)
    found[4] = np.isfinite(busiest).sum(axis=0)
    return found


def _busiest_weekday(everyday: Combined) -> Combined:
    """Slot by slot the values of the weekday with the highest rate; seen in no week of the weekday that takes them."""
    highest = np.nanargmax(everyday[:, 0], axis=0)
    found: Combined = everyday[highest, :, np.arange(everyday.shape[2])].T.copy()
    found[4] = 0
    return found
