"""The faster clock: a function of real time, its own inverse, and hard to switch on by mistake."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.controller.clock import AcceleratedClock, SystemClock, parse_demo_clock, system_now
from servingplan.errors import UsageError

REAL = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
START = datetime.fromisoformat("2026-12-01T06:30:00+01:00")


def clock(*, factor: str = "60", passed: timedelta = timedelta(0)) -> AcceleratedClock:
    return AcceleratedClock(start=START, since=REAL, factor=Fraction(factor), real_now=lambda: REAL + passed)


def test_a_second_at_sixty_fold_is_a_minute() -> None:
    assert clock(passed=timedelta(seconds=1)).now() == START + timedelta(minutes=1)


def test_the_present_is_aware_and_in_utc() -> None:
    assert clock().now().tzinfo is UTC
    assert SystemClock().now().tzinfo is UTC


def test_an_hour_away_at_sixty_fold_is_a_minute_to_sleep() -> None:
    assert clock().seconds_until(START + timedelta(hours=1)) == 60


def test_what_is_past_needs_no_sleep() -> None:
    assert clock().seconds_until(START - timedelta(hours=1)) == 0
    assert SystemClock().seconds_until(REAL - timedelta(days=36500)) == 0


def test_timestamps_of_the_cluster_are_shown_on_the_clock_and_back() -> None:
    written = REAL + timedelta(seconds=30)
    assert clock().from_real(written) == START + timedelta(minutes=30)
    assert clock().to_real(START + timedelta(minutes=30)) == written


def test_the_clock_goes_back_when_the_real_one_does() -> None:
    assert clock(passed=timedelta(seconds=-1)).now() == START - timedelta(minutes=1)


def test_a_restarted_process_shows_the_same_instants() -> None:
    passed = timedelta(seconds=7, microseconds=123457)
    first = clock(factor="97.3", passed=passed)
    again = parse_demo_clock(first.describe(), real_now=lambda: REAL + passed)
    assert again.now() == first.now()
    assert again.describe() == first.describe()


@given(
    microseconds=st.integers(-(10**12), 10**12),
    factor=st.one_of(st.integers(1, 3600).map(Fraction), st.fractions(1, 3600, max_denominator=100)),
)
def test_there_and_back_is_the_same_instant_to_the_microsecond(microseconds: int, factor: Fraction) -> None:
    faster = AcceleratedClock(start=START, since=REAL, factor=factor, real_now=lambda: REAL)
    real = REAL + timedelta(microseconds=microseconds)
    assert abs(faster.to_real(faster.from_real(real)) - real) <= timedelta(microseconds=1)


@given(seconds=st.lists(st.integers(-(10**7), 10**7), min_size=2, max_size=2, unique=True))
def test_later_is_shown_later(seconds: list[int]) -> None:
    earlier, later = (clock(factor="1.5").from_real(REAL + timedelta(seconds=s)) for s in sorted(seconds))
    assert earlier < later


@pytest.mark.parametrize("years", [-50, 50])
def test_objects_that_are_far_older_than_the_demo_are_shown_a_century_away(years: int) -> None:
    shown = clock(factor="600").from_real(REAL + timedelta(days=365 * years))
    assert abs(shown - START) == timedelta(days=36525)


def test_without_an_anchor_the_clock_starts_now() -> None:
    parsed = parse_demo_clock("2026-12-01T06:30:00+01:00@60x", real_now=lambda: REAL)
    assert parsed.now() == START
    assert parsed.since == REAL


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("60x", "cannot be read", id="factor alone"),
        pytest.param("2026-12-01T06:30:00+01:00", "cannot be read", id="time alone"),
        pytest.param("2026-12-01T06:30:00+01:00@60", "cannot be read", id="no x"),
        pytest.param("2026-12-01T06:30:00+01:00@-2x", "cannot be read", id="backwards"),
        pytest.param("2026-12-01T06:30:00+01:00@0x", "from 1x to 3600x", id="standing"),
        pytest.param("2026-12-01T06:30:00+01:00@0.5x", "from 1x to 3600x", id="slower"),
        pytest.param("2026-12-01T06:30:00+01:00@3601x", "from 1x to 3600x", id="too fast"),
        pytest.param("2026-12-01T06:30:00@60x", "needs an offset", id="start without offset"),
        pytest.param("tomorrow@60x", "start 'tomorrow' is no time", id="no time"),
        pytest.param(
            "2026-12-01T06:30:00Z@60x,since=2026-11-29T20:00:00", "since '2026-11-29T20:00:00' needs", id="since"
        ),
        pytest.param("2026-12-01T06:30:00Z@60x,since=now", "since 'now' is no time", id="since no time"),
        pytest.param("2026-12-01T06:30:00Z@60x,2026-12-01T07:30:00Z@0x", "from 1x to", id="later it stands"),
        pytest.param("2026-12-01T06:30:00Z@60x,2026-12-01T06:30:00Z@9x", "is not after", id="two speeds at once"),
        pytest.param("since=2026-11-29T20:00:00Z", "cannot be read", id="since alone"),
        pytest.param("2026-12-01T06:30:00Z@60x,until=2026-12-01T06:30:00Z", "cannot be read", id="unknown word"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="demo clock") as refused:
        parse_demo_clock(text)
    assert says in str(refused.value)


LATER = START + timedelta(hours=1)


def varying(passed: timedelta = timedelta(0)) -> AcceleratedClock:
    """A second an hour for one hour, a second a minute for the next one, and a second an hour again."""
    then = ((LATER, Fraction(60)), (LATER + timedelta(hours=1), Fraction(3600)))
    return AcceleratedClock(start=START, since=REAL, factor=Fraction(3600), then=then, real_now=lambda: REAL + passed)


@pytest.mark.parametrize(
    ("seconds", "hours"),
    [(-1, -1), (0, 0), (0.5, 0.5), (1, 1), (31, 1.5), (61, 2), (62, 3)],
)
def test_a_clock_may_go_faster_where_nothing_is_due(seconds: float, hours: float) -> None:
    real, shown = REAL + timedelta(seconds=seconds), START + timedelta(hours=hours)
    assert (varying().from_real(real), varying().to_real(shown)) == (shown, real)


def test_it_is_slept_until_an_instant_at_the_speed_of_each_stretch() -> None:
    assert varying(passed=timedelta(seconds=31)).seconds_until(START + timedelta(hours=3)) == 31


def test_a_restarted_process_goes_on_at_the_same_speeds() -> None:
    assert parse_demo_clock(varying().written()) == replace(varying(), real_now=system_now)


def test_status_and_logs_tell_a_clock_of_many_speeds_in_few_words() -> None:
    assert varying().describe() == "2026-12-01T06:30:00+01:00@60x to 3600x,since=2026-11-29T20:00:00+00:00"


def test_the_usual_clock_says_nothing_of_itself() -> None:
    assert SystemClock().describe() == ""
