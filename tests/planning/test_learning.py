"""Learning: the same numbers as the benchmark's history, gaps that are no zeros, days by the clock on the wall."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from servingplan.planning.learned import SLOTS, is_day_off
from servingplan.planning.learning import first_day, learn
from servingplan.planning.plan import Calendar, PoolCapacity, Rate, TreatAs
from servingplan.simulation import history
from servingplan.simulation.windows import running_sums
from servingplan.simulation.workload import Workload
from support.foresight import MISS_PRICE, MONDAY, UNIT, a_learner, past, restless_offices
from support.plans import a_plan

DAYS = 14
DAY = 1440
START = timedelta(minutes=5)
NEXT = MONDAY + timedelta(days=DAYS)


def as_workload(demand: np.ndarray) -> Workload:
    """The same as one lane of the benchmark: each minute is two slices, ten minutes are a recorded step."""
    slices = np.repeat(demand, 2).astype(np.float32)[:, None]
    days = [(MONDAY + timedelta(days=day)).weekday() >= 5 for day in range(len(demand) // DAY)]
    return Workload(
        demand=slices,
        sums=running_sums(slices),
        counted=np.ones_like(slices),
        rising=np.zeros_like(slices),
        rates=demand.reshape(-1, 10).mean(axis=1).astype(np.float32)[:, None],
        days_off=np.array(days),
        tenants=np.zeros(1, np.int64),
        step_s=600,
    )


@pytest.fixture(scope="module")
def demand() -> np.ndarray:
    return restless_offices(DAYS * DAY)


@pytest.mark.parametrize(
    ("mornings", "wild"),
    [
        pytest.param(range(1, DAYS), False, id="days that repeat each other"),
        pytest.param((2, DAYS - 1), True, id="days that do not"),
    ],
)
def test_every_morning_knows_what_the_benchmark_knows(demand, mornings, wild):
    if wild:
        demand = np.random.default_rng(3).permutation(demand.reshape(-1, 60)).reshape(-1)
    load = as_workload(demand)
    # The benchmark knows a price in replica-hours; what a plan states comes to one of these on each morning.
    prices = [MISS_PRICE * 24 * demand[: day * DAY].mean() for day in mornings]
    known = history.learn(load, start_s=START.total_seconds(), wait_limit_s=10, prices=prices)
    profile = history.profile(load)
    trust = history.trust(load, profile)

    for place, day in enumerate(mornings):
        found = learn(a_learner(), past(demand), start=START, day=MONDAY + timedelta(days=day))

        usual = found.usual_day(a_learner(), found.day)
        assert usual == pytest.approx(profile[day * SLOTS : (day + 1) * SLOTS, 0].tolist(), rel=1e-4)
        assert found.trust == pytest.approx(trust[day, 0], abs=1e-4)
        assert found.most == pytest.approx(known.most[day, 0], rel=1e-4)
        for room, theirs in ((found.rising, known.rising), (found.lasting, known.lasting)):
            assert room.room == pytest.approx(theirs.head_room[day, place, 0], rel=1e-3)
            hours = slice(day * 2880, (day + 1) * 2880, 120)
            spread = theirs.spread[hours, 0] / theirs.expected[hours, 0] ** 0.75
            assert room.by_hour == pytest.approx(spread.tolist(), rel=1e-3)
    assert (found.trust > 0.9) is not wild


def test_what_nobody_counted_is_no_zero(demand):
    gaps = demand.copy()
    for day in range(DAYS):  # a stretch of each day, another one every day
        gaps[day * DAY + day * 60 : day * DAY + day * 60 + 300] = math.nan

    whole, found = (learn(a_learner(), past(each), start=START, day=NEXT) for each in (demand, gaps))
    zeros = learn(a_learner(), past(np.nan_to_num(gaps)), start=START, day=NEXT)

    assert found.days == pytest.approx(DAYS * (1 - 300 / DAY))
    assert np.mean(np.abs(np.subtract(found.working, whole.working))) < 0.2
    assert np.mean(np.abs(np.subtract(zeros.working, whole.working))) > 0.4
    assert found.rising.room == pytest.approx(whole.rising.room, rel=0.1)
    assert zeros.rising.room > 1.1 * whole.rising.room
    assert found.most <= whole.most


@pytest.mark.parametrize(
    ("minutes", "days", "acts", "profile"),
    [
        pytest.param(0, 0.0, False, False, id="nothing"),
        pytest.param(DAY - 1, 1.0, False, False, id="not quite a day"),
        pytest.param(DAY, 1.0, True, False, id="a day tells how restless it is"),
        pytest.param(2 * DAY, 2.0, True, True, id="two days tell what is usual"),
    ],
)
def test_a_short_past_teaches_less(demand, minutes, days, acts, profile):
    lived = demand[: max(minutes, 0)]
    found = learn(a_learner(), past(lived), start=START, day=MONDAY + timedelta(days=max(1, math.ceil(minutes / DAY))))

    assert found.days == pytest.approx(days, abs=0.01)
    assert (found.rising is not None, found.lasting is not None, found.has_profile) == (acts, acts, profile)


def test_only_the_days_before_count_and_the_last_hours_are_kept(demand):
    half = replace(past(demand), rates=array("f", past(demand).rates[: 10 * DAY + 700]))
    tenth = MONDAY + timedelta(days=10)

    found, until_midnight = (
        learn(a_learner(), each, start=START, day=tenth) for each in (half, past(demand[: 10 * DAY]))
    )

    assert found.working == pytest.approx(until_midnight.working, rel=1e-5)
    assert found.rising.room == pytest.approx(until_midnight.rising.room, rel=1e-5)
    assert found.recent.start == datetime(2026, 3, 12, 8, 40, tzinfo=UTC)
    assert found.recent.rates == pytest.approx((demand[10 * DAY + 520 : 10 * DAY + 700] * UNIT).tolist(), rel=1e-5)


def test_slots_are_those_of_the_wall_on_both_sides_of_a_clock_change():
    """On 29 March 2026 Berlin's clocks go from 2 to 3 o'clock: the office opens an hour earlier for Prometheus."""
    berlin = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 3, 25, tzinfo=berlin).astimezone(UTC)
    minutes = round((datetime(2026, 4, 2, tzinfo=berlin).astimezone(UTC) - start) / timedelta(minutes=1))
    walls = [(start + timedelta(minutes=minute)).astimezone(berlin) for minute in range(minutes)]
    rates = [30.0 if 8 <= wall.hour < 18 else 5.0 for wall in walls]

    plan = a_learner(zone=berlin)
    found = learn(plan, replace(past(np.zeros(0)), start=start, rates=rates), start=START, day=date(2026, 4, 2))

    assert found.days == pytest.approx(8 - 1 / 24)
    for usual in (found.working, found.off):
        assert usual == pytest.approx([6.0 if 48 <= slot < 108 else 1.0 for slot in range(SLOTS)])
    assert found.planned(plan, datetime(2026, 4, 2, 6, tzinfo=UTC)) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("day", "treat_as", "off"),
    [
        pytest.param(date(2026, 3, 6), None, False, id="a Friday"),
        pytest.param(date(2026, 3, 7), None, True, id="a Saturday"),
        pytest.param(date(2026, 3, 6), TreatAs.BASE, True, id="a holiday"),
        pytest.param(date(2026, 3, 6), 6, True, id="a Friday that is treated as a Sunday"),
        pytest.param(date(2026, 3, 7), 0, False, id="a Saturday that is treated as a Monday"),
        pytest.param(date(2026, 3, 6), Rate(requests_per_second=Decimal(3)), True, id="a date with a rate of its own"),
    ],
)
def test_calendars_say_which_days_are_off(day, treat_as, off):
    calendars = () if treat_as is None else (Calendar(name="c", dates=frozenset({day}), treat_as=treat_as),)

    assert is_day_off(a_plan(calendars=calendars), day) is off


def test_the_unit_is_a_replica_of_the_smallest_pool(demand):
    capacity = replace(
        a_learner().capacity,
        points=(
            PoolCapacity(replicas=1, requests_per_second=Decimal(5)),
            PoolCapacity(replicas=8, requests_per_second=Decimal(9)),
        ),
    )
    found = learn(a_learner(capacity=capacity), past(demand), start=START, day=NEXT)

    assert found.unit == UNIT
    assert found.rising == learn(a_learner(), past(demand), start=START, day=NEXT).rising


def test_a_fortnight_is_looked_back_at():
    assert first_day(NEXT) == MONDAY


def test_a_plan_without_foresight_cannot_learn(demand):
    with pytest.raises(ValueError, match="asks for no foresight"):
        learn(a_plan(), past(demand), start=START, day=NEXT)


def test_a_large_plan_gets_as_much_head_room_as_a_small_one_in_its_own_spreads(demand):
    """The price grows with the plan: at one in replica-hours the large plan had a third of the small one's."""
    small, large = (learn(a_learner(), past(demand * size), start=START, day=NEXT) for size in (1, 20))

    assert large.rising.room > 0.8 * small.rising.room
