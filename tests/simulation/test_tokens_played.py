"""Replicas that were played, served token by token: who counts, and what they attain."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from servingplan.hardware.lengths import Lengths
from servingplan.planning.plan import Objective, Objectives
from servingplan.simulation.tokens import StepCost
from servingplan.simulation.tokens_played import TokenEngine, token_standing
from support.engine_steps import limits

COST = StepCost(base_s=0.02, prefill_token_s=0.0002, sequence_s=0.0002, context_token_s=0)
SLICES = 16


def keeping(**limits_s: float) -> Objectives:
    stated = {name: Objective(percentile="p95", limit=timedelta(seconds=s)) for name, s in limits_s.items()}
    return Objectives(**stated, goodput_share=Decimal("0.95"))


def standing(*, rate: float = 1.0, ready=2, judged=slice(None), prompt: float = 300, **changes):
    """Eight minutes. rate: requests/s."""
    counted = np.zeros(SLICES, bool)
    counted[judged] = True
    fields = {
        "requests": np.full(SLICES, rate * 30),
        "judged": counted,
        "ready": np.broadcast_to(np.asarray(ready, np.float32), SLICES),
        "engine": TokenEngine(limits=limits(), cost=COST, longest=4096),
        "prompt": Lengths(median=prompt, sigma=0.5),
        "output": Lengths(median=60, sigma=0.5),
        "objectives": keeping(ttft=1.0),
        "seed": 1,
    }
    return token_standing(**fields | changes)


def test_every_request_of_the_slices_that_count_is_judged():
    assert standing().requests == SLICES * 30
    assert standing(judged=slice(5, 15)).requests == 10 * 30
    assert standing(judged=slice(6, 16)).requests == 10 * 30
    assert standing(judged=slice(0, 0)) is None


def test_parts_of_requests_add_up():
    assert standing(rate=0.01).requests == round(SLICES * 0.3)


def test_fewer_replicas_attain_less():
    enough, scarce = standing(rate=12.0, ready=4), standing(rate=12.0, ready=1)

    assert enough.attainment > 0.99
    assert scarce.attainment < 0.5
    assert scarce.ttft_s > 1 > enough.ttft_s
    assert scarce.e2el_s > scarce.ttft_s


def test_a_rise_that_comes_late_is_missed():
    late = np.where(np.arange(SLICES) < 12, 1, 4)

    assert standing(rate=12.0, ready=late, judged=slice(0, 12)).attainment < 0.5
    assert standing(rate=1.0, ready=late).attainment > 0.99


def test_a_small_cache_preempts():
    engine = TokenEngine(limits=limits(blocks=261), cost=COST, longest=4096)

    assert standing(ready=1, rate=3).preempted == 0
    assert standing(ready=1, rate=3, engine=engine).preempted > 0


def test_what_a_replica_serves_is_said_too():
    easy, hard, never = (standing(objectives=keeping(tpot=limit)).capacity for limit in (0.06, 0.03, 0.01))

    assert easy > 1.2 * hard
    assert never is None


def test_a_time_without_any_replica_is_refused():
    with pytest.raises(ValueError, match="0 replicas"):
        standing(ready=np.where(np.arange(SLICES) < 12, 1, 0))
