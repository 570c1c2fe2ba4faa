"""Requests that are drawn, the capacity that the token-level model finds with them, and the fluid model told of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from servingplan.hardware.lengths import Lengths
from servingplan.planning.plan import Objective, Objectives
from servingplan.simulation.fleet import Rules, serve
from servingplan.simulation.token_fleet import Wanted, followed
from servingplan.simulation.tokens import StepCost, TokenRequest
from servingplan.simulation.tokens_capacity import attainment, capacity
from servingplan.simulation.tokens_drawn import counts_at, drawn
from servingplan.simulation.tokens_replica import answered
from servingplan.simulation.workload import SLICE_S
from support.engine_steps import limits

COST = StepCost(base_s=0.02, prefill_token_s=0.0002, sequence_s=0.0002, context_token_s=1e-7)
PROMPT, OUTPUT = Lengths(median=300, sigma=0.6), Lengths(median=60, sigma=0.5)
TTFT_S = 1.5


def objectives(**limits_s: float) -> Objectives:
    stated = {name: Objective(percentile="p95", limit=timedelta(seconds=s)) for name, s in limits_s.items()}
    return Objectives(**stated, goodput_share=Decimal("0.95"))


def some(rates, step_s: float = 1.0, *, seed: int = 3, **changes) -> list[TokenRequest]:
    counts = counts_at(np.asarray(rates, float), step_s, seed=seed)
    return drawn(counts, step_s, **{"prompt": PROMPT, "output": OUTPUT, "longest": 4096, "seed": seed} | changes)


def test_requests_come_in_order_within_their_steps_and_in_the_lengths_that_are_stated():
    requests = drawn(np.array([5, 0, 2000]), 10.0, prompt=PROMPT, output=OUTPUT, longest=4096, seed=1)
    arrivals = [each.arrival_s for each in requests]

    assert arrivals == sorted(arrivals)
    assert np.histogram(arrivals, [0, 10, 20, 30])[0].tolist() == [5, 0, 2000]
    assert np.median([each.prompt_tokens for each in requests]) == pytest.approx(300, rel=0.05)
    assert np.quantile([each.output_tokens for each in requests], 0.95) == pytest.approx(OUTPUT.quantile(0.95), rel=0.1)


def test_no_request_is_longer_than_the_longest():
    requests = some(np.full(500, 1.0), longest=200)

    assert max(each.prompt_tokens + each.output_tokens for each in requests) == 200
    assert max(each.output_tokens for each in requests) == 100
    assert min(each.prompt_tokens for each in requests) >= 1


def test_the_same_seed_draws_the_same_requests():
    assert some(np.full(50, 2.0)) == some(np.full(50, 2.0))
    assert some(np.full(50, 2.0)) != some(np.full(50, 2.0), seed=4)


def test_capacity_holds_and_a_little_more_does_not():
    requests, wanted = some(np.full(600, 1.0)), objectives(ttft=TTFT_S, tpot=0.06)
    found = capacity(requests, limits(), COST, wanted, share=0.95)

    def at(rate: float) -> float:
        speed = len(requests) / (requests[-1].arrival_s - requests[0].arrival_s) / rate
        faster = [
            TokenRequest(
                arrival_s=each.arrival_s * speed, prompt_tokens=each.prompt_tokens, output_tokens=each.output_tokens
            )
            for each in requests
        ]
        return attainment(answered(faster, limits(), COST), wanted, from_s=faster[len(faster) // 5].arrival_s)

    assert at(found) >= 0.95 > at(found * 1.01)


@pytest.mark.parametrize(
    ("engine", "wanted"),
    [
        pytest.param(limits(max_num_seqs=4), objectives(ttft=TTFT_S, tpot=0.06), id="few-sequences"),
        pytest.param(limits(blocks=101), objectives(ttft=TTFT_S, tpot=0.06), id="a-small-cache"),
        pytest.param(limits(), objectives(ttft=TTFT_S, tpot=0.04), id="a-strict-limit"),
    ],
)
def test_what_bounds_an_engine_costs_capacity(engine, wanted):
    requests = some(np.full(300, 1.0), longest=1500)
    usual = capacity(requests, limits(), COST, objectives(ttft=TTFT_S, tpot=0.06), share=0.95)

    assert capacity(requests, engine, COST, wanted, share=0.95) < 0.9 * usual


def test_replicas_serve_more_together_than_each_alone():
    requests, wanted = some(np.full(900, 1.0)), objectives(ttft=TTFT_S, tpot=0.05)

    assert capacity(requests, limits(), COST, wanted, share=0.95, replicas=3) > capacity(
        requests, limits(), COST, wanted, share=0.95
    )


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param(objectives(tpot=0.01), "do not hold either", id="nobody-keeps-it"),
        pytest.param(objectives(ttft=3600), "still hold", id="everybody-keeps-it"),
    ],
)
def test_objectives_that_no_rate_breaks_are_refused(wanted, said):
    with pytest.raises(ValueError, match=said):
        capacity(some(np.full(30, 1.0)), limits(), COST, wanted, share=0.95)


def test_the_fluid_model_agrees_to_a_point_where_replicas_are_there_in_time():
    wanted = objectives(ttft=TTFT_S, tpot=0.06)
    unit = capacity(some(np.full(1200, 1.0)), limits(), COST, wanted, share=0.95)
    demand = np.interp(np.arange(120), [0, 20, 60, 100, 120], [0.8, 0.8, 2.8, 2.8, 1.5])
    ready = np.ceil(np.maximum(demand, np.concatenate([demand[10:], demand[-10:]])))
    counts = counts_at(demand * unit, SLICE_S, seed=5)
    requests = drawn(counts, SLICE_S, prompt=PROMPT, output=OUTPUT, longest=4096, seed=5)

    changes = [Wanted(at_s=float(i * SLICE_S), replicas=int(replicas)) for i, replicas in enumerate(ready)]
    tokens = attainment(followed(requests, changes, limits(), COST, start_s=0).answers, wanted)
    queue, good = np.zeros((1, 1), np.float32), 0.0
    for arrived, there in zip(counts, ready, strict=True):
        served = serve(
            queue,
            np.array([[arrived / (SLICE_S * unit)]], np.float32),
            np.array([[there]], np.float32),
            Rules(start_s=0, wait_limit_s=TTFT_S),
        )
        queue, good = served.queue, good + float(served.good[0, 0]) * arrived

    assert tokens == pytest.approx(good / counts.sum(), abs=0.01)
