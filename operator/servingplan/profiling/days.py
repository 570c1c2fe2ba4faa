"""Arrivals by local date and slot of the day: each slot by its busiest five minutes, and by its mean. Pure.

In: arrivals by the step, and a zone. Out: `Days`. Wall times become instants by the rules of ``planning.calendar``:
the hour that an autumn change doubles is one slot twice as long, the one that a spring change skips has no value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from servingplan.planning.calendar import dates_between, local_date, slot_edges
from servingplan.profiling.tally import Arrivals

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUSIEST_SECONDS = 300
"""What a profile states of each slot: the API's busiest five minutes."""

_COVERED = 0.8
"""A slot counts from this share of its steps on: the first and the last of a log are rarely whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Requests/s by date (rows) and slot of the day (columns); NaN where the log does not cover the slot.

    busiest: of the busiest five minutes. mean: of the whole slot.
    """

    dates: tuple[date, ...]
    busiest: NDArray[np.float64]
    mean: NDArray[np.float64]

    @property
    def slots(self) -> int:
        """Slots of a day: 24 or 144."""
        return int(self.mean.shape[1])

    @property
    def weekdays(self) -> NDArray[np.int_]:
        """The weekday of each row, 0 for Monday."""
        return np.array([day.weekday() for day in self.dates], dtype=np.int_)

    @property
    def totals(self) -> NDArray[np.float64]:
        """Mean requests/s of each date; NaN where less than most of it is covered."""
        covered = np.isfinite(self.mean).mean(axis=1) >= _COVERED
        totals = np.full(len(self.dates), np.nan)
        totals[covered] = np.nanmean(self.mean[covered], axis=1)
        return totals

    def without(self, rows: NDArray[np.bool_]) -> Days:
        """The same with whole dates taken out: their slots have no value."""
        return self._blanked(np.broadcast_to(rows[:, None], self.mean.shape))

    def without_slots(self, slots: NDArray[np.bool_]) -> Days:
        """The same with single slots taken out."""
        return self._blanked(slots)

    def _blanked(self, out: NDArray[np.bool_]) -> Days:
        return replace(self, busiest=np.where(out, np.nan, self.busiest), mean=np.where(out, np.nan, self.mean))


def by_date(arrivals: Arrivals, zone: ZoneInfo, slots: int) -> Days:
    """The dates that arrivals touch, in `slots` slots a day."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (arrivals.start, arrivals.end - 1))
    dates = dates_between(local_date(first, zone), local_date(last, zone))
    edges = np.array([[edge.timestamp() for edge in slot_edges(day, slots, zone)] for day in dates])
    places = np.round((edges - arrivals.start) / arrivals.step).astype(int)
    busiest, mean = (np.full((len(dates), slots), np.nan) for _ in range(2))
    width = max(1, round(BUSIEST_SECONDS / arrivals.step))
    for row, column in np.ndindex(len(dates), slots):
        start, end = places[row, column], places[row, column + 1]
        counts = arrivals.counts[max(start, 0) : max(end, 0)]
        if end <= start or np.isfinite(counts).sum() < _COVERED * (end - start):
            continue
        mean[row, column] = np.nanmean(counts) / arrivals.step
        busiest[row, column] = _busiest(counts, width) / (width * arrivals.step)
    return Days(dates=dates, busiest=busiest, mean=mean)


def _busiest(counts: NDArray[np.float64], width: int) -> float:
    """The most requests in any `width` steps in a row."""
    sums = np.concatenate(([0.0], np.cumsum(np.nan_to_num(counts))))
    return float(np.max(sums[width:] - sums[:-width])) if len(counts) >= width else float(np.nansum(counts))
