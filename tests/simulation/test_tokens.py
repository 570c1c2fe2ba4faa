"""The token-level scheduler: what vLLM's own one did, step by step, and what must hold for any requests."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.simulation.tokens import EngineLimits, TokenRequest
from servingplan.simulation.tokens_scheduler import Scheduler
from support.engine_steps import RECORDED, Case, cases, limits, modelled, recorded

RECORDINGS = sorted(RECORDED.glob("*.json.gz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_step_is_that_of_vllms_own_scheduler(path):
    case, real = recorded(path)
    ours = modelled(case)

    assert [step for step, rows in enumerate(zip(real.rows, ours.rows, strict=True)) if rows[0] != rows[1]] == []
    assert (ours.first, ours.last, ours.preempted) == (real.first, real.last, real.preempted)


def test_the_recordings_are_the_cases_that_vllm_is_asked_about():
    assert {path.name.removesuffix(".json.gz") for path in RECORDINGS} == set(cases(1))


def test_the_recordings_meet_every_bound_that_they_name():
    real = {path.name.removesuffix(".json.gz"): recorded(path) for path in RECORDINGS}

    def most(name: str, column: int) -> int:
        return max(row[column] for row in real[name][1].rows)

    assert most("budget", 4) == real["budget"][0].limits.max_num_batched_tokens
    assert most("sequences", 0) == real["sequences"][0].limits.max_num_seqs
    for name in ("memory", "memory-ahead", "memory-cached", "memory-ahead-cached", "long-prompts"):
        assert sum(real[name][1].preempted) > 20, name
    assert sum(real["watermark"][1].preempted) < sum(real["memory"][1].preempted)


@st.composite
def some_cases(draw: st.DrawFn) -> Case:
    """Small engines in all settings, and requests that each fit."""
    size = draw(st.sampled_from([1, 4, 16]))
    bounds = EngineLimits(
        max_num_seqs=(sequences := draw(st.integers(1, 6))),
        max_num_batched_tokens=draw(st.integers(sequences, 60)),
        blocks=draw(st.integers(2, 30)),
        block_size=size,
        watermark=draw(st.sampled_from([0.0, 0.2])),
        long_prefill_token_threshold=draw(st.sampled_from([0, 1, 7])),
        prefix_caching=draw(st.booleans()),
        async_scheduling=draw(st.booleans()),
    )
    length = st.integers(1, max(1, bounds.usable_blocks * size // 2))
    asked = st.builds(
        TokenRequest,
        arrival_s=st.integers(0, 60).map(float),
        prompt_tokens=length,
        output_tokens=length,
        prefix=st.integers(1, 2),
        prefix_tokens=length,
    )
    drawn = draw(st.lists(asked.filter(bounds.holds), max_size=25))
    whole = [dataclasses.replace(each, prefix_tokens=min(each.prefix_tokens, each.prompt_tokens)) for each in drawn]
    return Case(limits=bounds, requests=sorted(whole, key=lambda each: each.arrival_s))


@settings(max_examples=150, deadline=None)
@given(case=some_cases())
def test_every_request_gets_all_of_its_tokens_and_every_block_comes_back(case):
    steps, bounds = modelled(case), case.limits

    for running, _, _, blocks, tokens in steps.rows:
        assert 0 <= running <= bounds.max_num_seqs
        assert 0 <= blocks <= bounds.usable_blocks
        assert 0 <= tokens <= bounds.max_num_batched_tokens
    for asked, first, last in zip(case.requests, steps.first, steps.last, strict=True):
        assert asked.arrival_s <= first <= last - (asked.output_tokens - 1)
    computed = sum(row[4] for row in steps.rows)
    least = sum(each.prompt_tokens + each.output_tokens - 1 for each in case.requests)
    if not bounds.prefix_caching:
        # Whoever had to leave is computed anew; ahead, its last token may have been on the way.
        assert computed == least or (computed > least and any(steps.preempted))


@settings(max_examples=100, deadline=None)
@given(case=some_cases())
def test_an_empty_engine_holds_no_block(case):
    scheduler = Scheduler(case.limits)
    for asked in case.requests:
        scheduler.add(asked)
    while scheduler.running or scheduler.waiting:
        scheduler.complete(scheduler.schedule())

    assert scheduler.blocks_in_use == 0
    assert not scheduler.pool.grow(scheduler.add(TokenRequest(arrival_s=0, prompt_tokens=1, output_tokens=1)), 10**9)


@settings(max_examples=100, deadline=None)
@given(case=some_cases())
def test_whoever_came_first_is_admitted_first(case):
    scheduler, admitted = Scheduler(case.limits), []
    for asked in case.requests:
        scheduler.add(asked)
    while scheduler.running or scheduler.waiting:
        batch = scheduler.schedule()
        admitted += [each.number for each in scheduler.running if each.number not in admitted]
        scheduler.complete(batch)

    assert admitted == sorted(admitted)


def test_a_request_that_the_cache_can_never_hold_is_refused():
    scheduler = Scheduler(limits(blocks=11, block_size=16))

    scheduler.add(TokenRequest(arrival_s=0, prompt_tokens=100, output_tokens=61))
    with pytest.raises(ValueError, match="the cache has 10 blocks"):
        scheduler.add(TokenRequest(arrival_s=0, prompt_tokens=100, output_tokens=62))
