"""GPU-hours: the contract's figures, lead and trail apart, and the nominal month."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from servingplan.planning.plan import Bounds, Calendar, CronWindow, Override, Rate, ScaleDown, Total, TreatAs
from servingplan.reporting.hours import course, gpu_hours, nominal_month
from support.plans import a_plan, a_window

BERLIN = ZoneInfo("Europe/Berlin")
DECEMBER = datetime(2026, 12, 1, tzinfo=BERLIN)
CHRISTMAS = Calendar(name="holidays", dates=frozenset({date(2026, 12, 25)}), treat_as=TreatAs.BASE)
LAUNCH = Override(
    name="launch",
    start=datetime(2026, 12, 1, 7),  # noqa: DTZ001  wall time
    end=datetime(2026, 12, 1, 19),  # noqa: DTZ001  wall time
    level=Total(replicas=8),
)


def hours_of(plan, start=DECEMBER, days=14):
    return gpu_hours(course(plan, start, start + timedelta(days=days)), 1)


def test_two_weeks_of_the_worked_example_are_the_contracts_figures():
    found = hours_of(a_plan())
    assert found.required == pytest.approx(1032)
    assert found.leading == pytest.approx(6)
    assert found.trailing == pytest.approx(1)
    assert found.planned == pytest.approx(1039)
    assert found.flat_peak == pytest.approx(1680)
    assert found.saved_percent == pytest.approx(38.15, abs=0.01)


def test_a_replica_of_several_gpus_counts_each():
    found = course(a_plan(), DECEMBER, DECEMBER + timedelta(days=1))
    assert gpu_hours(found, 4).planned == 4 * gpu_hours(found, 1).planned


def test_a_range_that_begins_inside_a_lead_and_ends_inside_a_fall_counts_only_what_lies_in_it():
    start, end = datetime(2026, 12, 1, 6, 54, tzinfo=UTC), datetime(2026, 12, 1, 19, 3, tzinfo=UTC)
    found = gpu_hours(course(a_plan(), start, end), 1)
    assert found.leading == pytest.approx(3 * 6 / 60)
    assert found.trailing == pytest.approx((2 * 2 + 1 * 1) / 60)


@pytest.mark.parametrize("minutes", [0, 1, 2, 3, 4, 5], ids=lambda m: f"20:0{m}")
def test_what_is_asked_for_at_the_start_does_not_depend_on_where_the_fold_began(minutes):
    at = datetime(2026, 12, 1, 19, minutes, tzinfo=UTC)
    whole = course(a_plan(), DECEMBER, DECEMBER + timedelta(days=1)).asked_function
    assert course(a_plan(), at, at + timedelta(hours=1)).asked[0].replicas == whole.at(at)


def test_the_nominal_month_of_the_worked_example_is_2252_of_3650():
    month = nominal_month(a_plan())
    assert month.required == pytest.approx(2252)
    assert month.flat_peak == pytest.approx(3650)
    assert month.leading == pytest.approx(22 * 0.6)
    assert month.trailing == pytest.approx(22 * 0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"calendars": (CHRISTMAS,)},
        {"overrides": (LAUNCH,)},
        {"zone": ZoneInfo("Australia/Lord_Howe")},
    ],
    ids=["calendar dates", "overrides", "the zone"],
)
def test_what_belongs_to_dates_does_not_change_the_nominal_month(changes):
    assert nominal_month(a_plan(**changes)) == nominal_month(a_plan())


def test_a_cron_window_once_a_month_counts_twelve_times_a_year():
    report = CronWindow(
        name="report", cron="30 5 1 * *", at=time(5, 30), duration=timedelta(hours=2), level=Total(replicas=3)
    )
    # A zero lead, and a fall at once: required alone.
    plain = a_plan(windows=(), scale_down=ScaleDown(step=8, every=timedelta(minutes=1)))
    extra = nominal_month(a_plan(windows=(), cron_windows=(report,))).required - nominal_month(plain).required
    assert extra == pytest.approx(2, rel=0.1)


def test_nothing_required_saves_nothing_and_divides_by_nothing():
    plan = a_plan(
        windows=(),
        base=Rate(requests_per_second=Decimal(0)),
        reserve=a_plan().reserve.__class__(replicas=0, quiet=0),
        bounds=Bounds(minimum=0, maximum=8),
    )
    found = hours_of(plan)
    assert (found.planned, found.flat_peak, found.saved_percent) == (0, 0, 0)


def test_a_day_of_25_hours_counts_25():
    flat = a_plan(windows=(a_window(days=frozenset(range(7)), start=time(0), end=time(0)),))
    start = datetime(2026, 10, 25, tzinfo=BERLIN)
    end = datetime(2026, 10, 26, tzinfo=BERLIN).astimezone(UTC)
    assert gpu_hours(course(flat, start.astimezone(UTC), end), 1).required == pytest.approx(5 * 25)


def test_a_daily_cron_window_counts_as_the_same_weekly_window_does():
    cron = CronWindow(name="w", cron="0 2 * * *", at=time(2), duration=timedelta(hours=2), level=Total(replicas=4))
    window = a_window(name="w", days=frozenset(range(7)), start=time(2), end=time(4), level=Total(replicas=4))
    with_cron, with_window = a_plan(windows=(), cron_windows=(cron,)), a_plan(windows=(window,))
    assert nominal_month(with_cron) == nominal_month(with_window)


def test_a_cron_window_of_one_month_shows_in_the_flat_peak_and_hardly_in_the_hours():
    once = CronWindow(name="w", cron="0 2 24 12 *", at=time(2), duration=timedelta(hours=12), level=Total(replicas=8))
    month, plain = nominal_month(a_plan(cron_windows=(once,))), nominal_month(a_plan())
    assert month.flat_peak == 8 * 730
    assert 0 < month.required - plain.required < 12 * 8 / 12
