"""Replicas from a rate: the need, and the total with its reserve inside the bounds.

In: a rate in requests/s, capacity, reserve, bounds. Out: counts. Exact: rates are decimal and capacities
between two measured pool sizes are fractions, so that 15.0 requests/s at 5 is 3 replicas, never 4.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from servingplan.planning.plan import Capacity, PoolCapacity


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


def in_use(found: Capacity, before: Capacity | None, *, current: bool) -> Capacity:
    """The capacity that counts: what was found, where it is `current` or the first; else never more than `before`.

    So what was measured of something else never lowers the replicas that the capacity used before asks for.
    """
    return found if current or before is None else lower(found, before)


def lower(one: Capacity, other: Capacity) -> Capacity:
    """A capacity that asks, at any rate, for at least as many replicas as each of both.

    It takes the smaller one at every size that either measured: in between, both are linear, and the smaller of two
    lines lies on or above the line between its ends. One of both is returned as it is where it is the lower everywhere.
    """
    sizes = sorted({point.replicas for capacity in (one, other) for point in capacity.points})
    ours, theirs = ([capacity_per_replica(capacity, size) for size in sizes] for capacity in (one, other))
    smaller = [min(pair) for pair in zip(ours, theirs, strict=True)]
    if smaller == theirs:
        return other
    if smaller == ours:
        return one
    points = zip(sizes, smaller, strict=True)
    return replace(
        other,
        points=tuple(PoolCapacity(replicas=size, requests_per_second=_rounded_down(rate)) for size, rate in points),
    )


_DIGITS = 9
"""Significant digits of a capacity between two points: it must come back from JSON as it went in."""


def _rounded_down(rate: Fraction) -> Decimal:
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return context.divide(Decimal(rate.numerator), Decimal(rate.denominator))


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
