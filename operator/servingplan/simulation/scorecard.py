"""The scorecard of a run: attainment and replica-hours, over some days.

In: a `Ledger`. Out: figures by [setting, lane]. A dropped request counts as missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.fleet import Ledger
from servingplan.simulation.history import profile
from servingplan.simulation.windows import Array
from servingplan.simulation.workload import DAY_S, SLICE_S, WEEK_HOURS, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Whole days, the end not included, counted from 0."""

    first_day: int
    end_day: int

    @property
    def hours(self) -> slice:
        """Its hours in a ledger."""
        return slice(self.first_day * 24, self.end_day * 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """By [setting, lane]. Attainments are shares of requests, NaN where there are none; the rest are replica-hours."""

    attainment: NDArray[np.float64]
    rising: NDArray[np.float64]
    serving: NDArray[np.float64]
    reserve: NDArray[np.float64]
    starting: NDArray[np.float64]
    draining: NDArray[np.float64]

    @property
    def hours(self) -> NDArray[np.float64]:
        """Replica-hours of all kinds."""
        return self.serving + self.reserve + self.starting + self.draining


def scored(ledger: Ledger, period: Period) -> Score:
    """The score of a period."""

    def total(hourly: Array) -> NDArray[np.float64]:
        return np.asarray(hourly[period.hours].sum(axis=0, dtype=np.float64))

    return Score(
        attainment=_share(total(ledger.good), total(ledger.requests)),
        rising=_share(total(ledger.rising_good), total(ledger.rising_requests)),
        serving=total(ledger.serving),
        reserve=total(ledger.reserve),
        starting=total(ledger.starting),
        draining=total(ledger.draining),
    )


def by_hour_of_week(ledger: Ledger, period: Period) -> NDArray[np.float64]:
    """Attainment by [hour of the week, setting, lane]; the week begins with the period."""
    good, requests = ledger.good[period.hours], ledger.requests[period.hours]
    weeks = -(-len(good) // WEEK_HOURS)
    padding = weeks * WEEK_HOURS - len(good)

    def folded(hourly: Array) -> NDArray[np.float64]:
        padded = np.concatenate([hourly, np.zeros((padding, *hourly.shape[1:]), hourly.dtype)])
        return np.asarray(padded.reshape(weeks, WEEK_HOURS, *hourly.shape[1:]).sum(axis=0, dtype=np.float64))

    return _share(folded(good), folded(requests)[:, None])


def above_plan(load: Workload, period: Period) -> NDArray[np.float64]:
    """The share of requests, by lane, that came on top of the learned profile's rate."""
    slices = slice(period.first_day * DAY_S // SLICE_S, period.end_day * DAY_S // SLICE_S)
    planned = load.by_slice(profile(load))[slices]
    demand, counted = load.demand[slices], load.counted[slices]
    above = (np.maximum(demand - planned, 0) * counted).sum(axis=0, dtype=np.float64)
    return _share(above, (demand * counted).sum(axis=0, dtype=np.float64))


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, NaN where the whole is nothing."""
    whole = np.broadcast_to(whole, part.shape)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
