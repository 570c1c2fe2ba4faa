"""Few windows: the cheapest, on round times, as a person writes them; compared with every other way of small weeks."""

from __future__ import annotations

import itertools
from datetime import datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.profiling.fit import SHORT_COSTS, fits
from servingplan.profiling.windows import capacity_of, levels_of, round_up, schedules
from support.logs import BERLIN, a_profile, arrivals, office


def priced(needed, base, pieces, levels):
    """What a base and windows cost."""
    given_level = np.full(needed.shape, levels[base], dtype=float)
    for piece in pieces:
        area = np.ix_(piece.days, range(piece.start, piece.end))
        given_level[area] = np.maximum(given_level[area], levels[piece.level])
    return float((given_level + SHORT_COSTS * np.maximum(needed - given_level, 0)).sum())


DAYS = st.lists(st.integers(min_value=1, max_value=3), min_size=5, max_size=5)


@settings(max_examples=40, deadline=None)
@given(st.lists(DAYS, min_size=7, max_size=7))
def test_a_fit_costs_what_it_says_and_more_windows_cost_less(week):
    needed, levels = np.array(week, dtype=float), [1.0, 2.0, 3.0]
    found = fits(needed, levels)

    for fit in found:
        assert priced(needed, fit.base, fit.pieces, levels) == pytest.approx(fit.cost)
    costs = [fit.cost for fit in found]
    assert costs == sorted(costs, reverse=True)


@settings(max_examples=25, deadline=None)
@given(DAYS)
def test_no_two_windows_of_a_day_cost_less_than_those_that_are_found(day):
    needed, levels = np.array([day] * 7, dtype=float), [1.0, 2.0, 3.0]
    found = {len(fit.pieces): fit.cost for fit in fits(needed, levels)}
    intervals = [(i, j, level) for i, j in itertools.combinations(range(6), 2) for level in range(3)]

    def cost(base, windows):
        given_level = np.full(5, levels[base])
        for i, j, level in windows:
            given_level[i:j] = np.maximum(given_level[i:j], levels[level])
        return float((given_level + SHORT_COSTS * np.maximum(needed[0] - given_level, 0)).sum()) * 7

    for count in (1, 2):
        best = min(cost(base, ws) for base in range(3) for ws in itertools.combinations(intervals, count))
        assert min(c for n, c in found.items() if n <= count) == pytest.approx(best)


def suggested(rate, *, capacity="5", days=14, slot_minutes=60, start=None):
    options = {} if start is None else {"start": start}
    profile = a_profile(arrivals(rate, days=days, **options), slot_minutes=slot_minutes)
    return profile, schedules(profile.week, capacity_of(Decimal(capacity)) if capacity else None)


def told(schedule):
    days = {(0, 1, 2, 3, 4): "Mon-Fri", (5, 6): "Sat-Sun", tuple(range(7)): "all"}
    return [(w.name, days.get(w.days, w.days), f"{w.start:%H:%M}-{w.end:%H:%M}", str(w.rate)) for w in schedule.windows]


def test_an_office_is_one_window_with_or_without_a_capacity():
    for capacity in ("5", None):
        _, found = suggested(office(), capacity=capacity)

        assert told(found.best) == [("working-day", "Mon-Fri", "08:00-18:00", "1E+1")]
        assert (found.best.base, found.best.short_hours) == (1, 0)


def test_hours_are_counted_in_replicas_where_the_capacity_is_known():
    _, found = suggested(office())

    assert found.best.hours == 50 * 2 + 118 * 1
    assert (found.flat, found.followed) == (2 * 168, found.best.hours)


def midday(local: datetime) -> float:
    return office(day=14.0)(local) + (10.0 if local.weekday() < 5 and 11 <= local.hour < 14 else 0.0)


def test_a_peak_inside_of_the_day_is_a_window_inside_of_the_window():
    _, found = suggested(midday)

    assert told(found.best) == [
        ("working-day", "Mon-Fri", "08:00-18:00", "14"),
        ("weekday-midday", "Mon-Fri", "11:00-14:00", "24"),
    ]


def test_half_hours_are_used_where_the_week_is_known_that_finely():
    def rate(local):
        return 10.0 if local.weekday() < 5 and (local.hour, local.minute) >= (7, 30) and local.hour < 19 else 1.0

    _, found = suggested(rate, slot_minutes=10)

    assert told(found.best) == [("working-day", "Mon-Fri", "07:30-19:00", "1E+1")]


def test_a_load_of_the_night_is_one_window_over_midnight():
    def rate(local):
        return 12.0 if local.hour >= 21 or local.hour < 5 else 1.0

    _, found = suggested(rate)

    assert told(found.best) == [("daily-night", "all", "21:00-05:00", "12")]


def test_a_night_of_weekdays_starts_on_weekdays():
    def rate(local):
        begins = (local.hour >= 22 and local.weekday() < 5) or (local.hour < 4 and (local.weekday() - 1) % 7 < 5)
        return 30.0 if begins else 6.0 if 4 <= local.hour < 22 else 16.0

    profile, found = suggested(rate)
    stated = levels_of(found.best, profile.slot_minutes)

    assert all(level >= slot.rate for level, slot in zip(stated, profile.week, strict=True))
    assert ("Mon-Fri", "22:00-04:00") in [each[1:3] for each in told(found.best)]


def test_a_weekend_of_its_own_is_a_window_of_its_own():
    def rate(local):
        return 20.0 if local.weekday() >= 5 and 10 <= local.hour < 22 else office()(local)

    _, found = suggested(rate)

    assert told(found.best) == [
        ("working-day", "Mon-Fri", "08:00-18:00", "1E+1"),
        ("weekend-day", "Sat-Sun", "10:00-22:00", "2E+1"),
    ]


@pytest.mark.parametrize("capacity", ["5", "0.7", None])
def test_a_schedule_is_at_least_the_profile_but_in_the_hours_it_names(capacity):
    levels = np.random.default_rng(11).lognormal(1, 0.8, (7, 24))
    profile, found = suggested(lambda local: float(levels[local.weekday(), local.hour]), capacity=capacity)

    for schedule in found.by_windows:
        stated = levels_of(schedule, 60)
        short = sum(level < slot.rate * 0.9999 for level, slot in zip(stated, profile.week, strict=True))
        assert short <= schedule.short_hours
        assert len(schedule.windows) <= 8


def test_a_hundred_replicas_are_fitted_as_well_as_two():
    _, small = suggested(midday, capacity="10")
    _, large = suggested(midday, capacity="0.1")

    assert [w[:3] for w in told(large.best)] == [w[:3] for w in told(small.best)]


def test_names_are_unique_and_valid_for_the_api():
    levels = np.random.default_rng(5).choice([1.0, 9.0, 30.0], (7, 24))
    _, found = suggested(lambda local: float(levels[local.weekday(), local.hour]))

    for schedule in found.by_windows:
        names = [window.name for window in schedule.windows]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("rate", "capacity", "written"),
    [(3.21, "1", "3.3"), (9.97, "10", "1E+1"), (0.0234, "1", "0.024"), (4.96, "4.97", "4.96"), (0, "1", "0")],
)
def test_rates_are_rounded_up_but_never_to_one_more_replica(rate, capacity, written):
    assert str(round_up(rate, capacity_of(Decimal(capacity)))) == written


def test_clock_changes_do_not_move_windows():
    _, found = suggested(office(), start=datetime(2026, 10, 19, tzinfo=BERLIN))

    assert told(found.best) == [("working-day", "Mon-Fri", "08:00-18:00", "1E+1")]
