"""Local time: what is required equals an independent evaluation, minute by minute, around every clock change."""

from __future__ import annotations

import os
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.calendar import Edge, resolve_wall
from servingplan.planning.demand import requirements
from servingplan.planning.plan import Plan
from support.naive import MINUTE, Minutes, required_by_minute
from support.plans import a_plan, a_window
from support.strategies import ZONES, SeededPlans, offset_changes_of

YEARS = (2026, 2032)
PLANS = 200
"""For each zone, in `BLOCKS` that run side by side."""
BLOCKS = 2
EXHAUSTIVE = bool(os.environ.get("SERVINGPLAN_EXHAUSTIVE"))
"""Every plan on each of the 500 days, 100,000 plan-days a zone, instead of on its share of them, 2,500."""
SHARE = 1 if EXHAUSTIVE else 40
AROUND = timedelta(days=4)
DAY = timedelta(days=1)

Span = tuple[datetime, datetime]


@lru_cache
def around_changes(zone: str) -> tuple[Span, ...]:
    """Four days to each side of every offset change, cut at UTC midnights."""
    midnights = [c.instant.replace(hour=0, minute=0) for c in offset_changes_of(ZoneInfo(zone), *YEARS)]
    return tuple((midnight - AROUND, midnight + AROUND + DAY) for midnight in midnights)


@lru_cache
def random_days(zone: str) -> tuple[Span, ...]:
    """500 days, the same on every machine."""
    first = datetime(YEARS[0], 1, 1, tzinfo=UTC)
    count = (datetime(YEARS[1] + 1, 1, 1, tzinfo=UTC) - first).days
    days = Random(f"days {zone}").sample(range(count), 500)  # noqa: S311 - the same days on every machine
    return tuple((first + n * DAY, first + (n + 1) * DAY) for n in sorted(days))


def by_minute(plan: Plan, start: datetime, end: datetime) -> Minutes:
    """The package's step function, one value a minute; every change lies on a whole minute."""
    required = requirements(plan, start, end)
    edges = [(t - start) / MINUTE for t in (*required.times, end)]
    assert all(edge.is_integer() for edge in edges)
    return np.repeat([value.replicas for value in required.values], np.diff(np.array(edges, dtype=np.int64)))


def first_difference(plan: Plan, start: datetime, end: datetime) -> str:
    """Where package and naive evaluation differ first; empty where they agree at every minute."""
    got, wanted = by_minute(plan, start, end), required_by_minute(plan, start, end)
    if np.array_equal(got, wanted):
        return ""
    i = int(np.flatnonzero(got != wanted)[0])
    instant = (start + i * MINUTE).astimezone(plan.zone)
    return f"at {instant.isoformat()}: {got[i]} required, {wanted[i]} by the naive evaluation, of {plan}"


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("zone", ZONES)
def test_what_is_required_equals_the_naive_evaluation_at_every_minute(zone: str, block: int) -> None:
    changes, days = around_changes(zone), random_days(zone)
    of_interest = [start.date() + AROUND for start, _ in changes] * 20 + [start.date() for start, _ in days]
    seeded = SeededPlans(zone, of_interest, block)
    for i in range(PLANS // BLOCKS):
        plan = seeded.plan()
        for start, end in (*changes, *days[i % SHARE :: SHARE]):
            assert not first_difference(plan, start, end)


ADJACENT = {
    "ascending": (("04:00", "08:00"), ("08:00", "12:00"), ("12:00", "04:00")),
    "descending": (("12:00", "04:00"), ("08:00", "12:00"), ("04:00", "08:00")),
    "meeting at a change": (("02:00", "14:00"), ("14:00", "02:00")),
    "meeting in the gap and the doubled hour": (("02:30", "14:00"), ("14:00", "02:30")),
    "meeting at the half-hour change": (("01:45", "23:59"), ("23:59", "01:45")),
    "meeting at midnight": (("00:00", "12:00"), ("12:00", "00:00")),
}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("walls", ADJACENT.values(), ids=ADJACENT)
def test_adjacent_windows_never_dip(walls: tuple[tuple[str, str], ...], zone: str) -> None:
    every_day = frozenset(range(7))
    windows = tuple(
        a_window(name=start, days=every_day, start=time.fromisoformat(start), end=time.fromisoformat(end))
        for start, end in walls
    )
    plan = a_plan(zone=ZoneInfo(zone), windows=windows)
    for start, end in around_changes(zone) or random_days(zone):
        assert set(by_minute(plan, start, end)) == {5}


def test_the_zones_change_as_often_as_their_rules_say() -> None:
    counts = {zone: len(offset_changes_of(ZoneInfo(zone), *YEARS)) for zone in ZONES}
    assert counts == dict(zip(ZONES, (14, 14, 14, 0, 0, 0), strict=True))


WALLS = {
    # zone, wall time, start and end in UTC
    "ordinary": ("Europe/Berlin", "2026-12-01T08:00", "2026-12-01T07:00", "2026-12-01T07:00"),
    "missing: the end of the gap": ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00", "2026-03-29T01:00"),
    "first missing minute": ("Europe/Berlin", "2026-03-29T02:00", "2026-03-29T01:00", "2026-03-29T01:00"),
    "first after the gap": ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00", "2026-03-29T01:00"),
    "doubled: first start, last end": ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30", "2026-10-25T01:30"),
    "last before the doubled hour": ("Europe/Berlin", "2026-10-25T01:59", "2026-10-24T23:59", "2026-10-24T23:59"),
    "first after the doubled hour": ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00", "2026-10-25T02:00"),
    "half-hour gap": ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30", "2026-10-03T15:30"),
    "half an hour doubled": ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45", "2026-04-04T15:15"),
    "no midnight": ("America/Santiago", "2026-09-06T00:00", "2026-09-06T04:00", "2026-09-06T04:00"),
    "two midnights": ("America/Havana", "2026-11-01T00:30", "2026-11-01T04:30", "2026-11-01T05:30"),
    "a day that never was": ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00", "2011-12-30T10:00"),
}


@pytest.mark.parametrize(("zone", "wall", "start", "end"), WALLS.values(), ids=WALLS)
def test_a_wall_time_resolves_to_an_instant(zone: str, wall: str, start: str, end: str) -> None:
    resolved = [resolve_wall(datetime.fromisoformat(wall), ZoneInfo(zone), edge) for edge in (Edge.START, Edge.END)]
    assert resolved == [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end)]


@st.composite
def walls_near_changes(draw: st.DrawFn) -> tuple[ZoneInfo, datetime, datetime]:
    """A zone, and two ordered wall times within two days of one of its changes (or of any day)."""
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    changes = _changes(zone.key) or (datetime(2028, 2, 29, tzinfo=UTC),)
    shown = draw(st.sampled_from(changes)).astimezone(zone).replace(tzinfo=None)
    first, second = sorted(draw(st.tuples(*[st.integers(-2 * 86400, 2 * 86400)] * 2)))
    return zone, shown + timedelta(seconds=first), shown + timedelta(seconds=second)


@lru_cache
def _changes(zone: str) -> tuple[datetime, ...]:
    return tuple(change.instant for change in offset_changes_of(ZoneInfo(zone), 2024, 2032))


@given(walls_near_changes())
def test_every_zone_transition_is_total_and_monotone(walls: tuple[ZoneInfo, datetime, datetime]) -> None:
    zone, earlier, later = walls
    for edge in Edge:
        assert resolve_wall(earlier, zone, edge) <= resolve_wall(later, zone, edge)
    assert resolve_wall(earlier, zone, Edge.START) <= resolve_wall(earlier, zone, Edge.END)


@given(walls_near_changes())
def test_a_resolved_instant_shows_its_wall_time_or_ends_the_gap(walls: tuple[ZoneInfo, datetime, datetime]) -> None:
    zone, wall, _ = walls
    for edge in Edge:
        instant = resolve_wall(wall, zone, edge)
        shown = instant.astimezone(zone).replace(tzinfo=None)
        if shown != wall:
            before = (instant - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
            assert before < wall < shown
