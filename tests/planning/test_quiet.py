"""Quiet hours: when nothing is scheduled, the lead of what comes next included."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from servingplan.planning.plan import Override, Profile, Rate
from servingplan.planning.quiet import HANDOVER, LOOKS_AHEAD, quiet
from support.plans import a_plan

BERLIN = ZoneInfo("Europe/Berlin")
LEAD = timedelta(minutes=12)
TUESDAY = datetime(2026, 12, 1, tzinfo=BERLIN)


def at(hour: int, minute: int = 0, *, day: int = 1) -> datetime:
    return datetime(2026, 12, day, hour, minute, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("now", "is_quiet", "until"),
    [
        (at(1), True, at(7, 46)),
        (at(7, 46), False, at(20)),
        (at(12), False, at(20)),
        (at(20), True, at(7, 46, day=2)),
        (at(21, day=4), True, at(7, 46, day=7)),
    ],
    ids=["at night", "a lead and the handover before a window", "in it", "when it ended", "over a weekend"],
)
def test_a_plan_is_quiet_outside_its_windows_and_the_lead_before_them(now, is_quiet, until):
    found = quiet(a_plan(), LEAD, now)
    assert (found.now, found.until) == (is_quiet, until)


def test_a_longer_lead_ends_quiet_hours_earlier():
    assert quiet(a_plan(), timedelta(hours=1), at(1)).until == at(8) - timedelta(hours=1) - HANDOVER


def test_what_people_state_for_a_time_is_busy_however_little_they_expect():
    night = Override(
        name="test",
        start=datetime.fromisoformat("2026-12-01T02:00"),
        end=datetime.fromisoformat("2026-12-01T03:00"),
        level=Rate(requests_per_second=Decimal("0.1")),
    )
    found = quiet(a_plan(overrides=(night,)), LEAD, at(1))
    assert (found.now, found.until) == (True, at(1, 46))
    assert quiet(a_plan(overrides=(night,)), LEAD, at(2, 30)).now is False


def test_a_profile_is_busy_where_it_lies_above_the_base():
    rates = tuple(Decimal(3) if 9 <= hour % 24 < 17 else Decimal(1) for hour in range(168))
    plan = a_plan(windows=(), profile=Profile(rates=rates))
    assert quiet(plan, LEAD, at(1)).until == at(8, 46)
    assert quiet(plan, LEAD, at(10)).until == at(17)


def test_a_plan_without_anything_scheduled_is_quiet_for_as_long_as_is_looked_ahead():
    found = quiet(a_plan(windows=()), LEAD, TUESDAY)
    assert (found.now, found.until) == (True, TUESDAY + LOOKS_AHEAD)
