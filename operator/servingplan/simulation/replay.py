"""Which head room the past days would have paid for: every night, the past is replayed with all of them.

In: the ledger of a fleet that ran with every margin, side by side. Out: the margin to use, by day, at a price. The
price says what a missed request is worth; one price for all tenants spends head room where it saves the most requests,
and none where the last misses are dear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.fleet import Ledger

FIRST_DAY = 3
"""Days before it are not replayed: margins had hardly been learned."""

PRIOR = 0.1
"""How much of the misses is believed of what a margin was to leave, half of its share: few days hold few rises."""

AGE_WEIGHT = 0.85
"""What a replayed day weighs against the day after it."""

_HOURS = 24

_LEAST = 1e-9
"""Requests. A day without any has none that were missed."""


def choose_margins(ledger: Ledger, shares: Sequence[float], prices: Sequence[float]) -> NDArray[np.int64]:
    """The place of the margin with the least replica-hours + price x misses on earlier days, by [day, price, lane].

    shares: what each margin of the ledger was to leave. prices: how many replica-hours it is worth not to miss all
    requests of a day; 1 % of them is worth a hundredth.
    """
    cost, good, requests = hours_of(ledger), _by_day(ledger.good), _by_day(ledger.requests)
    days = len(cost)
    left = np.array(shares)[:, None] / 2
    price = np.array(prices)[:, None, None]
    chosen = np.zeros((days, len(prices), cost.shape[2]), np.int64)
    for day in range(1, days):
        first = min(FIRST_DAY, day - 1)
        weights = AGE_WEIGHT ** np.arange(day - first - 1, -1, -1)
        asked = np.tensordot(weights, requests[first:day], 1)
        late = asked - np.tensordot(weights, good[first:day], 1)
        missed = (1 - PRIOR) * late / np.maximum(asked, _LEAST) + PRIOR * left
        spent = np.tensordot(weights / weights.sum(), cost[first:day], 1)
        chosen[day] = np.argmin(spent + price * missed, axis=1)
    return chosen


def hours_of(ledger: Ledger) -> NDArray[np.float64]:
    """Replica-hours by [day, setting, lane], of all kinds."""
    return _by_day(ledger.serving) + _by_day(ledger.reserve) + _by_day(ledger.starting) + _by_day(ledger.draining)


def _by_day(hourly: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(hourly.reshape(-1, _HOURS, *hourly.shape[1:]).sum(axis=1, dtype=np.float64))
