"""What a profile suggests is what the API takes: every plan resolves, every ConfigMap is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.api.resolve import resolve
from servingplan.errors import InputError, InvalidPlan, UsageError
from servingplan.planning.demand import requirements
from servingplan.planning.plan import Plan
from servingplan.profiling.holidays import holidays_of
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.manifests import Follow, Suggestion, Wishes, suggestion
from servingplan.profiling.profile import Profile
from servingplan.profiling.record import document, read
from support.logs import MONDAY, a_profile, arrivals, office
from support.specs import config_maps

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "support-chat"}
HOLIDAY = date(2026, 11, 18)


def wishes(**changes) -> Wishes:
    stated = {
        "name": "support-chat",
        "namespace": "llm",
        "target": TARGET,
        "capacity": Decimal(5),
        "lead": timedelta(minutes=10),
        "follow": Follow.WINDOWS,
        "windows": None,
        "holidays": {},
    }
    return Wishes(**{**stated, **changes})


def resolved(found: Suggestion) -> Plan:
    """The plan as the operator reads it, with the ConfigMaps beside it."""
    *maps, plan = found.objects
    return resolve(plan, config_maps({each["metadata"]["name"]: each["data"] for each in maps}))


def rates_of_a_week(plan: Plan) -> list[float]:
    """What the plan states in each hour of an ordinary week."""
    start = MONDAY + timedelta(days=70)
    found = requirements(plan, start, start + timedelta(days=7))
    return [float(found.at(start + timedelta(hours=hour)).rate) for hour in range(168)]


def test_a_suggested_plan_resolves_and_asks_for_the_week():
    profile = a_profile(arrivals(office(), days=21))
    plan = resolved(suggestion(profile, wishes()))

    assert rates_of_a_week(plan) == [slot.rate for slot in profile.week]
    assert (plan.key, plan.zone.key, plan.bounds.maximum) == ("llm/support-chat", "Europe/Berlin", 4)


@pytest.mark.parametrize("minutes", [60, 10])
def test_a_profile_that_is_followed_is_the_week_slot_by_slot(minutes):
    profile = a_profile(arrivals(office(), days=21), slot_minutes=minutes)
    plan = resolved(suggestion(profile, wishes(follow=Follow.PROFILE)))

    assert [float(rate) for rate in plan.profile.rates] == [float(f"{slot.rate:.4g}") for slot in profile.week]


LEVELS = st.lists(st.floats(min_value=0, max_value=1000), min_size=21, max_size=21)


@settings(max_examples=8, deadline=None)
@given(LEVELS, st.sampled_from(["0.2", "1", "7.5", "400"]), st.sampled_from(list(Follow)))
def test_whatever_the_week_the_plan_resolves(levels, capacity, follow):
    found = arrivals(lambda local: levels[local.weekday() * 3 + local.hour // 8], step=600)
    if not sum(levels):
        return

    plan = resolved(suggestion(a_profile(found), wishes(capacity=Decimal(capacity), follow=follow)))

    assert plan.bounds.maximum >= 1


def test_without_a_capacity_the_plan_says_what_is_missing_and_nothing_stands_in_its_place():
    found = suggestion(a_profile(arrivals(office(), days=21)), wishes(capacity=None))

    with pytest.raises(InvalidPlan) as caught:
        resolved(found)
    assert {problem.path for problem in caught.value.problems} == {"spec.capacity", "spec.bounds"}
    assert "state --capacity" in found.remarks[0]


def test_lengths_are_stated_as_the_workload():
    lengths = Lengths(count=10, mean=700, p50=600, p90=1800, p95=2400, p99=4000, longest=9000)
    profile = replace(a_profile(arrivals(office(), days=7)), input=lengths, output=replace(lengths, p50=0))
    plan = resolved(suggestion(profile, wishes()))

    assert plan.workload.tokens.input == (("p50", 600), ("p90", 1800), ("p95", 2400), ("p99", 4000))
    assert plan.workload.tokens.output[0] == ("p50", 1)


def test_a_number_of_windows_can_be_asked_for():
    def rate(local):
        return office()(local) + (9.0 if local.hour == 12 and local.weekday() < 5 else 0)

    profile = a_profile(arrivals(rate, days=7))
    counts = [len(resolved(suggestion(profile, wishes(windows=n))).windows) for n in (0, 1, 2)]

    assert counts == [0, 1, 2]


# ---- when a schedule will not help ----


def wild(days: int = 28) -> Profile:
    hours = np.minimum(np.exp(np.cumsum(np.random.default_rng(5).normal(0, 0.5, days * 24))), 50)
    return a_profile(
        arrivals(lambda local: float(hours[int((local - MONDAY).total_seconds() // 3600)]), days=days, step=300)
    )


def test_a_wild_load_gets_feedback_and_no_windows():
    found = suggestion(wild(), wishes())
    plan = resolved(found)

    assert plan.windows == ()
    assert plan.feedback is not None
    assert any("A schedule will not help" in remark for remark in found.remarks)


def test_a_steady_load_gets_one_base():
    plan = resolved(suggestion(a_profile(arrivals(lambda _: 3.0, days=21)), wishes()))

    assert (plan.windows, float(plan.base.requests_per_second), plan.feedback) == ((), 3.0, None)


def test_a_week_that_grew_is_told():
    grown = arrivals(lambda local: office()(local) * (1.3 if local.date() >= date(2026, 11, 23) else 1), days=28)

    remarks = suggestion(a_profile(grown), wishes()).remarks

    assert any("had 30% more requests" in remark and "--across highest" in remark for remark in remarks)


def test_an_hour_of_log_is_no_plan():
    with pytest.raises(InputError, match=r"1.0 hours are not enough"):
        suggestion(a_profile(arrivals(office(), days=1 / 24)), wishes())


# ---- days off ----


def test_holidays_that_are_quiet_become_a_calendar_that_ends():
    names = {HOLIDAY: "Repentance Day", date(2026, 12, 25): "Christmas Day", date(2027, 1, 1): "New Year"}
    profile = a_profile(arrivals(office([HOLIDAY]), days=28), holidays=names)
    plan = resolved(suggestion(profile, wishes(holidays=names)))

    (calendar,) = plan.calendars
    assert calendar.dates == set(names)
    assert calendar.treat_as in {5, 6}
    assert calendar.valid_until == date(2027, 12, 31)


def test_holidays_that_are_as_busy_as_others_become_none():
    names = {HOLIDAY: "Repentance Day"}
    found = suggestion(a_profile(arrivals(office(), days=28), holidays=names), wishes(holidays=names))

    assert resolved(found).calendars == ()
    assert any("as busy as other days here (Repentance Day (2026-11-18))" in remark for remark in found.remarks)


def test_days_off_without_names_ask_for_a_calendar():
    found = suggestion(a_profile(arrivals(office([HOLIDAY]), days=28)), wishes())

    assert any("2026-11-18" in remark and "--holidays" in remark for remark in found.remarks)


def test_holidays_are_those_of_the_place():
    berlin, bavaria = (holidays_of(place, [2026]) for place in ("DE-BE", "DE-BY"))

    assert date(2026, 3, 8) in berlin
    assert date(2026, 1, 6) in bavaria
    with pytest.raises(UsageError, match="--holidays XX"):
        holidays_of("XX", [2026])


# ---- as it is kept ----


def test_a_profile_is_read_back_as_it_was():
    profile = a_profile(arrivals(office([HOLIDAY]), days=28))

    assert read(json.dumps(document(profile)), "week.json") == profile


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", "it is no profile"),
        ('{"format": "servingplan.dev/profile/v1"}', "the file is damaged"),
    ],
)
def test_a_file_that_is_no_profile_says_so(text, why):
    with pytest.raises(InputError, match=why):
        read(text, "week.json")


def test_a_profile_of_the_other_side_of_the_world_is_in_its_own_time():
    auckland = ZoneInfo("Pacific/Auckland")
    profile = a_profile(arrivals(office(), start=MONDAY.replace(tzinfo=auckland), days=14), zone=auckland)
    plan = resolved(suggestion(profile, wishes()))

    assert [(f"{w.start:%H:%M}", f"{w.end:%H:%M}") for w in plan.windows] == [("08:00", "18:00")]
