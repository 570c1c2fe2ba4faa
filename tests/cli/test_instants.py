"""Times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from servingplan.cli.instants import parse_instant, parse_span
from servingplan.errors import UsageError
from servingplan.planning.calendar import Edge

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 12, 1, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01", datetime(2026, 11, 30, 23, tzinfo=UTC)),
        ("2026-12-01T07:48", datetime(2026, 12, 1, 6, 48, tzinfo=UTC)),
        ("2026-12-01T07:48:30", datetime(2026, 12, 1, 6, 48, 30, tzinfo=UTC)),
        ("2026-12-01T07:48-05:00", datetime(2026, 12, 1, 12, 48, tzinfo=UTC)),
        ("2026-12-01T07:48Z", datetime(2026, 12, 1, 7, 48, tzinfo=UTC)),
        ("18:00", datetime(2026, 12, 1, 17, tzinfo=UTC)),
        ("12:00", NOON),
        ("07:00", datetime(2026, 12, 2, 6, tzinfo=UTC)),
        ("2026-03-29T02:30", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("2026-10-25T02:30", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ],
    ids=["date", "minute", "second", "offset", "UTC", "later today", "now", "tomorrow", "in the gap", "doubled"],
)
def test_a_time_is_read_in_the_plans_zone(text, expected):
    assert parse_instant(text, BERLIN, "--at", after=NOON) == expected


def test_a_doubled_end_is_the_last_of_both():
    found = parse_instant("2026-10-25T02:30", BERLIN, "--until", after=NOON, edge=Edge.END)
    assert found == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "tomorrow", "25:00", "2026-13-01", "7"])
def test_anything_else_is_refused_with_how_to_write_it(text):
    with pytest.raises(UsageError, match=r"--at .* is no time: write 2026-12-01T07:00"):
        parse_instant(text, BERLIN, "--at", after=NOON)


def test_a_span_is_a_duration_of_the_api():
    assert parse_span("1h30m", "--for") == timedelta(minutes=90)
    with pytest.raises(UsageError, match="--for"):
        parse_span("two hours", "--for")
    with pytest.raises(UsageError, match="longer than 0s"):
        parse_span("0m", "--for")
