"""Which capacity counts: no result of something else ever lowers what the capacity before asks for."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.measured import Measured
from servingplan.planning.plan import Capacity, PoolCapacity
from servingplan.planning.sizing import in_use, lower, need
from servingplan.rendering.capacity import as_in_use, capacity_from_wire, capacity_to_wire
from support.plans import a_plan

RATES = st.decimals(min_value="0.001", max_value="1000", places=3)
CAPACITIES = st.dictionaries(st.integers(1, 64), RATES, min_size=1, max_size=5).map(
    lambda sizes: a_capacity(*sorted(sizes.items()))
)
DEMANDS = st.decimals(min_value=0, max_value=100_000, places=3)


def a_capacity(*points: tuple[int, Decimal | str], source: str = "plan") -> Capacity:
    return Capacity(
        points=tuple(PoolCapacity(replicas=size, requests_per_second=Decimal(rate)) for size, rate in points),
        source=source,
    )


@given(found=CAPACITIES, before=CAPACITIES, rate=DEMANDS)
def test_what_is_not_current_never_asks_for_fewer_replicas_than_what_was_used_before(
    found: Capacity, before: Capacity, rate: Decimal
) -> None:
    used = in_use(found, before, current=False)
    assert need(rate, used, 10_000).unbounded >= need(rate, before, 10_000).unbounded
    assert need(rate, used, 10_000).unbounded >= need(rate, found, 10_000).unbounded


@given(found=CAPACITIES, before=CAPACITIES)
def test_what_is_held_is_the_same_after_any_number_of_looks_and_restarts(found: Capacity, before: Capacity) -> None:
    used = in_use(found, before, current=False)
    restored = capacity_from_wire({"capacity": capacity_to_wire(used)})
    assert restored == used
    assert in_use(found, restored, current=False) == used


@given(found=CAPACITIES, before=CAPACITIES)
def test_what_is_current_counts_whatever_was_used_before(found: Capacity, before: Capacity) -> None:
    assert in_use(found, before, current=True) is found


def test_the_first_result_counts_for_want_of_another() -> None:
    found = a_capacity((1, "5"))
    assert in_use(found, None, current=False) is found


def test_a_capacity_that_is_lower_everywhere_stays_what_it_is_and_where_it_is_from() -> None:
    low, high = a_capacity((1, "3"), source="plan"), a_capacity((1, "4"), (8, "6"), source="l40s")
    assert lower(high, low) is low
    assert lower(low, high) is low


def test_of_two_that_cross_the_lower_one_counts_at_each_size() -> None:
    rising, flat = a_capacity((1, "2"), (9, "6")), a_capacity((1, "4"))
    assert [(p.replicas, p.requests_per_second) for p in lower(rising, flat).points] == [(1, 2), (9, 4)]


def test_the_command_line_reckons_with_the_capacity_that_the_operator_holds() -> None:
    plan = a_plan(capacity=a_capacity((1, "9"), source="l40s"), measured=Measured(benchmark="l40s"))
    held = {"capacity": capacity_to_wire(a_capacity((1, "5"), source="l40s"))}
    said = {"type": "CapacityCurrent", "status": "False"}
    assert as_in_use(plan, {**held, "conditions": [said]}).capacity == a_capacity((1, "5"))
    assert as_in_use(plan, {**held, "conditions": [{**said, "status": "True"}]}) is plan
    assert as_in_use(plan, {}) is plan


def test_status_without_a_capacity_that_serves_holds_nothing() -> None:
    assert capacity_from_wire({}) is None
    assert capacity_from_wire({"capacity": {"requestsPerSecond": 0.0, "source": "plan"}}) is None
