"""How much of a week is known before it comes, and whether a schedule will help. Pure.

In: arrivals by date and hour, without days off. Out: `Predictability`. Below one half a schedule was measured to be
worth nothing, or less than nothing, against feedback alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from servingplan.profiling.days import Days

if TYPE_CHECKING:
    from numpy.typing import NDArray

HELPS_FROM = 0.5
"""Of the share explained, or of the autocorrelation at 24 hours where there is no second week."""

_STEADY = 0.15
"""Hourly means that spread by less than this share of their mean are one level: a schedule has nothing to follow."""

_DAY, _WEEK = 24, 168
_FEWEST_PAIRS = 24
_HELD_OUT_DAYS = 7


class Verdict(StrEnum):
    """Whether a schedule helps."""

    SCHEDULE = "Schedule"
    STEADY = "Steady"
    FEEDBACK_ALONE = "FeedbackAlone"
    TOO_SHORT = "TooShort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictability:
    """What the past said of the last week.

    explained: share of the last week's variance of hourly rates that the weeks before explain; 1 is all, 0 as much as
    one level, below 0 less than that. level: the last week's requests over what the weeks before led to expect.
    autocorrelation: of hourly rates at 24 and 168 hours. None where the log is too short.
    """

    explained: float | None
    level: float | None
    autocorrelation_24h: float | None
    autocorrelation_168h: float | None
    verdict: Verdict


def predictability(days: Days) -> Predictability:
    """Of hourly rates. days: in 24 slots."""
    hours = days.mean.ravel()
    daily, weekly = _autocorrelation(hours, _DAY), _autocorrelation(hours, _WEEK)
    explained, level = _held_out(days)
    return Predictability(
        explained=explained,
        level=level,
        autocorrelation_24h=daily,
        autocorrelation_168h=weekly,
        verdict=_verdict(hours, explained if explained is not None else daily),
    )


def _verdict(hours: NDArray[np.float64], known: float | None) -> Verdict:
    there = hours[np.isfinite(hours)]
    if len(there) >= _DAY and np.std(there) <= _STEADY * np.mean(there):
        return Verdict.STEADY
    if known is None:
        return Verdict.TOO_SHORT
    return Verdict.SCHEDULE if known >= HELPS_FROM else Verdict.FEEDBACK_ALONE


def _autocorrelation(hours: NDArray[np.float64], lag: int) -> float | None:
    earlier, later = hours[:-lag], hours[lag:]
    both = np.isfinite(earlier) & np.isfinite(later)
    if both.sum() < _FEWEST_PAIRS or not np.std(earlier[both]) or not np.std(later[both]):
        return None
    return float(np.corrcoef(earlier[both], later[both])[0, 1])


def _held_out(days: Days) -> tuple[float | None, float | None]:
    """The last seven dates against the ordinary week of those before. None where these are fewer than seven."""
    totals = np.isfinite(days.totals)
    if not totals.any():
        return None, None
    last = days.dates[int(np.flatnonzero(totals)[-1])]
    held = np.array([last - timedelta(days=_HELD_OUT_DAYS) < day <= last for day in days.dates])
    before = np.array([day <= last - timedelta(days=_HELD_OUT_DAYS) for day in days.dates])
    if (before & totals).sum() < _HELD_OUT_DAYS - 1 or len(days.dates) < 2 * _HELD_OUT_DAYS:
        return None, None
    expected = np.array([_median(days.mean[before & (days.weekdays == day.weekday())]) for day in days.dates])
    observed, predicted = days.mean[held].ravel(), expected[held].ravel()
    both = np.isfinite(observed) & np.isfinite(predicted)
    spread = float(np.sum((observed[both] - np.nanmean(days.mean[before])) ** 2)) if both.any() else 0.0
    if not spread or not np.sum(predicted[both]):
        return None, None
    missed = float(np.sum((observed[both] - predicted[both]) ** 2))
    return 1 - missed / spread, float(np.sum(observed[both]) / np.sum(predicted[both]))


def _median(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.full(rows.shape[1], np.nan)
    there = np.isfinite(rows).any(axis=0)
    if there.any():
        found[there] = np.nanmedian(rows[:, there], axis=0)
    return found
