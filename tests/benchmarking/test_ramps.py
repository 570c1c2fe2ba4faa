"""The search against servers of known capacity: ramps over different noise, in virtual time."""

from __future__ import annotations

import os
from statistics import mean

import pytest

from benchmarking.ramping import accounted, ramp_up
from servingplan.benchmarking.effort import QUICK
from support.queueing import STEEP, true_capacity

THOROUGH = bool(os.environ.get("SERVINGPLAN_THOROUGH"))
RAMPS_EACH, TRUTH_RUNS = (40, 150) if THOROUGH else (8, 50)
"""Of each of the five servers: 200 ramps in all where SERVINGPLAN_THOROUGH is set, else 40."""


@pytest.mark.slow
def test_what_a_ramp_finds_is_near_the_truth_and_its_interval_covers_it() -> None:
    account = [accounted(name, each=RAMPS_EACH, runs=TRUTH_RUNS) for name in STEEP]
    offs = [off for one in account for off in one.offs]
    covers = [covered for one in account for covered in one.covers]

    assert len(offs) == RAMPS_EACH * len(STEEP)
    assert abs(mean(offs)) <= 0.03
    assert mean(covers) >= 0.93


@pytest.mark.parametrize("start", [0.05, 40.0], ids=["far below", "far above"])
def test_the_start_of_the_ladder_does_not_matter(start: float) -> None:
    server, objectives, _ = STEEP["tokens slow down"]
    truth = true_capacity(server, objectives, runs=40)
    found = ramp_up(server, objectives, start=start * truth, seed=5, effort=QUICK).finding
    assert found.capacity == pytest.approx(truth, rel=0.2)
    assert found.capacity is not None
    assert found.failing is not None
    assert found.failing / found.capacity <= 1.4
