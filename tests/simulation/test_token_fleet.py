"""Replicas token by token on virtual time: one engine's instants, then several that start, serve and drain."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.planning.plan import Objective, Objectives
from servingplan.simulation.token_fleet import Wanted, followed
from servingplan.simulation.tokens import StepCost, TokenRequest
from servingplan.simulation.tokens_replica import Replica, answered
from support.engine_steps import limits

ROUND = StepCost(base_s=1.0, prefill_token_s=0.0, sequence_s=0.0, context_token_s=0.0)
"""Every step takes a second: instants can be counted."""

COST = StepCost(base_s=0.008, prefill_token_s=0.00005, sequence_s=0.0001, context_token_s=1e-7)


def ask(at: float, prompt: int = 10, output: int = 3) -> TokenRequest:
    return TokenRequest(arrival_s=at, prompt_tokens=prompt, output_tokens=output)


def instants(requests, engine, cost=ROUND):
    """(first, last) by request, in order of arrival."""
    answers = sorted(answered(requests, engine, cost), key=lambda each: requests.index(each.asked))
    return [(each.first_s, each.last_s) for each in answers]


def test_a_request_alone_gets_a_token_a_step():
    assert instants([ask(5.0)], limits()) == [(6.0, 8.0)]


def test_who_arrives_within_a_step_waits_for_its_end():
    assert instants([ask(0.0, output=9), ask(2.5)], limits()) == [(1.0, 9.0), (4.0, 6.0)]


def test_with_async_scheduling_who_arrives_within_a_step_waits_for_the_next_one_too():
    engine = limits(async_scheduling=True)

    assert instants([ask(0.0, output=9), ask(2.5)], engine) == [(1.0, 9.0), (5.0, 7.0)]
    assert instants([ask(0.0), ask(7.5)], engine) == [(1.0, 3.0), (8.5, 10.5)]


def test_a_prompt_takes_as_many_steps_as_the_budget_says():
    assert instants([ask(0.0, prompt=130, output=1)], limits(max_num_batched_tokens=64)) == [(3.0, 3.0)]


def test_a_step_costs_what_it_computes_and_reads():
    cost = StepCost(base_s=1.0, prefill_token_s=0.1, sequence_s=0.01, context_token_s=0.001)
    first, last = 1.0 + 10 * 0.1, 1.0 + 0.01 + 10 * 0.001

    assert instants([ask(0.0, output=2)], limits(), cost) == [pytest.approx((first, first + last))]


def test_a_request_is_good_where_every_limit_is_kept():
    def kept(**limits_s: float) -> bool:
        stated = {name: Objective(percentile="p95", limit=timedelta(seconds=s)) for name, s in limits_s.items()}
        return answered([ask(0.0, output=5)], limits(), ROUND)[0].good(Objectives(**stated))

    assert kept(ttft=1, tpot=1, e2el=5)
    assert not kept(ttft=0.9)
    assert not kept(tpot=0.9)
    assert not kept(e2el=4.9)


def test_a_replica_that_is_wanted_serves_after_its_start():
    run = followed(
        [ask(float(at), output=100) for at in range(20)], wanted((0, 1), (5, 2)), limits(), ROUND, start_s=10
    )

    assert run.starting_s == 10
    # Up to its start all go to the first one; then to the second, until it has as many.
    assert run.serving_s == pytest.approx(119 + (119 - 15))
    assert run.draining_s == 0


def wanted(*changes: tuple[float, int]) -> list[Wanted]:
    return [Wanted(at_s=at, replicas=replicas) for at, replicas in changes]


def test_who_leaves_takes_no_more_requests_and_ends_those_that_it_has():
    requests = [ask(0.0, output=50), ask(0.5, output=20), *(ask(10.0 + at) for at in range(5))]
    run = followed(requests, wanted((0, 2), (2, 1)), limits(), ROUND, start_s=60)

    assert len(run.answers) == len(requests)
    # The second has as many in flight as the first, and is newer; it began its request at 0.5.
    assert run.draining_s == pytest.approx(20.5 - 2)
    assert run.serving_s == pytest.approx(2 * 2 + 48)


def test_what_starts_is_cancelled_before_what_serves_leaves():
    run = followed([ask(0.0, output=30)], wanted((0, 1), (5, 3), (8, 2), (9, 1)), limits(), ROUND, start_s=60)

    assert run.starting_s == 2 * 3 + 1
    assert (run.serving_s, run.draining_s) == (30, 0)


def test_a_raise_brings_back_who_drains():
    requests = [ask(0.0, output=50), ask(0.5, output=50), ask(8.0, output=5)]
    run = followed(requests, wanted((0, 2), (2, 1), (5, 2)), limits(), ROUND, start_s=60)

    assert (run.starting_s, run.draining_s) == (0, 3)


def test_a_request_goes_to_the_replica_with_the_fewest_in_flight():
    engine = limits(max_num_seqs=1)
    requests = [ask(0.0, output=10), ask(0.1, output=2), ask(0.2, output=10), ask(3.0, output=1)]
    run = followed(requests, wanted((0, 2)), engine, ROUND, start_s=0)
    first = {each.asked.arrival_s: each.first_s for each in run.answers}

    # At 3.0 the first one has two, the second has none any more.
    assert first == pytest.approx({0.0: 1.0, 0.1: 1.1, 0.2: 11.0, 3.0: 4.0})


def test_no_replica_at_all_is_refused():
    with pytest.raises(ValueError, match="0 replicas at 3 s"):
        followed([ask(9.0)], wanted((0, 1), (3, 0)), limits(), ROUND, start_s=0)


@settings(max_examples=100, deadline=None)
@given(
    arrivals=st.lists(st.floats(0, 100), max_size=60).map(sorted),
    changes=st.lists(st.tuples(st.floats(0, 120), st.integers(1, 5)), max_size=8).map(sorted),
    ahead=st.booleans(),
)
def test_whatever_is_wanted_every_request_is_answered_once(arrivals, changes, ahead):
    requests = [ask(at, prompt=1 + place % 97, output=1 + place % 31) for place, at in enumerate(arrivals)]
    engine = limits(max_num_seqs=4, max_num_batched_tokens=64, blocks=20, async_scheduling=ahead)
    run = followed(requests, wanted((0, 2), *changes), engine, COST, start_s=7)

    assert sorted(each.asked.prompt_tokens for each in run.answers) == sorted(each.prompt_tokens for each in requests)
    assert all(each.asked.arrival_s < each.first_s <= each.last_s for each in run.answers)
    assert min(run.starting_s, run.serving_s, run.draining_s) >= 0


def test_one_replica_of_a_fleet_is_the_replica_alone():
    requests = [ask(0.05 * place, prompt=50 + place % 400, output=1 + place % 60) for place in range(300)]
    engine = limits(blocks=200)

    alone = answered(requests, engine, COST)
    assert followed(requests, wanted((0, 1)), engine, COST, start_s=0).answers == alone
    assert sum(each.preempted for each in alone) > 0


def test_nothing_happens_before_its_time():
    replica = Replica(limits(), ROUND)
    replica.ask(ask(0.0, output=1))

    assert replica.advance(1.0) == []
    assert replica.in_flight == 1
    assert [each.last_s for each in replica.advance(1.5)] == [1.0]
    assert (replica.in_flight, replica.idle_s) == (0, 1.0)
