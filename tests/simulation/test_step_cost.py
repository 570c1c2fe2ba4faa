"""The costs of a step can be measured: the how-to's four runs, done on a replica of known costs, find them."""

from __future__ import annotations

import itertools
from statistics import mean

import numpy as np
import pytest

from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_replica import Answer, Replica

TRUE = StepCost(base_s=0.02, prefill_token_s=1.5e-4, sequence_s=1e-4, context_token_s=2e-7)
ENGINE = EngineLimits(max_num_seqs=256, max_num_batched_tokens=8192, blocks=20_000, block_size=16)
TICK_S = 0.001
AT_ONCE, ANSWER, SHORT, LONG = 64, 120, 20, 800


def bench(*, at_once: int, prompt: int, requests: int) -> list[Answer]:
    """A client that keeps so many in flight. Lengths lie within half of their mean."""
    rng = np.random.default_rng(1)
    replica, answers, sent = Replica(ENGINE, TRUE), [], 0
    for tick in itertools.count():
        answers += replica.advance(tick * TICK_S)
        while sent - len(answers) < at_once and sent < requests:
            tokens, answer = (int(each * rng.uniform(0.5, 1.5)) for each in (prompt, ANSWER))
            replica.ask(TokenRequest(arrival_s=tick * TICK_S, prompt_tokens=tokens, output_tokens=answer))
            sent += 1
        if len(answers) == requests:
            return answers
    raise AssertionError


def tpot(answers: list[Answer]) -> float:
    """On average, in the steady middle."""
    return mean(each.tpot_s for each in answers[len(answers) // 5 : -len(answers) // 5])


def test_the_runs_of_the_how_to_find_what_a_step_costs():
    base = tpot(bench(at_once=1, prompt=SHORT, requests=20))
    alone = bench(at_once=1, prompt=LONG, requests=40)
    prefill = (mean(each.ttft_s for each in alone) - base) / mean(each.asked.prompt_tokens for each in alone)
    equations, known = [], []
    for prompt in (SHORT, LONG):
        crowd = bench(at_once=AT_ONCE, prompt=prompt, requests=500)
        equations.append((AT_ONCE, AT_ONCE * (prompt + ANSWER / 2)))
        known.append(tpot(crowd) - base - AT_ONCE * prompt / ANSWER * prefill)
    sequence, context = np.linalg.solve(equations, known)

    assert base == pytest.approx(TRUE.base_s, rel=0.02)
    assert prefill == pytest.approx(TRUE.prefill_token_s, rel=0.02)
    assert sequence == pytest.approx(TRUE.sequence_s, rel=0.15)
    assert context == pytest.approx(TRUE.context_token_s, rel=0.25)
