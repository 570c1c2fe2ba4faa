"""What bound a server: each rule by its evidence, and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servingplan.benchmarking.bottleneck import Bottleneck, Facts, bottleneck
from servingplan.benchmarking.changes import CHANGES, Bound
from servingplan.benchmarking.effort import STANDARD
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import judge
from servingplan.benchmarking.run import Run, Seen
from support.benches import a_run, a_seen, a_void, an_engine_seen

FACTS = Facts(max_num_seqs=128, max_num_batched_tokens=2048, kv_tokens=80_000)


def levels(*runs: Run):
    return [
        judge(rate, [run for run in runs if run.rate == rate], (Criterion(name="good", target=0.95),), STANDARD, seed=1)
        for rate in sorted({run.rate for run in runs})
    ]


def found(seen: Seen, facts: Facts = FACTS) -> Bottleneck:
    passing = [a_run(5, 1.0, seed=seed) for seed in range(3)]
    failing = [a_run(7, 0.6, seed=seed, seen=seen) for seed in range(3)]
    result = bottleneck(levels(*passing, *failing), facts)
    assert result is not None
    return result


TTFT_MISSES = {"ttft": 300, "tpot": 0, "e2el": 0}
TPOT_MISSES = {"ttft": 0, "tpot": 300, "e2el": 0}

CASES = {
    "rejections": (
        a_seen(failed=200, misses=TTFT_MISSES, engine=an_engine_seen(rejections=900.0)),
        (Bound.ADMISSION,),
    ),
    "a small KV cache: it is full while few run": (
        a_seen(misses=TTFT_MISSES, engine=an_engine_seen(waiting=20.0, waiting_for_capacity=20.0, kv_p90=0.98)),
        (Bound.MEMORY,),
    ),
    "a small KV cache: requests are preempted": (
        a_seen(misses=TTFT_MISSES,
               engine=an_engine_seen(waiting=20.0, waiting_for_capacity=20.0, kv_p90=0.8, preemptions=40.0)),
        (Bound.MEMORY,),
    ),
    "all slots taken, KV free": (
        a_seen(misses=TTFT_MISSES,
               engine=an_engine_seen(waiting=20.0, waiting_for_capacity=20.0, running_p50=128.0, running_high=128.0)),
        (Bound.SEQUENCES,),
    ),
    "iterations filled with prompts": (
        a_seen(misses=TTFT_MISSES,
               engine=an_engine_seen(waiting=9.0, waiting_for_capacity=9.0,
                                     iteration_tokens=((512.0, 0.3), (2048.0, 0.7)))),
        (Bound.TOKEN_BUDGET,),
    ),
    "tokens slow down with nothing waiting": (
        a_seen(misses=TPOT_MISSES, itl_median=0.07, engine=an_engine_seen(running_p50=90.0)),
        (Bound.COMPUTE,),
    ),
    "the API server's core": (
        a_seen(misses=TTFT_MISSES, engine=an_engine_seen(api_cores=0.98, latency_s=9.0)),
        (Bound.FRONTEND,),
    ),
    "the batch and the API server together": (
        a_seen(misses=TPOT_MISSES, itl_median=0.07,
               engine=an_engine_seen(api_cores=0.98, latency_s=9.0)),
        (Bound.COMPUTE, Bound.FRONTEND),
    ),
    "nothing that a rule knows": (a_seen(misses=TTFT_MISSES), (Bound.UNKNOWN,)),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "bounds"), CASES.values(), ids=CASES)
def test_what_binds_is_told_by_counts(seen: Seen, bounds: tuple[Bound, ...]) -> None:
    result = found(seen)
    assert result.bounds == bounds
    assert result.change == CHANGES[bounds[0]]
    assert len(result.evidence) == (0 if bounds == (Bound.UNKNOWN,) else len(bounds))


def test_without_the_number_of_slots_a_full_batch_is_in_doubt() -> None:
    seen = a_seen(misses=TTFT_MISSES, engine=an_engine_seen(waiting=20.0, running_p50=128.0, running_high=128.0))
    result = found(seen, Facts())
    assert result.bounds == (Bound.UNKNOWN,)
    assert any("--max-num-seqs" in doubt for doubt in result.doubt)


def test_without_the_engines_metrics_the_doubt_says_so() -> None:
    result = found(replace(a_seen(misses=TTFT_MISSES), engine=None))
    assert result.bounds == (Bound.UNKNOWN,)
    assert any("metrics were not readable" in doubt for doubt in result.doubt)


def test_where_every_run_is_void_the_client_bound_the_measurement() -> None:
    passing = [a_run(5, 1.0, seed=seed) for seed in range(3)]
    result = bottleneck(levels(*passing, *(a_void(7, seed=seed) for seed in range(4))), FACTS)
    assert result is not None
    assert result.bounds == (Bound.CLIENT,)
    assert result.evidence == ("said so",)


def test_a_level_that_is_not_decided_yet_binds_nothing() -> None:
    passing = [a_run(5, 1.0, seed=seed) for seed in range(3)]
    assert bottleneck(levels(*passing, a_run(7, 0.94), a_void(7, seed=1)), FACTS) is None
    assert bottleneck(levels(a_void(7)), FACTS) is None


def test_where_nothing_fails_nothing_is_known_to_bind() -> None:
    assert bottleneck(levels(*(a_run(5, 1.0, seed=seed) for seed in range(3))), FACTS) is None
