"""Windows over time, against what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from servingplan.simulation.windows import (
    SlidingExtreme,
    coming_maximum,
    coming_mean,
    later,
    running_sums,
    trailing_mean,
)

VALUES = np.random.default_rng(5).gamma(1, 3, (37, 4)).astype(np.float32)
WINDOWS = [1, 2, 3, 7, 16, 36]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("function", [np.maximum, np.minimum], ids=["maximum", "minimum"])
def test_a_sliding_extreme_is_that_of_the_last_arrays(function, window):
    sliding = SlidingExtreme(function, window, (4,), 0 if function is np.maximum else np.inf)

    found = [sliding.push(row) for row in VALUES]

    for i, row in enumerate(found):
        expected = function.reduce(VALUES[max(0, i - window + 1) : i + 1], axis=0)
        assert row.tolist() == expected.tolist()


@pytest.mark.parametrize("window", WINDOWS)
def test_a_coming_maximum_looks_from_now_on(window):
    expected = [VALUES[i : i + window].max(axis=0) for i in range(len(VALUES))]

    assert coming_maximum(VALUES, window).tolist() == np.array(expected).tolist()


@pytest.mark.parametrize("window", WINDOWS)
def test_a_trailing_mean_knows_nothing_of_now(window):
    found = trailing_mean(running_sums(VALUES), window)

    assert found[0].tolist() == [0, 0, 0, 0]
    for i in range(1, len(VALUES)):
        assert found[i] == pytest.approx(VALUES[max(0, i - window) : i].mean(axis=0), rel=1e-5)


def test_a_coming_mean_counts_what_is_missing_as_nothing():
    found = coming_mean(running_sums(VALUES), 10)

    assert found[3] == pytest.approx(VALUES[3:13].mean(axis=0), rel=1e-5)
    assert found[-1] == pytest.approx(VALUES[-1] / 10, rel=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 36, 50])
def test_later_values_hold_on_at_the_end(steps):
    found = later(VALUES, steps)

    assert found.shape == VALUES.shape
    assert found[0].tolist() == VALUES[min(steps, 36)].tolist()
    assert found[-1].tolist() == VALUES[-1].tolist()
