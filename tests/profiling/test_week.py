"""From arrivals to the ordinary week: busiest five minutes, clock changes, days off, silences, several weeks."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.profiling.days import by_date
from servingplan.profiling.predictability import Verdict
from servingplan.profiling.tally import Arrivals
from servingplan.profiling.week import Across, fitting_minutes
from support.logs import BERLIN, MONDAY, a_profile, arrivals, office


def slot(profile, weekday, hour, minute=0):
    (found,) = [s for s in profile.week if (s.weekday, s.hour, s.minute) == (weekday, hour, minute)]
    return found


def test_an_hour_is_stated_by_its_busiest_five_minutes_in_a_row():
    def rate(local):
        return 9.0 if (local.hour, local.minute // 1) in {(10, m) for m in range(23, 28)} else 2.0

    profile = a_profile(arrivals(rate))

    assert slot(profile, 0, 10).rate == pytest.approx(9.0)
    assert slot(profile, 0, 10).mean == pytest.approx(2 + 7 * 5 / 60)
    assert slot(profile, 0, 11).rate == pytest.approx(2.0)


def test_five_minutes_over_the_end_of_an_hour_belong_to_neither():
    def rate(local):
        return 10.0 if (local.hour, local.minute) in {(10, 58), (10, 59), (11, 0), (11, 1), (11, 2)} else 0.0

    profile = a_profile(arrivals(rate))

    assert slot(profile, 0, 10).rate == pytest.approx(10 * 2 / 5)
    assert slot(profile, 0, 11).rate == pytest.approx(10 * 3 / 5)


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=500), min_size=60, max_size=60))
def test_the_busiest_five_minutes_are_those_of_a_naive_search(minutes):
    counts = np.zeros(1440)
    counts[600:660] = minutes
    found = by_date(Arrivals(start=MONDAY.timestamp(), step=60, counts=counts), BERLIN, 24)

    assert found.busiest[0, 10] == pytest.approx(max(sum(minutes[i : i + 5]) for i in range(56)) / 300)


def test_steps_longer_than_five_minutes_stand_for_themselves():
    profile = a_profile(arrivals(lambda local: float(local.minute == 20), step=600))

    assert slot(profile, 2, 3).rate == 1


# ---- clock changes ----


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"])
def test_every_request_lies_in_one_slot_of_every_day_of_a_year(zone):
    start = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    steps = round((datetime(2027, 1, 1, tzinfo=ZoneInfo(zone)).timestamp() - start.timestamp()) / 300)
    found = by_date(Arrivals(start=start.timestamp(), step=300, counts=np.ones(steps)), ZoneInfo(zone), 24)

    assert len(found.dates) == 365
    assert np.nanmin(found.mean) == np.nanmax(found.mean) == 1 / 300
    skipped = np.isnan(found.mean).sum()
    assert skipped == (1 if zone in {"Europe/Berlin", "America/New_York"} else 0)


def test_the_hour_that_comes_twice_is_one_slot_with_the_busier_of_both():
    start = datetime(2026, 10, 25, tzinfo=BERLIN)

    def rate(local):
        return {(2, 0): 3.0, (2, 1): 7.0}.get((local.hour, local.fold), 1.0)

    found = by_date(arrivals(rate, start=start, days=25 / 24), BERLIN, 24)

    assert found.busiest[0, 2] == pytest.approx(7.0)
    assert found.mean[0, 2] == pytest.approx(5.0)


def test_office_hours_stay_at_eight_through_a_clock_change():
    start = datetime(2026, 10, 19, tzinfo=BERLIN)
    profile = a_profile(arrivals(office(), start=start, days=14))

    for weekday in range(5):
        assert (slot(profile, weekday, 7).highest, slot(profile, weekday, 8).lowest) == (1, 10)


# ---- several weeks ----


def test_weeks_are_put_together_by_their_median_or_the_highest():
    found = arrivals(lambda local: 1.0 + (local.date() - MONDAY.date()).days // 7, days=21)

    noon = slot(a_profile(found), 3, 12)
    assert (noon.rate, noon.lowest, noon.highest, noon.weeks) == (pytest.approx(2.0), 1, 3, 3)


def test_the_highest_week_can_be_chosen():
    found = arrivals(lambda local: 1.0 + (local.date() - MONDAY.date()).days // 7, days=21)

    assert slot(a_profile(found, across=Across.HIGHEST), 3, 12).rate == pytest.approx(3.0)


def test_a_weekday_that_was_never_logged_is_as_the_busiest_at_that_time():
    profile = a_profile(arrivals(office(), days=3))

    assert (slot(profile, 6, 9).rate, slot(profile, 6, 9).weeks) == (10, 0)
    assert slot(profile, 0, 9).weeks == 1


def test_less_than_a_day_is_no_week():
    assert a_profile(arrivals(office(), days=0.9)).week == ()


@pytest.mark.parametrize(
    ("step", "rate", "minutes"),
    [(60, 5.0, 10), (600, 5.0, 10), (60, 0.1, 60), (3600, 5.0, 60)],
    ids=["busy", "steps of ten minutes", "quiet", "steps of an hour"],
)
def test_slots_are_as_fine_as_a_log_allows(step, rate, minutes):
    assert fitting_minutes(step, rate) == minutes


def test_ten_minutes_have_a_thousand_and_eight_slots():
    profile = a_profile(arrivals(office()), slot_minutes=10)

    assert len(profile.week) == 1008
    assert [slot(profile, 0, 7, 50).rate, slot(profile, 0, 8, 0).rate] == [1, 10]


# ---- days off, silences ----

HOLIDAY = MONDAY.date() + timedelta(days=9)


def test_a_day_off_is_told_by_its_rate_named_and_left_out():
    profile = a_profile(arrivals(office([HOLIDAY]), days=21), holidays={HOLIDAY: "Founders' Day"})

    (off,) = profile.days_off
    assert (off.day, off.name) == (HOLIDAY, "Founders' Day")
    assert off.share == pytest.approx(24 / (10 * 10 + 14))
    assert profile.days_off_like in {5, 6}
    assert slot(profile, HOLIDAY.weekday(), 9).lowest == 10


@pytest.mark.parametrize("days", [7, 14, 28])
def test_an_ordinary_log_has_no_day_off(days):
    assert a_profile(arrivals(office(), days=days)).days_off == ()


def test_a_workload_that_grows_has_no_days_off():
    grown = arrivals(lambda local: office()(local) * 1.04 ** (local.date() - MONDAY.date()).days, days=42)

    assert a_profile(grown).days_off == ()


def test_a_workload_without_a_form_has_no_days_off():
    levels = np.random.default_rng(7).lognormal(0, 1.2, 60)
    found = arrivals(lambda local: float(levels[(local.date() - MONDAY.date()).days]), days=28)

    assert a_profile(found).days_off == ()


def test_hours_without_a_request_in_one_of_several_weeks_were_not_logged():
    def rate(local):
        lost = local.date() == HOLIDAY and 9 <= local.hour < 14
        return 0.0 if lost else office()(local)

    profile = a_profile(arrivals(rate, days=21))

    assert [(each.day, each.start, each.end) for each in profile.silences] == [(HOLIDAY, 9, 14)]
    assert slot(profile, HOLIDAY.weekday(), 10).lowest == 10
    assert profile.days_off == ()


def test_nights_without_a_request_are_quiet_and_not_lost():
    profile = a_profile(arrivals(office(night=0.0), days=21))

    assert profile.silences == ()
    assert slot(profile, 0, 3).rate == 0


# ---- predictability ----


def noisy(rate, days, seed=3):
    exact = arrivals(rate, days=days)
    return Arrivals(start=exact.start, step=60, counts=np.random.default_rng(seed).poisson(exact.counts).astype(float))


def test_an_office_is_explained_by_the_weeks_before():
    found = a_profile(noisy(office(), 28)).predictability

    assert found.verdict is Verdict.SCHEDULE
    assert found.explained > 0.95
    assert found.level == pytest.approx(1.0, abs=0.02)
    assert found.autocorrelation_168h > found.autocorrelation_24h > 0.3


def test_a_random_walk_is_left_to_feedback():
    hours = np.exp(np.cumsum(np.random.default_rng(5).normal(0, 0.5, 28 * 24)))
    hours = np.minimum(hours, 50)

    def rate(local):
        return float(hours[min(len(hours) - 1, int((local - MONDAY).total_seconds() // 3600))])

    found = a_profile(noisy(rate, 28)).predictability

    assert found.verdict is Verdict.FEEDBACK_ALONE
    assert found.explained < 0.5


def test_one_level_needs_no_schedule():
    assert a_profile(noisy(lambda _: 3.0, 21)).predictability.verdict is Verdict.STEADY


def test_a_last_week_that_grew_says_by_how_much():
    found = a_profile(noisy(lambda local: office()(local) * (1.3 if local.date() >= date(2026, 11, 23) else 1), 28))

    assert found.predictability.level == pytest.approx(1.3, abs=0.02)


def test_one_day_says_nothing_of_the_next():
    found = a_profile(noisy(office(), 1)).predictability

    assert found.verdict is Verdict.TOO_SHORT
    assert (found.explained, found.autocorrelation_168h) == (None, None)


def test_chance_alone_has_a_dispersion_of_one_and_bursts_more():
    calm = a_profile(noisy(lambda _: 3.0, 7))
    bursts = a_profile(noisy(lambda local: 6.0 if local.minute % 10 < 3 else 1.0, 7))

    assert calm.dispersion == pytest.approx(1.0, abs=0.1)
    assert bursts.dispersion > 50
