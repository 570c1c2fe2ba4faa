"""Times as logs write them, around clock changes too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.profiling.instants import Instants, NoInstant, StartMissing, clf_minute

BERLIN = ZoneInfo("Europe/Berlin")
SEVEN = datetime(2026, 11, 2, 7, tzinfo=UTC).timestamp()


def instants(start: datetime | None = None, zone: ZoneInfo = BERLIN) -> Instants:
    return Instants(zone=zone, start=start)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-02T07:00:00Z",
        "2026-11-02T08:00:00+01:00",
        "2026-11-02 08:00:00",
        "2026-11-02T08:00:00.0000000",
        "1793602800",
        "1793602800000",
        "1793602800000000",
        "1793602800000000000",
        "1793602800.0",
    ],
)
def test_a_time_is_read_however_it_is_written(text):
    assert instants().of_text(text) == pytest.approx(SEVEN, abs=1e-3)


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "nan", "inf", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(NoInstant):
        instants(start=datetime(2026, 11, 2, tzinfo=UTC)).of_text(text)


def test_small_numbers_count_from_the_start():
    start = datetime(2026, 11, 2, 7, tzinfo=UTC)

    assert instants(start).of_text("90.5") == SEVEN + 90.5
    with pytest.raises(StartMissing):
        instants().of_text("90.5")


def test_a_log_in_local_time_goes_on_through_the_hour_that_comes_twice():
    read = instants()
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)
    times = [first + timedelta(minutes=10 * i) for i in range(36)]

    walls = [time.astimezone(BERLIN).replace(tzinfo=None) for time in times]

    assert [read.of_wall(wall) for wall in walls] == [time.timestamp() for time in times]


def test_lines_a_little_out_of_order_stay_in_their_hour():
    read = instants()
    walls = [datetime(2026, 10, 25, 2, minute) for minute in (30, 40, 35, 50, 45)]  # noqa: DTZ001  wall times
    first = datetime(2026, 10, 25, tzinfo=UTC).timestamp()

    assert [read.of_wall(wall) - first for wall in walls] == [60 * minute for minute in (30, 40, 35, 50, 45)]


@given(
    st.integers(min_value=1_700_000_000, max_value=2_000_000_000),
    st.sampled_from(["Europe/Berlin", "America/New_York"]),
)
def test_outside_of_clock_changes_local_times_are_exact(seconds, zone):
    moment = datetime.fromtimestamp(seconds, ZoneInfo(zone))
    if moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset():
        return

    assert instants(zone=ZoneInfo(zone)).of_wall(moment.replace(tzinfo=None)) == seconds


def test_a_time_of_an_access_log_is_read_with_its_offset():
    assert clf_minute("02/Nov/2026:08:00:00 +0100") == SEVEN
