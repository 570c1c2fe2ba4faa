"""Replicas from rates: exact, and by the pool's size."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.plan import Capacity, PoolCapacity
from servingplan.planning.sizing import Need, capacity_per_replica, need
from support.naive import replicas_for
from support.plans import a_capacity
from support.strategies import capacities, rates


def a_pool(**goodput: str) -> Capacity:
    """``a_pool(of1="2.4", of8="3.4")``."""
    return Capacity(
        points=tuple(
            PoolCapacity(replicas=int(size.removeprefix("of")), requests_per_second=Decimal(c))
            for size, c in goodput.items()
        )
    )


POOL = a_pool(of2="2.4", of8="3.6")

EXACT = {
    "the worked example": ("18", "5", 4),
    "its quiet hours": ("2", "5", 1),
    "a rate that divides exactly": ("15.0", "5", 3),
    "a hair above": ("15.000001", "5", 4),
    "tenths that binary numbers miss": ("0.3", "0.1", 3),
    "tenths beyond binary precision": ("1.1", "0.1", 11),
    "nothing": ("0", "5", 0),
    "almost nothing": ("0.000001", "5", 1),
    "less than a request a second each": ("1", "0.07", 15),
    "a million": ("1000000", "5", 200_000),
    "a million by thirds of a hundredth": ("1000000", "0.03", 33_333_334),
}


@pytest.mark.parametrize(("rate", "capacity", "replicas"), EXACT.values(), ids=EXACT)
def test_the_need_is_exact(rate: str, capacity: str, replicas: int) -> None:
    size = need(Decimal(rate), a_capacity(capacity), 10**9)
    assert size == Need(replicas=replicas, unbounded=replicas)


def test_the_need_stops_at_the_maximum_and_tells_what_it_would_be() -> None:
    assert need(Decimal(40), a_capacity("5"), 6) == Need(replicas=6, unbounded=8)


BY_SIZE = {0: "2.4", 1: "2.4", 2: "2.4", 3: "2.6", 5: "3.0", 8: "3.6", 9: "3.6", 10_000: "3.6"}


@pytest.mark.parametrize(("size", "goodput"), BY_SIZE.items(), ids=str)
def test_capacity_is_linear_between_pool_sizes_and_constant_beyond(size: int, goodput: str) -> None:
    assert capacity_per_replica(POOL, size) == Fraction(goodput)


BY_POOL = {
    "two at 2.4": ("4.8", 2),
    "a little more: three at 2.6": ("4.81", 3),
    "three exactly": ("7.8", 3),
    "eight exactly": ("28.8", 8),
    "beyond the last point": ("32.4", 9),
    "far beyond": ("3600", 1000),
}


@pytest.mark.parametrize(("rate", "replicas"), BY_POOL.values(), ids=BY_POOL)
def test_the_need_follows_the_pool_size(rate: str, replicas: int) -> None:
    assert need(Decimal(rate), POOL, 10_000).replicas == replicas


def test_the_smallest_pool_that_serves_wins_though_a_larger_one_does_not() -> None:
    """A router that collapses: 2 x 5 = 10, but 4 x 1 = 4."""
    collapsing = a_pool(of2="5", of4="1")
    assert [need(Decimal(r), collapsing, 20).replicas for r in (5, 10, 11)] == [1, 2, 11]


@given(rates(), capacities(), st.integers(1, 200))
def test_the_need_equals_trying_one_by_one(rate: Decimal, capacity: Capacity, maximum: int) -> None:
    assert need(rate, capacity, maximum).replicas == replicas_for(rate, capacity, maximum)


@given(rates(), rates(), capacities())
def test_more_demand_never_needs_fewer(rate: Decimal, more: Decimal, capacity: Capacity) -> None:
    lower, higher = need(rate, capacity, 10**6), need(rate + more, capacity, 10**6)
    assert lower.replicas <= higher.replicas
    assert lower.unbounded <= higher.unbounded
