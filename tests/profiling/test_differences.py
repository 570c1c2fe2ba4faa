"""A plan against what was observed: hour by hour, and the patch after which nothing differs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.api.resolve import resolve
from servingplan.errors import InputError
from servingplan.profiling.comparison import Comparison, compared
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.profile import Profile
from support.logs import MONDAY, a_profile, arrivals, office
from support.specs import document, scheduled

WORKING_DAY = {"name": "working-day", "days": ["Mon", "Tue", "Wed", "Thu", "Fri"], "start": "08:00", "end": "18:00"}


def a_document(*windows: dict[str, Any], base: float = 1, **changes: Any) -> dict[str, Any]:
    stated = [dict(window) for window in windows] or None
    return document(**scheduled(base={"requestsPerSecond": base}, windows=stated, **changes))


def differences(written: dict[str, Any], profile: Profile) -> Comparison:
    return compared(resolve(written, {}), written, profile)


def patched(written: dict[str, Any], patch: Any) -> dict[str, Any]:
    """A JSON merge patch, as kubectl applies it."""
    found = deepcopy(written)
    for key, value in patch.items():
        found[key] = patched(found.get(key, {}), value) if isinstance(value, dict) else value
    return found


@pytest.fixture(scope="module")
def week() -> Profile:
    return a_profile(arrivals(office(day=18.0, night=2.0), days=14))


def test_a_plan_that_fits_has_no_difference_and_no_patch(week):
    found = differences(a_document({**WORKING_DAY, "requestsPerSecond": 18}, base=2), week)

    assert (found.stretches, found.short_hours, found.spare_hours, found.patch) == ((), 0, 0, {})


def test_a_rate_of_as_many_replicas_is_no_difference(week):
    found = differences(a_document({**WORKING_DAY, "requestsPerSecond": 17}, base=3), week)

    assert found.patch == {}


def test_a_window_that_states_too_little_is_raised_and_keeps_its_times(week):
    written = a_document({**WORKING_DAY, "requestsPerSecond": 9}, base=2)
    found = differences(written, week)

    (stretch,) = found.stretches
    assert (stretch.days, stretch.start, stretch.end) == ((0, 1, 2, 3, 4), 480, 1080)
    assert (stretch.declared, stretch.needed, stretch.source) == (2, 4, "window working-day")
    assert (found.short_hours, found.spare_hours) == (50, 0)
    assert found.patch == {"spec": {"schedule": {"windows": [{**WORKING_DAY, "requestsPerSecond": 18}]}}}


def test_a_window_that_ends_too_early_gets_another_beside_it(week):
    written = a_document({**WORKING_DAY, "end": "16:00", "requestsPerSecond": 18}, base=2)
    found = differences(written, week)

    kept, added = found.patch["spec"]["schedule"]["windows"]
    assert kept == {**WORKING_DAY, "end": "16:00", "requestsPerSecond": 18}
    assert (added["start"], added["end"], added["requestsPerSecond"]) == ("16:00", "18:00", 18)
    assert added["name"] != "working-day"


def test_a_base_that_is_too_high_is_lowered(week):
    found = differences(a_document({**WORKING_DAY, "requestsPerSecond": 18}, base=9), week)

    assert found.patch == {"spec": {"schedule": {"base": {"requestsPerSecond": 2}}}}
    assert found.spare_hours == 118


@settings(max_examples=10, deadline=None)
@given(
    st.floats(min_value=0, max_value=30), st.floats(min_value=0, max_value=30), st.integers(0, 10), st.integers(11, 23)
)
def test_after_its_patch_a_plan_is_short_only_in_hours_that_no_window_pays_for(day, base, start, end):
    week = a_profile(arrivals(office(day=18.0, night=2.0), step=300))
    window = {**WORKING_DAY, "start": f"{start:02d}:00", "end": f"{end:02d}:00", "requestsPerSecond": day}
    written = a_document(window, base=base)
    found = differences(written, week)
    again = differences(patched(written, found.patch), week)

    assert again.short_hours <= min(found.short_hours, 5)


def test_overrides_calendars_and_monthly_windows_are_no_part_of_an_ordinary_week(week):
    after = (MONDAY + timedelta(days=15)).strftime("%Y-%m-%d")
    monthly = {"name": "report", "cron": "0 3 1 * *", "duration": "2h", "replicas": 8}
    override = {"name": "launch", "start": f"{after}T00:00", "end": f"{after}T23:00", "replicas": 8}
    written = a_document({**WORKING_DAY, "requestsPerSecond": 18}, monthly, base=2, overrides=[override])

    assert differences(written, week).patch == {}


def test_a_weekly_cron_window_is_part_of_it(week):
    weekly = {"name": "monday", "cron": "0 3 * * 1", "duration": "2h", "requestsPerSecond": 30}
    found = differences(a_document({**WORKING_DAY, "requestsPerSecond": 18}, weekly, base=2), week)

    assert [(each.days, each.start, each.end) for each in found.stretches] == [((0,), 180, 300)]
    assert found.patch == {}


def test_lengths_that_differ_are_stated_anew(week):
    lengths = Lengths(count=9, mean=1, p50=610, p90=1500, p95=3600, p99=4000, longest=5000)
    found = differences(
        a_document({**WORKING_DAY, "requestsPerSecond": 18}, base=2), replace(week, input=lengths, output=None)
    )

    assert [(each.quantile, each.declared, each.observed) for each in found.tokens] == [("p95", 2400, 3600)]
    assert found.patch == {"spec": {"workload": {"tokens": {"input": {"p95": 3600}}}}}


def test_a_week_in_another_zone_is_refused(week):
    with pytest.raises(InputError, match=r"the profile's week is in Europe/Berlin, the plan's in UTC"):
        differences(a_document(timeZone="UTC"), week)


def test_ten_minutes_that_need_less_are_no_reason_to_edit():
    def rate(local):
        return 9.0 if (local.hour, local.minute) == (3, 20) else 12.0

    fine = a_profile(arrivals(rate, step=600), slot_minutes=10)

    assert differences(a_document(base=12), fine).stretches == ()
