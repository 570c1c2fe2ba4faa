"""What the controlled change says of what bound a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servingplan.benchmarking.changes import CHANGES, Bound, Variation
from servingplan.benchmarking.confirmation import Experiment, Verdict, answer
from servingplan.benchmarking.effort import STANDARD
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import Level, judge
from servingplan.benchmarking.run import Run, Seen
from support.benches import a_run, a_seen, a_spread, a_void, an_engine_seen

GOOD = Criterion(name="good", target=0.95)


def failing(seen: Seen, *, good: float = 0.6) -> Level:
    return judge(7.0, [a_run(7.0, good, seed=seed, seen=seen) for seed in range(3)], (GOOD,), STANDARD, seed=1)


def ran(at_once: float, *, tpot_s: float = 0.02, **engine: Any) -> Seen:
    return a_seen(tpot=a_spread(tpot_s), engine=an_engine_seen(running_p50=at_once, **engine))


def tried(bound: Bound, variation: Variation | None, *runs: Run, **changes: Any) -> Experiment:
    return replace(Experiment(bound=bound, variation=variation, url="http://engine:8000", runs=runs), **changes)


HALF = Variation.HALF_CONCURRENCY
AT_ONCE = {
    "half of the slots, half of the tokens": (Bound.SEQUENCES, ran(64, tpot_s=0.02), Verdict.CONFIRMED),
    "half of the slots, nearly all of the tokens": (Bound.SEQUENCES, ran(64, tpot_s=0.0105), Verdict.REFUTED),
    "half of the slots, four fifths of the tokens": (Bound.SEQUENCES, ran(64, tpot_s=0.0125), Verdict.UNCLEAR),
    "half at once, tokens come faster": (Bound.COMPUTE, ran(64, tpot_s=0.011), Verdict.CONFIRMED),
    "half at once, tokens come no faster": (Bound.COMPUTE, ran(64, tpot_s=0.0199), Verdict.REFUTED),
    "half at once, tokens come a little faster": (Bound.COMPUTE, ran(64, tpot_s=0.018), Verdict.UNCLEAR),
    "the cap was not reached": (Bound.COMPUTE, ran(30, tpot_s=0.011), Verdict.UNCLEAR),
}


@pytest.mark.parametrize(("bound", "after", "verdict"), AT_ONCE.values(), ids=AT_ONCE)
def test_half_as_many_at_once_tells_slots_from_compute(bound: Bound, after: Seen, verdict: Verdict) -> None:
    experiment = tried(bound, HALF, a_run(7.0, 0.1, seen=after), concurrency=64)
    assert answer(experiment, failing(ran(128)), GOOD, seed=0).verdict is verdict


LENGTHS = {
    "nothing waits any more": (ran(30, waiting=0.5, preemptions=0.0), Verdict.CONFIRMED),
    "as many wait": (ran(30, waiting=19.0, preemptions=40.0), Verdict.REFUTED),
    "fewer wait": (ran(30, waiting=13.0, preemptions=10.0), Verdict.UNCLEAR),
    "the engine was not readable": (replace(ran(30), engine=None), Verdict.UNCLEAR),
}


@pytest.mark.parametrize(("after", "verdict"), LENGTHS.values(), ids=LENGTHS)
def test_half_the_lengths_at_twice_the_rate_tell_whether_the_kv_cache_binds(after: Seen, verdict: Verdict) -> None:
    before = failing(ran(30, waiting=20.0, preemptions=45.0))
    experiment = tried(Bound.MEMORY, Variation.HALF_LENGTHS, a_run(14.0, 0.9, seen=after))
    assert answer(experiment, before, GOOD, seed=0).verdict is verdict


ELSEWHERE = {
    "clearly better": (0.99, Verdict.CONFIRMED),
    "as bad": (0.6, Verdict.REFUTED),
    "too close to the objectives": (0.95, Verdict.UNCLEAR),
}


@pytest.mark.parametrize(("good", "verdict"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_another_server_decides_by_the_share_of_good_requests(good: float, verdict: Verdict) -> None:
    before = failing(a_seen(), good=0.935 if verdict is Verdict.UNCLEAR else 0.6)
    experiment = tried(Bound.TOKEN_BUDGET, None, a_run(7.0, good), url="http://other:8000", doubt=("so it says",))
    found = answer(experiment, before, GOOD, seed=0)
    assert found.verdict is verdict
    assert found.doubt == ("so it says",)
    assert "with twice --max-num-batched-tokens" in found.evidence[0]


def test_void_runs_decide_nothing_and_say_why() -> None:
    found = answer(tried(Bound.COMPUTE, HALF, a_void(7.0), concurrency=64), failing(ran(128)), GOOD, seed=0)
    assert found.verdict is Verdict.UNCLEAR
    assert "said so" in found.evidence[0]


@pytest.mark.parametrize("bound", Bound)
def test_a_change_is_made_by_one_side_at_least_or_says_what_else_to_do(bound: Bound) -> None:
    change = CHANGES[bound]
    assert change.words
    assert change.client or change.engine or bound in {Bound.CLIENT, Bound.UNKNOWN}
