"""A trace: what comes in each slice, and which slices count."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from servingplan.errors import InputError
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.trace import Drawing, planned, planned_rates, recorded
from simulation.played import DRAWING, PER_HOUR, TUESDAY, evenly
from support.plans import a_plan

STEP_S = 600
PER_STEP = STEP_S // SLICE_S


def by_step(trace, per_step=PER_STEP):
    return trace.requests.reshape(-1, per_step).sum(axis=1)


def test_requests_inside_a_step_are_drawn_and_add_up_to_it():
    counts = np.array([60.0, 600.0, 0.0, 300.0] * 2)
    trace = recorded(counts, TUESDAY, STEP_S, Drawing(seed=1, dispersion=3))

    assert trace.drawn
    assert by_step(trace) == pytest.approx(counts, rel=1e-5, abs=1e-3)
    assert trace.requests[PER_STEP : 2 * PER_STEP].std() > 1


def test_a_seed_gives_the_same_requests_and_another_one_others():
    counts = np.full(6, 600.0)
    once, again, other = (
        recorded(counts, TUESDAY, STEP_S, Drawing(seed=seed, dispersion=3)).requests for seed in (1, 1, 2)
    )
    assert (once == again).all()
    assert (once != other).any()


def test_requests_with_a_time_of_their_own_stay_where_they_are():
    counts = np.arange(2.0 * PER_HOUR)
    trace = recorded(counts, TUESDAY, SLICE_S, DRAWING)

    assert not trace.drawn
    assert (trace.requests == counts).all()


def test_a_gap_lies_on_a_line_between_its_ends_and_does_not_count():
    trace = recorded(np.array([600.0, 600.0, np.nan, 1200.0, 1200.0]), TUESDAY, STEP_S, DRAWING)

    assert by_step(trace)[2] == pytest.approx(900)
    assert (~trace.counted).nonzero()[0].tolist() == list(range(2 * PER_STEP, 3 * PER_STEP))


def test_before_the_first_request_comes_a_while_of_the_same_that_does_not_count():
    trace = evenly(10, 20).after_a_while(timedelta(hours=1))

    assert trace.start == TUESDAY - timedelta(hours=1)
    assert trace.first == TUESDAY
    assert trace.requests[:PER_HOUR].tolist() == [10 * SLICE_S] * PER_HOUR


@pytest.mark.parametrize(
    ("counts", "step_s", "says"),
    [
        pytest.param([600.0, 600.0], 600, "20 minutes of requests; 30 are the least", id="too-short"),
        pytest.param([600.0] * 3 + [np.nan] * 5, 300, "15 minutes", id="too-many-gaps"),
        pytest.param([10.0] * 999, 45, "steps of 45 s: they must be a multiple of 30 s", id="odd-steps"),
        pytest.param([0.0] * 999, 600, "holds no request", id="nothing-came"),
        pytest.param([np.nan] * 999, 600, "holds no request", id="nothing-recorded"),
    ],
)
def test_what_is_no_trace_is_said_in_one_sentence(counts, step_s, says):
    with pytest.raises(InputError, match=says):
        recorded(np.array(counts), TUESDAY, step_s, DRAWING)


def test_minutes_are_those_that_a_prometheus_would_have_kept():
    counts = np.arange(120.0)
    counts[10:12] = np.nan
    trace = recorded(counts, TUESDAY + timedelta(seconds=30), SLICE_S, DRAWING)
    found = trace.minutes(TUESDAY + timedelta(seconds=30), TUESDAY + timedelta(minutes=8))

    assert found.start == TUESDAY + timedelta(minutes=1)
    assert found.rates[:3] == [3 / 60, 7 / 60, 11 / 60]
    assert np.isnan(found.rates).nonzero()[0].tolist() == [4, 5]
    assert len(found.rates) == 7


def test_a_part_is_cut_out_and_must_be_long_enough_too():
    trace = evenly(1, 2, 3)
    part = trace.between(TUESDAY + timedelta(hours=1), TUESDAY + timedelta(hours=2))

    assert (part.start, part.end) == (TUESDAY + timedelta(hours=1), TUESDAY + timedelta(hours=2))
    assert set(part.requests.tolist()) == {2 * SLICE_S}
    with pytest.raises(InputError, match="10 minutes of requests"):
        trace.between(TUESDAY, TUESDAY + timedelta(minutes=10))


def test_a_plan_can_be_played_by_its_own_demand():
    trace = planned(a_plan(), TUESDAY, TUESDAY + timedelta(days=1), DRAWING)

    rates = by_step(trace, PER_HOUR) / 3600
    assert rates.tolist() == pytest.approx([2] * 8 + [18] * 12 + [2] * 4, rel=1e-4)
    assert trace.drawn


def test_what_is_planned_follows_the_schedule_to_the_slice():
    rates = planned_rates(a_plan(), TUESDAY + timedelta(hours=7, minutes=59), 4)
    assert rates.tolist() == [2, 2, 18, 18]
