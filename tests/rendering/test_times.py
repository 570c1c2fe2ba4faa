"""Instants as people and as Kubernetes read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.rendering.times import local_time, local_weekday_time, parse_wire_time, wire_time

BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2026-12-01T07:00:00+00:00", BERLIN, "Tue 1 Dec 08:00 CET"),
        ("2026-12-01T07:00:00+00:00", KOLKATA, "Tue 1 Dec 12:30 IST"),
        ("2026-06-30T22:30:00+00:00", BERLIN, "Wed 1 Jul 00:30 CEST"),
        ("2026-10-25T00:30:00+00:00", BERLIN, "Sun 25 Oct 02:30 CEST"),
        ("2026-10-25T01:30:00+00:00", BERLIN, "Sun 25 Oct 02:30 CET"),
    ],
    ids=["winter", "half an hour off", "the next date", "the hour that comes twice", "and comes again"],
)
def test_local_time_tells_the_date_and_which_of_two_equal_hours(instant: str, zone: ZoneInfo, shown: str) -> None:
    assert local_time(datetime.fromisoformat(instant), zone) == shown


def test_the_short_form_leaves_the_date_out() -> None:
    assert local_weekday_time(berlin("2026-12-01T08:00"), BERLIN) == "Tue 08:00 CET"


def test_the_wire_has_seconds_in_utc_and_a_fraction_only_where_there_is_one() -> None:
    instant = datetime(2026, 12, 1, 8, tzinfo=timezone(timedelta(hours=1)))
    assert wire_time(instant) == "2026-12-01T07:00:00Z"
    assert wire_time(instant.replace(microsecond=120)) == "2026-12-01T07:00:00.000120Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_was_written_is_read_back_exactly(instant: datetime) -> None:
    assert parse_wire_time(wire_time(instant)) == instant
