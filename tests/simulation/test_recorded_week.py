"""A recorded span in the fluid fleet: replicas that are given, and reactive autoscalers beside a reserve."""

from __future__ import annotations

import numpy as np
import pytest

from servingplan.simulation.fleet import Rules
from servingplan.simulation.week import Recorded, held, reactive
from servingplan.simulation.workload import HOUR_S, SLICE_S

STEP_S = 300
PER_HOUR = HOUR_S // STEP_S
RULES = Rules(start_s=600)


def recorded(*rates: float, counted: tuple[bool, ...] | None = None) -> Recorded:
    """A rate an hour; a replica serves 5/s."""
    return Recorded(
        rates=np.repeat(np.array(rates, float), PER_HOUR),
        counted=np.repeat(np.array(counted or (True,) * len(rates)), PER_HOUR),
        step_s=STEP_S,
        capacity=5.0,
    )


def level(*replicas: float) -> np.ndarray:
    return np.repeat(np.array(replicas, np.float32), HOUR_S // SLICE_S)


def test_replicas_that_are_enough_serve_all_and_too_few_do_not():
    load = recorded(*[16.0] * 6)
    enough, few = held(load, [level(*[5] * 6), level(*[2] * 6)], RULES)
    assert enough.replica_hours == pytest.approx(30, rel=0.01)
    assert enough.attainment == pytest.approx(1.0, abs=1e-4)
    assert few.attainment is not None
    assert few.attainment < 0.2


def test_replicas_serve_a_start_time_after_they_are_set():
    load = recorded(4.0, 20.0)
    late = np.concatenate([level(2), level(6)])
    early = np.concatenate([level(2)[: -600 // SLICE_S], np.full(600 // SLICE_S, 6, np.float32), level(6)])
    too_late, in_time = held(load, [late, early], RULES)
    assert in_time.attainment == pytest.approx(1.0, abs=1e-3)
    assert too_late.attainment is not None
    assert too_late.attainment < 0.9


def test_hours_that_do_not_count_are_in_no_figure():
    load = recorded(10.0, 10.0, 200.0, 10.0, counted=(True, True, False, True))
    (outcome,) = held(load, [level(4, 4, 4, 4)], RULES)
    assert outcome.replica_hours == pytest.approx(12, rel=0.01)


def test_a_gap_is_no_rate():
    load = recorded(10.0, float("nan"), 10.0, counted=(True, False, True))
    (outcome,) = held(load, [level(4, 4, 4)], RULES)
    assert outcome.attainment == pytest.approx(1.0, abs=1e-4)


def test_reactive_autoscalers_hold_what_the_load_needs_and_the_reserve_beside_it():
    load = recorded(*[17.0] * 24)
    without = reactive(load, RULES, most=20)
    with_reserve = reactive(load, Rules(start_s=600, reserve=2), most=20)
    for alone, beside in zip(without, with_reserve, strict=True):
        assert 3.4 * 24 < alone.replica_hours < 6 * 24
        assert beside.replica_hours == pytest.approx(alone.replica_hours + 2 * 24, rel=0.1)


def test_reactive_autoscalers_keep_to_the_bound():
    for outcome in reactive(recorded(*[100.0] * 4), Rules(start_s=600, reserve=1), most=3):
        assert outcome.replica_hours <= 3 * 4 * 1.01


def test_a_rise_finds_a_reactive_autoscaler_a_start_time_behind():
    load = recorded(2.0, 2.0, 40.0, 40.0)
    for outcome in reactive(load, RULES, most=40):
        assert outcome.attainment is not None
        assert outcome.attainment < 0.95
