"""The fluid fleet: what starts, what waits, what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from servingplan.simulation.fleet import Rules, run, serve
from servingplan.simulation.scorecard import Period, by_hour_of_week, scored
from servingplan.simulation.windows import Array
from servingplan.simulation.workload import SLICE_S
from simulation.recorded import load, tenants

DAY = Period(first_day=0, end_day=1)


def row(*values: float) -> Array:
    return np.array([values], np.float32)


def wanting(*changes: tuple[int, float]):
    """A policy that wants so many from each slice on."""

    def wanted(i: int, _seen: object) -> Array:
        return row([value for start, value in changes if i >= start][-1])

    return wanted


def steady(rate: float, steps: int = 144, **kind):
    return load(tenants([[10.0]] + [[rate]] * (steps - 1), **kind))


def hours(ledger, name: str) -> float:
    return float(getattr(ledger, name).sum())


def test_a_replica_serves_a_start_time_after_it_was_wanted():
    ledger = run(steady(1.0), wanting((0, 1), (120, 3)), [0.0], Rules(start_s=300))

    assert hours(ledger, "starting") == pytest.approx(2 * 300 / 3600, rel=1e-5)
    assert ledger.serving[1, 0, 0] == pytest.approx(1 + 2 * 3300 / 3600, rel=1e-5)


def test_what_starts_is_cancelled_before_what_serves_and_drains_nothing():
    ledger = run(steady(1.0), wanting((0, 1), (120, 3), (125, 1)), [0.0], Rules(start_s=300))

    assert hours(ledger, "draining") == 0
    assert hours(ledger, "serving") == pytest.approx(24, rel=1e-5)


def test_the_newest_start_is_cancelled_first():
    ledger = run(steady(1.0), wanting((0, 1), (120, 2), (125, 3), (128, 2)), [0.0], Rules(start_s=300))

    assert hours(ledger, "draining") == 0
    assert ledger.serving[1, 0, 0] == pytest.approx(1 + 3300 / 3600, rel=1e-5)


def test_what_leaves_costs_until_it_has_drained():
    ledger = run(steady(1.0), wanting((0, 3), (240, 1)), [0.0], Rules(start_s=120, drain_s=90))

    assert hours(ledger, "draining") == pytest.approx(2 * 90 / 3600, rel=1e-5)


def test_a_fall_waits_for_its_stabilization_each_setting_its_own():
    ledger = run(
        steady(1.0),
        lambda i, _: np.repeat(wanting((0, 3), (240, 1))(i, None), 2, axis=0),
        [60.0, 600.0],
        Rules(start_s=0),
    )

    # A fall is held from the last slice that wanted more, which ran anyway.
    longer = (600 - 60) / 3600
    serving = ledger.serving.sum(axis=(0, 2))
    assert serving[1] - serving[0] == pytest.approx(2 * longer, rel=1e-4)


def test_a_reserve_serves_and_is_counted_apart():
    rules = Rules(start_s=120, reserve=1)
    ledger = run(steady(1.9), wanting((0, 1)), [0.0], rules)

    assert hours(ledger, "reserve") == pytest.approx(24, rel=1e-4)
    assert hours(ledger, "serving") == pytest.approx(24, rel=1e-4)
    assert scored(ledger, DAY).hours[0, 0] == pytest.approx(48, rel=1e-4)
    assert ledger.good[3:].sum() == pytest.approx(ledger.requests[3:].sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("queue", "demand", "good"),
    [
        pytest.param(0, 2, 1, id="enough replicas"),
        pytest.param(0, 4, 10 * 2 / (2 * SLICE_S), id="the queue grows to more than ten seconds"),
        pytest.param(40, 0, (10 * 2 + 20) / (2 * SLICE_S), id="the queue is worked off"),
        pytest.param(100, 2, 0, id="everyone waits too long"),
        pytest.param(20, 2, 1, id="everyone waits as long as is allowed"),
    ],
)
def test_a_request_is_good_while_the_queue_is_short_enough(queue, demand, good):
    served = serve(row(queue), row(demand), row(2), Rules(start_s=0))

    assert served.good[0, 0] == pytest.approx(good, rel=1e-5)


def test_who_would_wait_too_long_goes_away_and_is_missed():
    ledger = run(steady(4.0, steps=36), wanting((0, 2)), [0.0], Rules(start_s=0, patience_s=60))
    served = serve(row(119), row(4), row(2), Rules(start_s=0, patience_s=60))

    assert served.queue[0, 0] == 120
    assert ledger.good[2:5].sum() == 0


def test_gaps_are_neither_scored_nor_paid():
    whole = run(steady(1.0), wanting((0, 1)), [0.0], Rules(start_s=0))
    parted = run(steady(1.0, gaps=[20, 21, 22]), wanting((0, 1)), [0.0], Rules(start_s=0))

    assert hours(parted, "serving") == pytest.approx(24 - 0.5, rel=1e-5)
    assert parted.requests.sum() == pytest.approx(whole.requests.sum() - 1800, rel=1e-5)


def test_attainment_is_told_for_each_hour_of_the_week():
    ledger = run(steady(1.0), wanting((0, 2)), [0.0], Rules(start_s=0))

    weekly = by_hour_of_week(ledger, DAY)

    assert weekly.shape == (168, 1, 1)
    assert weekly[5, 0, 0] == pytest.approx(1)
    assert np.isnan(weekly[30, 0, 0])
