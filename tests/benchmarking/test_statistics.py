"""Bounds of shares, against SciPy and against what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from servingplan.benchmarking.statistics import CONFIDENCE, bootstrap, share_bounds, wilson

SHARES = {"all": (60, 60), "none": (0, 60), "most": (57, 60), "few": (3, 60), "many": (8910, 9000)}


@pytest.mark.parametrize(("met", "sent"), SHARES.values(), ids=SHARES)
def test_wilsons_bounds_are_those_of_scipy(met: int, sent: int) -> None:
    # A two-sided interval of 90 % has the one-sided bounds of 95 % as its ends.
    reference = stats.binomtest(met, sent).proportion_ci(confidence_level=2 * CONFIDENCE - 1, method="wilson")
    assert wilson(met, sent) == pytest.approx((reference.low, reference.high), abs=1e-9)


def test_the_bootstrap_over_blocks_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    sent = rng.integers(120, 180, 24)
    met = rng.binomial(sent, 0.95)
    reference = stats.bootstrap(
        (sent, met),
        lambda of, good, axis: good.sum(axis=axis) / of.sum(axis=axis),
        paired=True, vectorized=True, n_resamples=20_000, confidence_level=2 * CONFIDENCE - 1,
        method="percentile", rng=np.random.default_rng(4),
    ).confidence_interval  # fmt: skip
    assert bootstrap(sent, met, seed=1) == pytest.approx((reference.low, reference.high), abs=1e-3)


def test_misses_that_come_together_leave_more_doubt_than_those_spread_out() -> None:
    sent = np.full(18, 150)
    spread_out, together = np.full(18, 145), np.full(18, 150)
    together[:3] = 120
    assert spread_out.sum() == together.sum()
    alike, clustered = share_bounds(sent, spread_out, seed=1), share_bounds(sent, together, seed=1)
    assert alike.share == clustered.share
    assert clustered.lower < alike.lower - 0.01


def test_a_few_requests_without_a_miss_prove_little() -> None:
    assert share_bounds(np.full(6, 10), np.full(6, 10), seed=1).lower < 0.96
    assert share_bounds(np.full(6, 500), np.full(6, 500), seed=1).lower > 0.99


def test_the_same_seed_gives_the_same_bounds() -> None:
    sent, met = np.full(18, 150), np.array([150, 140, 148] * 6)
    assert share_bounds(sent, met, seed=7) == share_bounds(sent, met, seed=7)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no requests"):
        share_bounds(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), seed=1)
