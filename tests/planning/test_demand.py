"""What is required: precedence, reserve, bounds, and the words that say who asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.planning.calendar import cron_fires_on
from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.plan import (
    Bounds,
    Calendar,
    CronWindow,
    Level,
    Override,
    Plan,
    Profile,
    Rate,
    Reserve,
    Total,
    TreatAs,
    Window,
)
from servingplan.planning.reasons import Reason
from support.naive import cron_fires
from support.plans import a_plan, a_window
from support.strategies import CRONS, plans, rates

TUESDAY = date(2026, 12, 1)
DAY = timedelta(days=1)


def rate(requests_per_second: float) -> Rate:
    return Rate(requests_per_second=Decimal(str(requests_per_second)))


def at(plan: Plan, text: str) -> Requirement:
    instant = berlin(text)
    return requirements(plan, instant, instant + timedelta(minutes=1)).at(instant)


def all_day(name: str, level: Level) -> Window:
    return a_window(name=name, days=frozenset(range(7)), start=time(0), end=time(0), level=level)


def an_override(name: str, level: Level, start: str = "2026-12-01T00:00", end: str = "2026-12-02T00:00") -> Override:
    return Override(name=name, start=datetime.fromisoformat(start), end=datetime.fromisoformat(end), level=level)


def flat(requests_per_second: float) -> Profile:
    return Profile(rates=(Decimal(str(requests_per_second)),) * 168)


def on_tuesday(word: TreatAs | int | Rate, name: str = "fair") -> Calendar:
    return Calendar(name=name, dates=frozenset({TUESDAY}), treat_as=word)


def test_the_worked_example_is_five_on_working_days_and_two_otherwise() -> None:
    start = berlin("2026-11-30T00:00")
    week = requirements(a_plan(), start, start + 7 * DAY)
    assert [(p.value.need, p.value.reserve, p.value.replicas, str(p.value.source)) for p in week.pieces()] == [
        (1, 1, 2, "base"),
        (4, 1, 5, "window working-day"),
    ] * 5 + [(1, 1, 2, "base")]
    assert week.times[1] == berlin("2026-11-30T08:00")
    assert week.times[2] == berlin("2026-11-30T20:00")


PRECEDENCE: dict[str, tuple[dict[str, object], int, str]] = {
    "base alone": ({"windows": ()}, 2, "base"),
    "a window below base still counts alone": ({"windows": (all_day("low", rate(0)),)}, 1, "window low"),
    "the larger of two windows": ({"windows": (all_day("a", rate(6)), all_day("b", rate(11)))}, 4, "window b"),
    "compared as totals, not rates": (
        {"windows": (all_day("a", rate(11)), all_day("b", Total(replicas=5)))}, 5, "window b",
    ),
    "a stated total has its reserve inside": ({"windows": (all_day("a", Total(replicas=3)),)}, 3, "window a"),
    "a window above the profile": ({"profile": flat(3), "windows": (all_day("a", rate(6)),)}, 3, "window a"),
    "a profile above the window": ({"profile": flat(11), "windows": (all_day("a", rate(6)),)}, 4, "profile"),
    "a profile below base": ({"profile": flat(0), "windows": ()}, 1, "profile"),
    "a calendar rate replaces windows and profile": (
        {"profile": flat(18), "windows": (all_day("a", rate(18)),), "calendars": (on_tuesday(rate(6)),)},
        3, "calendar fair",
    ),
    "a calendar of base silences windows and profile": (
        {"profile": flat(18), "windows": (all_day("a", rate(18)),), "calendars": (on_tuesday(TreatAs.BASE),)},
        2, "base",
    ),
    "a calendar of Sundays takes Sunday's windows": (
        {"windows": (a_window(), a_window(name="sunday", days=frozenset({6}), level=rate(6))),
         "calendars": (on_tuesday(6),)}, 3, "window sunday",
    ),
    "two calendars: the largest of what they say": (
        {"windows": (all_day("a", rate(18)),),
         "calendars": (on_tuesday(TreatAs.BASE, "a"), on_tuesday(rate(6), "b"), on_tuesday(rate(11), "c"))},
        4, "calendar c",
    ),
    "an override above a calendar": (
        {"calendars": (on_tuesday(rate(30)),), "overrides": (an_override("o", rate(6)),)}, 3, "override o",
    ),
    "an override below everything": ({"overrides": (an_override("o", Total(replicas=1)),)}, 1, "override o"),
    "overrides that start together: the largest": (
        {"overrides": (an_override("a", rate(6)), an_override("b", rate(18)))}, 5, "override b",
    ),
    "an override that has not begun": (
        {"windows": (), "overrides": (an_override("o", rate(40), start="2026-12-01T12:01"),)}, 2, "base",
    ),
    "an override that ended this minute": (
        {"windows": (), "overrides": (an_override("o", rate(40), end="2026-12-01T12:00"),)}, 2, "base",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "replicas", "because"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_who_asks_at_noon_on_tuesday(changes: dict[str, object], replicas: int, because: str) -> None:
    required = at(a_plan(**changes), "2026-12-01T12:00")
    assert (required.replicas, str(required.source)) == (replicas, because)


def test_equal_levels_are_told_by_name_in_any_order() -> None:
    windows = (all_day("b", rate(6)), all_day("a", rate(6)))
    assert at(a_plan(windows=windows), "2026-12-01T12:00") == at(a_plan(windows=windows[::-1]), "2026-12-01T12:00")


RESERVE: dict[str, tuple[dict[str, object], int, int]] = {
    "base is quiet": ({"windows": ()}, 1, 3),
    "a window is not, however low": ({"windows": (all_day("low", rate(1)),)}, 1, 1),
    "a calendar rate is not": ({"windows": (), "calendars": (on_tuesday(rate(1)),)}, 1, 1),
    "an override is not": ({"windows": (), "overrides": (an_override("o", rate(1)),)}, 1, 1),
    "a profile at base's need is": ({"windows": (), "profile": flat(5)}, 1, 3),
    "a profile above base's need is not": ({"windows": (), "profile": flat(5.1)}, 2, 1),
    "a holiday treated as base is": ({"calendars": (on_tuesday(TreatAs.BASE),)}, 1, 3),
    "a profile during a window is not": ({"windows": (all_day("low", rate(0)),), "profile": flat(5)}, 1, 1),
}


@pytest.mark.parametrize(("changes", "need", "reserve"), RESERVE.values(), ids=RESERVE)
def test_the_quiet_reserve_holds_where_nothing_is_stated(changes: dict[str, object], need: int, reserve: int) -> None:
    required = at(a_plan(reserve=Reserve(replicas=1, quiet=3), **changes), "2026-12-01T12:00")
    assert (required.need, required.reserve, required.replicas) == (need, reserve, need + reserve)


BOUNDS = {
    "above: the need goes first, the reserve is cut": (rate(40), 1, 8, (8, 8, 0, 9)),
    "the reserve partly cut": (rate(35), 1, 8, (8, 7, 1, 8)),
    "far above": (rate(1_000_000), 1, 8, (8, 8, 0, 200_001)),
    "below": (rate(0), 3, 8, (3, 0, 1, 1)),
    "a stated total above": (Total(replicas=12), 1, 8, (8, 8, 0, 12)),
    "a stated total of nothing": (Total(replicas=0), 0, 8, (0, 0, 0, 0)),
    "a stated total below": (Total(replicas=0), 2, 8, (2, 0, 0, 0)),
    "minimum equals maximum": (rate(18), 4, 4, (4, 4, 0, 5)),
}


@pytest.mark.parametrize(("level", "minimum", "maximum", "expected"), BOUNDS.values(), ids=BOUNDS)
def test_bounds_limit_what_is_required_and_keep_what_was_wanted(
    level: Level, minimum: int, maximum: int, expected: tuple[int, int, int, int]
) -> None:
    plan = a_plan(windows=(all_day("w", level),), bounds=Bounds(minimum=minimum, maximum=maximum))
    required = at(plan, "2026-12-01T12:00")
    assert (required.replicas, required.need, required.reserve, required.unbounded) == expected


def test_a_window_over_midnight_ends_the_next_day() -> None:
    night = a_window(name="night", days=frozenset({6}), start=time(22), end=time(6))
    start = berlin("2026-12-06T12:00")
    found = requirements(a_plan(windows=(night,)), start, start + DAY)
    assert [found.times[1], found.times[2]] == [berlin("2026-12-06T22:00"), berlin("2026-12-07T06:00")]


def test_a_window_that_ends_when_it_starts_lasts_a_day() -> None:
    window = a_window(days=frozenset({1}), start=time(8), end=time(8))
    start = berlin("2026-12-01T00:00")
    found = requirements(a_plan(windows=(window,)), start, start + 3 * DAY)
    assert [found.times[1], found.times[2]] == [berlin("2026-12-01T08:00"), berlin("2026-12-02T08:00")]


def test_a_window_wholly_inside_a_gap_asks_for_nothing() -> None:
    window = a_window(days=frozenset({6}), start=time(2, 10), end=time(2, 50))
    start = berlin("2026-03-29T00:00")
    assert len(requirements(a_plan(windows=(window,)), start, start + DAY).times) == 1


NIGHTS = {"spring": ("2026-03-28", 2.5), "ordinary": ("2026-03-21", 3.5), "autumn": ("2026-10-24", 4.5)}


@pytest.mark.parametrize(("saturday", "hours"), NIGHTS.values(), ids=NIGHTS)
def test_a_night_window_keeps_its_wall_times_through_a_clock_change(saturday: str, hours: float) -> None:
    night = a_window(days=frozenset({5}), start=time(23, 30), end=time(3))
    start = berlin(f"{saturday}T12:00")
    found = requirements(a_plan(windows=(night,)), start, start + DAY)
    assert found.hours(lambda r: int(r.replicas == 5)) == hours


def test_a_cron_window_lasts_its_elapsed_time_through_a_clock_change() -> None:
    cron = CronWindow(name="c", cron="0 1 * * *", at=time(1), duration=timedelta(hours=4), level=rate(18))
    for day in ("2026-03-29", "2026-10-25"):
        start = berlin(f"{day}T00:00")
        found = requirements(a_plan(windows=(), cron_windows=(cron,)), start, start + DAY)
        assert found.hours(lambda r: int(r.replicas == 5)) == 4


def test_a_cron_window_of_a_week_is_seen_on_its_last_minute() -> None:
    cron = CronWindow(name="c", cron="0 12 1 * *", at=time(12), duration=timedelta(hours=168), level=rate(18))
    plan = a_plan(windows=(), cron_windows=(cron,))
    assert [at(plan, t).replicas for t in ("2026-12-08T11:59", "2026-12-08T12:00")] == [5, 2]


@pytest.mark.parametrize("cron", CRONS)
def test_a_cron_fires_on_the_dates_that_its_fields_say(cron: str) -> None:
    text = cron.format("30 5")
    days = [date(2026, 1, 1) + n * DAY for n in range(800)]
    assert [d for d in days if cron_fires_on(text, time(5, 30), d)] == [d for d in days if cron_fires(text, d)]


def test_a_cron_of_the_twenty_ninth_of_february_fires_in_leap_years_alone() -> None:
    days = [date(2026, 1, 1) + n * DAY for n in range(7 * 366)]
    fires = [day for day in days if cron_fires_on("0 0 29 2 *", time(0), day)]
    assert fires == [date(2028, 2, 29), date(2032, 2, 29)]


def test_a_ten_minute_profile_steps_every_ten_minutes() -> None:
    profile = Profile(rates=tuple(Decimal(10 * (i % 2)) for i in range(1008)))
    start = berlin("2026-12-01T00:00")
    found = requirements(a_plan(windows=(), profile=profile), start, start + timedelta(hours=1))
    assert [t - start for t in found.times] == [n * timedelta(minutes=10) for n in range(6)]


def test_a_profile_of_the_doubled_hour_is_read_twice() -> None:
    profile = Profile(rates=tuple(Decimal(18 if i == 6 * 24 + 2 else 2) for i in range(168)))
    start = berlin("2026-10-25T00:00")
    found = requirements(a_plan(windows=(), profile=profile), start, start + DAY)
    assert found.hours(lambda r: int(r.replicas == 5)) == 2


def test_a_profile_of_a_holiday_follows_the_calendar_word() -> None:
    profile = Profile(rates=tuple(Decimal(18 if i < 5 * 24 else 6) for i in range(168)))
    plan = a_plan(windows=(), profile=profile)
    treated = replace(plan, calendars=(on_tuesday(5),))
    assert [at(p, "2026-12-01T12:00").replicas for p in (plan, treated)] == [5, 3]


def test_a_calendar_date_begins_where_there_is_no_midnight() -> None:
    fair = Calendar(name="fair", dates=frozenset({date(2026, 9, 6)}), treat_as=rate(18))
    plan = a_plan(zone=ZoneInfo("America/Santiago"), windows=(), calendars=(fair,))
    start = datetime(2026, 9, 6, tzinfo=UTC)
    found = requirements(plan, start, start + 2 * DAY)
    assert found.times[1:] == (datetime(2026, 9, 6, 4, tzinfo=UTC), datetime(2026, 9, 7, 3, tzinfo=UTC))


def test_the_source_says_what_asks() -> None:
    required = at(a_plan(), "2026-12-01T12:00")
    assert (required.source.reason, required.source.name, required.rate) == (Reason.WINDOW, "working-day", Decimal(18))


START = datetime(2026, 3, 27, tzinfo=UTC)
END = START + 4 * DAY


@given(plans())
def test_bounds_hold_at_every_instant(plan: Plan) -> None:
    for piece in requirements(plan, START, END).pieces():
        value = piece.value
        assert plan.bounds.minimum <= value.replicas <= plan.bounds.maximum
        assert 0 <= value.need <= value.replicas
        assert value.need + value.reserve <= value.replicas


@given(plans(), st.randoms(use_true_random=False))
def test_the_order_in_lists_never_matters(plan: Plan, random: Random) -> None:
    shuffled = replace(
        plan,
        windows=_shuffled(plan.windows, random),
        overrides=_shuffled(plan.overrides, random),
        calendars=_shuffled(plan.calendars, random),
    )
    assert requirements(plan, START, END) == requirements(shuffled, START, END)


def _shuffled(items: Sequence[object], random: Random) -> tuple[object, ...]:
    return tuple(random.sample(list(items), len(items)))


@given(plans(), rates())
def test_more_demand_never_requires_fewer(plan: Plan, more: Decimal) -> None:
    """Every rate rises by as much, but for a base that a profile is compared with to find its quiet hours."""

    def risen(level: Level) -> Level:
        return Rate(requests_per_second=level.requests_per_second + more) if isinstance(level, Rate) else level

    plan = replace(plan, reserve=Reserve(replicas=plan.reserve.replicas, quiet=plan.reserve.smallest))
    busier = replace(
        plan,
        base=plan.base if plan.profile else risen(plan.base),
        profile=plan.profile and Profile(rates=tuple(r + more for r in plan.profile.rates)),
        windows=tuple(replace(w, level=risen(w.level)) for w in plan.windows),
        overrides=tuple(replace(o, level=risen(o.level)) for o in plan.overrides),
        calendars=tuple(
            replace(c, treat_as=risen(c.treat_as) if isinstance(c.treat_as, Rate) else c.treat_as)
            for c in plan.calendars
        ),
    )
    before, after = requirements(plan, START, END), requirements(busier, START, END)
    for instant in {*before.times, *after.times}:
        assert after.at(instant).replicas >= before.at(instant).replicas


@given(plans(), st.integers(0, 4 * 1440 - 1))
def test_what_is_required_does_not_depend_on_the_range_asked_for(plan: Plan, minute: int) -> None:
    instant = START + timedelta(minutes=minute)
    alone = requirements(plan, instant, instant + timedelta(seconds=1)).at(instant)
    assert alone == requirements(plan, START, END).at(instant)
