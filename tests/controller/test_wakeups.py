"""The heap of next changes, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.controller.wakeups import Wakeups

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class MovedClock:
    """Shows what the test says. Real seconds are a thousandth of its own, so that sleeps are short."""

    def __init__(self) -> None:
        self.shown = NOON

    def now(self) -> datetime:
        return self.shown

    def seconds_until(self, instant: datetime) -> float:
        return max(0.0, (instant - self.shown).total_seconds() / 1000)

    def to_real(self, instant: datetime) -> datetime:
        return instant

    def from_real(self, instant: datetime) -> datetime:
        return instant

    def describe(self) -> str:
        return "moved by a test"


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def woken() -> list[str]:
    return []


@pytest.fixture
def wakeups(clock: MovedClock, woken: list[str]) -> Wakeups[str]:
    return Wakeups(clock=clock, wake=woken.append, recheck_s=0.001)


def test_a_key_is_woken_at_its_instant_and_not_before(wakeups, clock, woken) -> None:
    wakeups.schedule("a", at(10))
    clock.shown = at(10) - timedelta(microseconds=1)
    assert wakeups.fire_due() == ()
    clock.shown = at(10)
    wakeups.fire_due()
    assert woken == ["a"]


def test_a_key_is_woken_once(wakeups, clock, woken) -> None:
    wakeups.schedule("a", at(10))
    clock.shown = at(20)
    wakeups.fire_due()
    wakeups.fire_due()
    assert woken == ["a"]


@pytest.mark.parametrize(("first", "then"), [(10, 30), (30, 10)], ids=["later", "earlier"])
def test_a_new_instant_replaces_the_old_one(wakeups, clock, woken, first: int, then: int) -> None:
    wakeups.schedule("a", at(first))
    wakeups.schedule("a", at(then))
    clock.shown = at(then - 1)
    wakeups.fire_due()
    assert woken == []
    clock.shown = at(60)
    wakeups.fire_due()
    assert woken == ["a"]
    assert len(wakeups) == 0


@pytest.mark.parametrize("cancel", [lambda w: w.cancel("a"), lambda w: w.schedule("a", None)], ids=["cancel", "none"])
def test_a_cancelled_key_is_not_woken(wakeups, clock, woken, cancel) -> None:
    wakeups.schedule("a", at(10))
    wakeups.schedule("b", at(10))
    cancel(wakeups)
    clock.shown = at(10)
    wakeups.fire_due()
    assert woken == ["b"]
    assert wakeups.when("a") is None


def test_keys_are_woken_in_the_order_of_their_instants(wakeups, clock, woken) -> None:
    for minutes in (30, 10, 20):
        wakeups.schedule(f"at {minutes}", at(minutes))
    clock.shown = at(60)
    wakeups.fire_due()
    assert woken == ["at 10", "at 20", "at 30"]


def test_a_key_may_schedule_itself_while_it_is_woken(clock) -> None:
    woken: list[str] = []

    def wake(key: str) -> None:
        woken.append(key)
        wakeups.schedule(key, at(10))  # due again at once: for the next round, not for this one

    wakeups = Wakeups(clock=clock, wake=wake)
    wakeups.schedule("a", at(10))
    clock.shown = at(10)
    assert wakeups.fire_due() == ("a",)
    assert woken == ["a"]


def test_a_clock_that_goes_back_wakes_nothing_early(wakeups, clock, woken) -> None:
    wakeups.schedule("a", at(10))
    clock.shown = at(-600)
    wakeups.fire_due()
    assert woken == []
    assert wakeups.when("a") == at(10)


def test_an_instant_without_offset_is_refused(wakeups) -> None:
    with pytest.raises(ValueError, match="no offset"):
        wakeups.schedule("a", datetime(2026, 12, 1, 12))  # noqa: DTZ001  the defect under test


def test_replaced_instants_do_not_pile_up(wakeups) -> None:
    for second in range(10_000):
        wakeups.schedule("a", NOON + timedelta(days=1, seconds=second))
    assert len(wakeups._heap) < 200


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 10))))
def test_after_any_history_exactly_the_due_keys_are_woken(steps) -> None:
    clock, woken, expected = MovedClock(), [], {}
    wakeups = Wakeups(clock=clock, wake=woken.append)
    for key, minutes, passed in steps:
        wakeups.schedule(key, None if minutes is None else at(minutes))
        expected.pop(key, None)
        if minutes is not None:
            expected[key] = at(minutes)
        clock.shown += timedelta(minutes=passed)
        woken.clear()
        wakeups.fire_due()
        due = {key for key, when in expected.items() if when <= clock.shown}
        assert sorted(woken) == sorted(due)
        expected = {key: when for key, when in expected.items() if key not in due}


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_the_loop_notices_a_clock_that_jumps_while_it_sleeps(wakeups, clock, woken) -> None:
    wakeups.schedule("a", at(60 * 24 * 365))
    running = asyncio.create_task(wakeups.run())
    await asyncio.sleep(0.005)
    clock.shown = at(60 * 24 * 365)
    await until(lambda: woken)
    running.cancel()
    assert woken == ["a"]


async def test_the_loop_notices_an_earlier_instant_while_it_sleeps(clock, woken) -> None:
    wakeups = Wakeups(clock=clock, wake=woken.append, recheck_s=3600)
    wakeups.schedule("late", at(60 * 24 * 365))
    running = asyncio.create_task(wakeups.run())
    await asyncio.sleep(0)
    wakeups.schedule("now", at(0))
    await until(lambda: woken)
    running.cancel()
    assert woken == ["now"]
