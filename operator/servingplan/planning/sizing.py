"""Replicas from a rate: the need, and the total with its reserve inside the bounds.

In: a rate in requests/s, capacity, reserve, bounds. Out: counts. Exact: rates are decimal and capacities
between two measured pool sizes are fractions, so that 15.0 requests/s at 5 is 3 replicas, never 4.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from servingplan.planning.plan import Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many replicas serve a rate: `replicas` up to the maximum, `unbounded` without one."""

    replicas: int
    unbounded: int


def capacity_per_replica(capacity: Capacity, pool_size: int) -> Fraction:
    """Goodput of one replica (requests/s) in a pool of `pool_size`.

    Linear between the measured pool sizes, constant before the first and beyond the last.
    """
    points = capacity.points
    if pool_size <= points[0].replicas:
        return Fraction(points[0].requests_per_second)
    for low, high in itertools.pairwise(points):
        if pool_size <= high.replicas:
            share = Fraction(pool_size - low.replicas, high.replicas - low.replicas)
            rise = Fraction(high.requests_per_second) - Fraction(low.requests_per_second)
            return Fraction(low.requests_per_second) + share * rise
    return Fraction(points[-1].requests_per_second)


def need(rate: Decimal, capacity: Capacity, maximum: int) -> Need:
    """The smallest n with n x capacity(n) >= rate."""
    unbounded = _smallest_pool(rate, capacity)
    return Need(replicas=min(unbounded, maximum), unbounded=unbounded)


@lru_cache(maxsize=8192)
def _smallest_pool(rate: Decimal, capacity: Capacity) -> int:
    # Cached by value: a profile asks for the same few rates thousands of times.
    wanted = Fraction(rate)
    largest = capacity.points[-1]
    for n in range(largest.replicas):
        if n * capacity_per_replica(capacity, n) >= wanted:
            return n
    # From the largest measured pool on, capacity per replica is constant: n >= rate / capacity.
    return max(largest.replicas, math.ceil(wanted / Fraction(largest.requests_per_second)))
