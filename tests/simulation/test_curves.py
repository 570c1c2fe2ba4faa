"""Costs at equal attainment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servingplan.simulation.curves import cost_at, frontier, interval, mean_over

ATTAINED = np.array([0.90, 0.99, 0.95, 0.97])
COST = np.array([1.0, 3.0, 2.5, 2.0])


def test_what_another_setting_beats_in_both_is_no_choice():
    assert frontier(ATTAINED, COST).tolist() == [0, 3, 1]


@pytest.mark.parametrize(
    ("wanted", "cost"),
    [
        pytest.param(0.97, 2.0, id="at a setting"),
        pytest.param(0.98, 2.5, id="between two"),
        pytest.param(0.5, 1.0, id="the cheapest attains more"),
        pytest.param(0.995, math.nan, id="none reaches it"),
    ],
)
def test_a_cost_lies_on_the_line_between_settings(wanted, cost):
    assert cost_at(ATTAINED, COST, wanted) == pytest.approx(cost, nan_ok=True)


def test_a_lane_without_requests_has_no_cost_at_an_attainment():
    assert math.isnan(cost_at(np.full(2, np.nan), np.ones(2), 0.9))


def test_an_interval_is_wider_where_tenants_differ_and_infinite_where_draws_may_not_reach():
    values = np.array([1.0, 2.0, 3.0, 4.0])

    low, high = interval(lambda draw: float(values[draw].mean()), 4, seed=1)
    _, never = interval(lambda draw: float("nan") if (draw == 0).all() or draw[0] == 1 else 1.0, 4, seed=1)

    assert low < values.mean() < high
    assert math.isinf(never)
    assert interval(lambda _: 2.0, 4, seed=1) == (2.0, 2.0)


def test_seeds_of_a_tenant_are_averaged():
    found = mean_over(np.array([[1.0, 3.0, 10.0], [2.0, 4.0, 20.0]]), [0, 0, 1])

    assert found.tolist() == [[2.0, 10.0], [3.0, 20.0]]
