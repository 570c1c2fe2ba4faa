"""Bounds of a mean: against SciPy where there is a formula, and against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from servingplan.evaluating.bounds import CONFIDENCE, mean_bounds

SHARES = {"none": (0, 150), "all": (150, 150), "few": (2, 60), "most": (570, 600), "half": (50, 100)}


def scores(right: int, of: int) -> list[float]:
    return [1.0] * right + [0.0] * (of - right)


@pytest.mark.parametrize(("right", "of"), SHARES.values(), ids=SHARES)
def test_of_right_and_wrong_it_is_the_exact_bound_of_scipy(right: int, of: int) -> None:
    # A two-sided interval of 90 % has the one-sided bounds of 95 % as its ends.
    exact = stats.binomtest(right, of).proportion_ci(confidence_level=2 * CONFIDENCE - 1, method="exact")
    found = mean_bounds(scores(right, of), lowest=0, highest=1)
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high), abs=0.001)
    assert found.mean == pytest.approx(right / of)


def test_of_differences_that_are_only_losses_it_is_the_exact_bound_of_their_share() -> None:
    exact = stats.binomtest(7, 400).proportion_ci(confidence_level=2 * CONFIDENCE - 1, method="exact")
    found = mean_bounds([-1.0] * 7 + [0.0] * 393, lowest=-1, highest=1)
    assert found.lower == pytest.approx(-exact.high, abs=0.001)


def test_of_many_values_it_is_the_normal_bound() -> None:
    values = np.random.default_rng(5).choice([-1.0, 0.0, 1.0], size=20_000, p=[0.06, 0.9, 0.04])
    found = mean_bounds(list(values), lowest=-1, highest=1)
    reach = stats.norm.ppf(CONFIDENCE) * stats.sem(values)
    assert (found.lower, found.upper) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=2e-4)


def test_of_graded_values_it_is_the_bootstrap_of_scipy_where_there_are_many() -> None:
    values = np.random.default_rng(6).beta(2, 3, 2_000) - np.random.default_rng(7).beta(2, 3, 2_000)
    reference = stats.bootstrap(
        (values,), np.mean, confidence_level=2 * CONFIDENCE - 1, n_resamples=5_000, method="percentile",
        rng=np.random.default_rng(8),
    ).confidence_interval  # fmt: skip
    found = mean_bounds(list(values), lowest=-1, highest=1)
    assert (found.lower, found.upper) == pytest.approx((reference.low, reference.high), abs=2e-3)


def test_a_few_values_that_agree_prove_little_and_many_prove_more() -> None:
    few, many = (mean_bounds([0.0] * count, lowest=-1, highest=1) for count in (10, 1000))
    assert few.lower == pytest.approx(-0.26, abs=0.01)
    assert many.lower == pytest.approx(-0.003, abs=0.0005)
    assert few.mean == many.mean == 0


def test_of_no_value_nothing_is_known() -> None:
    found = mean_bounds([], lowest=-1, highest=1)
    assert (found.lower, found.upper) == (-1, 1)


def test_the_same_values_have_the_same_bounds_in_any_order() -> None:
    values = [0.25, 1.0, -0.5, 0.0, 0.75] * 30
    assert mean_bounds(values, lowest=-1, highest=1) == mean_bounds(values[::-1], lowest=-1, highest=1)


@pytest.mark.parametrize("graded", [False, True], ids=["right and wrong", "graded"])
def test_it_is_below_the_truth_in_at_least_95_of_100_samples(graded: bool) -> None:
    rng = np.random.default_rng(9)
    missed = 0
    for _ in range(200):
        losses, wins = rng.random(160) < 0.03, rng.random(160) < 0.01
        size = rng.choice([0.25, 0.5, 1.0], 160) if graded else np.ones(160)
        truth = -0.02 * (np.mean([0.25, 0.5, 1.0]) if graded else 1)
        values = size * (wins.astype(float) - losses.astype(float))
        missed += mean_bounds(list(values), lowest=-1, highest=1).lower > truth
    assert missed <= stats.binom.ppf(0.999, 200, 1 - CONFIDENCE)
