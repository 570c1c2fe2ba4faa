"""The model of KEDA's cron trigger against recordings of the library that KEDA asks, and KEDA's rule itself.

``tests/data/keda-cron`` holds the Go program that recorded them, its cases and output: every minute of 2026 to 2028.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from servingplan.migrating.keda_cron import CronTrigger, active_intervals, is_active
from servingplan.migrating.robfig import fires, parse
from support.models import DATA

FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
RECORDED = [json.loads(line) for line in (DATA / "keda-cron/recorded.jsonl").read_text().splitlines()]
SEVERAL_A_DAY = 5000
"""Recordings with more fires than this are compared by their active intervals alone."""


def digest(instants):
    return hashlib.sha256("".join(f"{instant}\n" for instant in instants).encode()).hexdigest()[:16]


def trigger(zone, start, end, replicas=5):
    return CronTrigger(index=0, start=parse(start), end=parse(end), zone=ZoneInfo(zone), replicas=replicas)


def named(case):
    return f"{case['zone']} {case['start']} to {case['end']}"


@pytest.mark.parametrize("case", RECORDED, ids=named)
def test_a_trigger_is_active_in_the_very_minutes_that_were_recorded(case):
    intervals = active_intervals(trigger(case["zone"], case["start"], case["end"]), FIRST, LAST)
    flips = [round(t.timestamp()) for i in intervals for t in (i.start, i.end) if FIRST < t < LAST]
    assert bool(intervals and intervals[0].start == FIRST) == case["active"]
    assert set(case["near"]) <= set(flips)
    assert (len(flips), digest(flips)) == (case["flips"], case["digest"])


@pytest.mark.parametrize("case", [case for case in RECORDED if case["fires"] < SEVERAL_A_DAY], ids=named)
def test_an_expression_fires_at_the_very_instants_that_were_recorded(case):
    after_the_first = round(FIRST.timestamp()) + 1
    found = list(fires(parse(case["start"]), ZoneInfo(case["zone"]), after_the_first, round(LAST.timestamp())))
    assert (len(found), digest(found)) == (case["fires"], case["starts"])


def test_recordings_cover_what_clocks_do():
    zones = {case["zone"] for case in RECORDED}
    assert {"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo"} <= zones
    assert sum(len(case["near"]) for case in RECORDED) > 1000


@pytest.mark.parametrize(
    ("start", "end", "active"),
    [
        ("0 0 30 2 *", "0 20 * * *", True),
        ("0 8 * * *", "0 0 30 2 *", False),
        ("0 0 30 2 *", "0 0 31 4 *", True),
    ],
    ids=["a start that never comes", "an end that never comes", "neither comes"],
)
def test_what_never_fires_counts_as_the_year_1(start, end, active):
    assert is_active(trigger("UTC", start, end), round(FIRST.timestamp())) == active


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 8 * *", "has 4 fields"),
        ("60 8 * * *", "'60' as minute: write values from 0 to 59"),
        ("0 20-8 * * *", "'20-8' as hour"),
        ("0 8 * * mon-xyz", "'mon-xyz' is no weekday"),
        ("0 8 * * 7", "'7' as weekday: write values from 0 to 6"),
        ("*/0 8 * * *", "a step is at least 1"),
        (", 8 * * *", "names no minute"),
        ("@daily", "has 1 fields"),
    ],
)
def test_what_the_library_refuses_is_refused(text, said):
    with pytest.raises(ValueError, match=said.replace("'", ".")):
        parse(text)
