"""Durations, shares and rates as people write them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.units import (
    exact,
    format_duration,
    format_rate,
    parse_duration,
    parse_percent,
    scale_duration,
)

DURATIONS = {
    "10m": timedelta(minutes=10),
    "1h30m": timedelta(minutes=90),
    "90m": timedelta(minutes=90),
    "1500ms": timedelta(milliseconds=1500),
    "1s500ms": timedelta(milliseconds=1500),
    "1m1ms": timedelta(minutes=1, milliseconds=1),
    "0s": timedelta(0),
    "30m1h": timedelta(minutes=90),
    "99999h": timedelta(hours=99999),
    "1h2m3s4ms": timedelta(hours=1, minutes=2, seconds=3, milliseconds=4),
}


@pytest.mark.parametrize(("text", "duration"), DURATIONS.items(), ids=DURATIONS)
def test_a_duration_is_read(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


NO_DURATIONS = [
    "",
    "10",
    "m",
    "10 m",
    "-10m",
    "+10m",
    "1.5h",
    "1d",
    "100000h",
    "1h1h1h1h1h",
    "10m\n",
    "\n10m",
    "\uff110m",
]


@pytest.mark.parametrize("text", NO_DURATIONS, ids=repr)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 90s"):
        parse_duration(text)


FORMATTED = {
    timedelta(minutes=90): "1h30m",
    timedelta(0): "0s",
    timedelta(minutes=9, seconds=40): "9m40s",
    timedelta(milliseconds=1500): "1s500ms",
    timedelta(minutes=-12): "-12m",
    timedelta(days=2): "48h",
    timedelta(microseconds=1499): "1ms",
}


@pytest.mark.parametrize(("duration", "text"), FORMATTED.items(), ids=FORMATTED.values())
def test_a_duration_is_written(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=99999)))
def test_a_written_duration_reads_as_itself_to_the_millisecond(duration: timedelta) -> None:
    whole = timedelta(milliseconds=duration // timedelta(milliseconds=1))
    assert parse_duration(format_duration(whole)) == whole


PERCENTAGES = {
    "20%": Fraction(1, 5),
    "0%": Fraction(0),
    "100%": Fraction(1),
    "12.5%": Fraction(1, 8),
    "999%": Fraction(999, 100),
}


@pytest.mark.parametrize(("text", "share"), PERCENTAGES.items(), ids=PERCENTAGES)
def test_a_percentage_is_read_exactly(text: str, share: Fraction) -> None:
    assert parse_percent(text) == share


@pytest.mark.parametrize("text", ["", "20", "%", "-1%", "1000%", "1.234%", ".5%", "20 %", "20%\n"], ids=repr)
def test_what_is_no_percentage_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 20%"):
        parse_percent(text)


def test_a_share_of_a_duration_is_exact() -> None:
    assert scale_duration(timedelta(minutes=10), Fraction(6, 5)) == timedelta(minutes=12)
    assert scale_duration(timedelta(microseconds=10), Fraction(1, 3)) == timedelta(microseconds=3)


def test_a_number_is_taken_as_it_was_written() -> None:
    assert exact(0.1) + exact(0.2) == Decimal("0.3")
    assert exact("2.40") == exact(2.4) == exact(Decimal("2.4"))


RATES = {"18.0": "18", "1e6": "1000000", "0.50": "0.5", "0": "0", "0.001": "0.001", "100": "100"}


@pytest.mark.parametrize(("rate", "text"), RATES.items(), ids=RATES)
def test_a_rate_is_written_without_trailing_zeros_or_exponents(rate: str, text: str) -> None:
    assert format_rate(Decimal(rate)) == text
