"""The last days of a plan's arrivals, laid out in slices of time.

In: arrivals by the minute. Out: `Days`, in replicas, with what they needed. Pure.

Days are local dates. What nobody counted is no zero: it is told apart everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from typing import TypeVar

from servingplan.planning.demand import first_instant
from servingplan.planning.learned import MINUTE, SLICE, SLOTS, Past, slot_of
from servingplan.planning.plan import Plan

T = TypeVar("T")

SLICE_S = round(SLICE.total_seconds())
PER_MINUTE = 60 // SLICE_S

WAIT_LIMIT_S = 10.0
"""How long a request may wait: within a burst, so much later is still in time."""

NEED_WINDOWS_S = (30, 60, 120, 300)
"""Over how long a burst is looked at. Shorter ones fit into the wait that is allowed; longer ones hold shorter ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Minutes laid out in slices of time, in replicas; what was not counted as 0, told apart by `gaps`.

    sums, gaps: of arrivals and of slices that were not counted, before each slice. need: the replicas that arrivals of
    the windows that end with each slice need. place, slot, hour: of each slice: its date, and its time of that date.
    """

    dates: Sequence[date]
    sums: Sequence[float]
    gaps: Sequence[int]
    need: Sequence[float]
    place: Sequence[int]
    slot: Sequence[int]
    hour: Sequence[int]

    @classmethod
    def of(cls, plan: Plan, past: Past, day: date, unit: float) -> Days:
        """The minutes of the days before `day`."""
        minutes = min(len(past.rates), max(0, (first_instant(plan, day) - past.start) // MINUTE))
        walls = [(past.start + minute * MINUTE).astimezone(plan.zone) for minute in range(minutes)]
        dates = sorted({wall.date() for wall in walls})
        places = {each: place for place, each in enumerate(dates)}
        rates = by_slice(past.rates[:minutes])
        known = [0.0 if math.isnan(rate) else rate / unit for rate in rates]
        sums = [0.0, *accumulate(known)]
        return cls(
            dates=dates,
            sums=sums,
            gaps=[0, *accumulate(math.isnan(rate) for rate in rates)],
            need=_need(sums),
            place=by_slice([places[wall.date()] for wall in walls]),
            slot=by_slice([slot_of(wall) for wall in walls]),
            hour=by_slice([wall.hour for wall in walls]),
        )

    @property
    def counted(self) -> timedelta:
        """How much of the time somebody counted."""
        return (len(self.need) - self.gaps[-1]) * SLICE

    def slot_means(self) -> list[list[float]]:
        """The mean of each slot of each day; NaN where nothing of it was counted."""
        totals = [[0.0] * SLOTS for _ in self.dates]
        counts = [[0] * SLOTS for _ in self.dates]
        for i, (place, slot) in enumerate(zip(self.place, self.slot, strict=True)):
            totals[place][slot] += self.sums[i + 1] - self.sums[i]
            counts[place][slot] += 1 - (self.gaps[i + 1] - self.gaps[i])
        return [
            [total / count if count else math.nan for total, count in zip(*both, strict=True)]
            for both in zip(totals, counts, strict=True)
        ]

    def mean_before(self, values: Sequence[float], slice_: int, window: int) -> float:
        """The mean of the counted ones of the last `window` slices; `values`: sums like `sums`, 0 at gaps."""
        begin = max(0, slice_ - window)
        counted = slice_ - begin - (self.gaps[slice_] - self.gaps[begin])
        return (values[slice_] - values[begin]) / max(counted, 1)


def by_slice(by_minute: Iterable[T]) -> list[T]:
    """What holds for a minute, for each of its slices."""
    return [value for value in by_minute for _ in range(PER_MINUTE)]


def _need(sums: Sequence[float]) -> list[float]:
    """The largest of arrivals(L) / (L + wait) over windows L that end with each slice."""
    slices = len(sums) - 1
    result = [0.0] * slices
    for seconds in NEED_WINDOWS_S:
        window = min(seconds // SLICE_S, slices)
        worth = SLICE_S / (window * SLICE_S + WAIT_LIMIT_S)
        found = [(after - before) * worth for before, after in zip(sums, sums[window:], strict=False)]
        place = max(0, window - 1)
        result[place:] = map(max, result[place:], found)
    return result
