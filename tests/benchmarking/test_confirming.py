"""The controlled change: what is measured for it, on which server, and when it is refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from servingplan.benchmarking import record
from servingplan.benchmarking.changes import Bound, Variation
from servingplan.benchmarking.confirmation import Verdict
from servingplan.benchmarking.confirming import by_client, by_engine, carry_out
from servingplan.benchmarking.record import Fingerprint, Kept
from servingplan.benchmarking.run import Run, Seen
from servingplan.benchmarking.search import Measure
from servingplan.errors import UsageError
from support.benches import a_ramp, a_run, a_seen, a_spread, a_void, an_engine_seen

TTFT_MISSES, TPOT_MISSES = {"ttft": 300, "tpot": 0, "e2el": 0}, {"ttft": 0, "tpot": 300, "e2el": 0}
BOUND_BY = {
    Bound.SEQUENCES: a_seen(
        misses=TTFT_MISSES, engine=an_engine_seen(waiting=20.0, running_p50=128.0, running_high=128.0)
    ),
    Bound.MEMORY: a_seen(
        misses=TTFT_MISSES, engine=an_engine_seen(waiting=20.0, waiting_for_capacity=20.0, kv_p90=0.98)
    ),
    Bound.COMPUTE: a_seen(misses=TPOT_MISSES, itl_median=0.07, engine=an_engine_seen(running_p50=90.0)),
    Bound.TOKEN_BUDGET: a_seen(
        misses=TTFT_MISSES, engine=an_engine_seen(waiting=9.0, iteration_tokens=((512.0, 0.3), (2048.0, 0.7)))
    ),
    Bound.UNKNOWN: a_seen(misses=TTFT_MISSES),
}  # fmt: skip


def found(bound: Bound) -> Kept:
    """A ramp that ended at 5/s, bound by that."""
    passing = [a_run(5.0, 0.999, seed=seed, a_block=1000) for seed in range(8)]
    failing = [a_run(5.1, 0.5, seed=seed, a_block=1000, seen=BOUND_BY[bound]) for seed in range(3)]
    kept = a_ramp(*passing, *failing)
    assert kept.bottleneck is not None
    assert kept.bottleneck.bounds == (bound,)
    return kept


def other(**changes: object) -> Fingerprint:
    return replace(a_ramp().fingerprint, url="http://other:8000", **changes)  # type: ignore[arg-type] # named fields


CLIENT = {
    Bound.SEQUENCES: (Variation.HALF_CONCURRENCY, 64, 5.1),
    Bound.COMPUTE: (Variation.HALF_CONCURRENCY, 45, 5.1),
    Bound.MEMORY: (Variation.HALF_LENGTHS, None, 10.2),
}


@pytest.mark.parametrize(("bound", "tried"), CLIENT.items(), ids=CLIENT)
def test_what_the_client_alone_can_change_is_tried_at_the_rate_that_failed(
    bound: Bound, tried: tuple[Variation, int | None, float]
) -> None:
    trial = by_client(found(bound))
    assert (trial.experiment.variation, trial.experiment.concurrency, trial.rate) == tried


def test_what_needs_another_server_says_which() -> None:
    with pytest.raises(UsageError, match="with twice --max-num-batched-tokens, name it with --confirm-url"):
        by_client(found(Bound.TOKEN_BUDGET))


def test_prompts_that_share_a_beginning_are_not_halved() -> None:
    kept = found(Bound.MEMORY)
    kept = replace(kept, asked=replace(kept.asked, prefix_hit_share=0.4))
    with pytest.raises(UsageError, match="--confirm-url"):
        by_client(kept)


def test_where_nothing_is_known_to_bind_there_is_nothing_to_change() -> None:
    with pytest.raises(UsageError, match=r"is not decided by one run"):
        by_client(found(Bound.UNKNOWN))
    with pytest.raises(UsageError, match="nothing to confirm"):
        by_client(a_ramp(*(a_run(5.0, 0.999, seed=seed) for seed in range(3))))


REFUSED = {
    "the change was not made": (Bound.SEQUENCES, other(), "max_num_seqs 128, the server of the ramp 128"),
    "too little of it": (Bound.SEQUENCES, other(max_num_seqs=192), "start it with twice --max-num-seqs"),
    "another model": (Bound.SEQUENCES, other(model="large", max_num_seqs=256), "change one thing alone"),
    "no server decides": (Bound.COMPUTE, other(), "leave --confirm-url out"),
}


@pytest.mark.parametrize(("bound", "server", "says"), REFUSED.values(), ids=REFUSED)
def test_another_server_is_refused_where_it_is_not_the_change(bound: Bound, server: Fingerprint, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        by_engine(found(bound), server)


ACCEPTED = {
    "as asked": (Bound.SEQUENCES, other(max_num_seqs=256), ()),
    "twice the KV cache, in whole blocks": (
        Bound.MEMORY, other(cache={"kv_cache_size_tokens": "159984"}), ()
    ),
    "it does not say": (Bound.SEQUENCES, other(max_num_seqs=None), ("does not say whether",)),
    "more than one thing": (
        Bound.SEQUENCES,
        other(max_num_seqs=256, scheduler={"policy": "priority", "max_num_seqs": 256}),
        ("differs in policy too",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("bound", "server", "doubts"), ACCEPTED.values(), ids=ACCEPTED)
def test_another_server_is_tried_with_the_doubt_that_is_left(
    bound: Bound, server: Fingerprint, doubts: tuple[str, ...]
) -> None:
    kept = found(bound)
    kept = replace(kept, fingerprint=replace(kept.fingerprint, scheduler={"policy": "fcfs", "max_num_seqs": 128}))
    trial = by_engine(kept, server)
    assert len(trial.experiment.doubt) == len(doubts)
    assert all(wanted in doubt for wanted, doubt in zip(doubts, trial.experiment.doubt, strict=True))
    assert trial.experiment.url == "http://other:8000"


def half_as_fast() -> Seen:
    """64 at once, and a token takes as long as with 128."""
    return a_seen(tpot=a_spread(0.02), engine=an_engine_seen(running_p50=64.0))


@pytest.mark.parametrize(
    ("runs", "kept_runs", "verdict"),
    [
        pytest.param([a_run(5.1, 0.1, seen=half_as_fast())], 1, Verdict.CONFIRMED, id="the first run counts"),
        pytest.param([a_void(5.1), a_run(5.1, 0.1, seen=half_as_fast())], 2, Verdict.CONFIRMED, id="one is void"),
        pytest.param([a_void(5.1)] * 9, 4, Verdict.UNCLEAR, id="all are void"),
        pytest.param(
            [replace(a_run(5.1, 0.1), seen=None, unfinished=True)] * 9, 1, Verdict.UNCLEAR, id="it does not end"
        ),
    ],
)
def test_an_experiment_takes_one_run_that_counts_and_is_in_the_file(
    tmp_path: Path, runs: list[Run], kept_runs: int, verdict: Verdict
) -> None:
    kept, file = found(Bound.SEQUENCES), tmp_path / "ramp.json"
    coming = iter(runs)
    asked: list[Measure] = []
    told: list[Run] = []

    async def measure(step: Measure, number: int, latency_s: float) -> Run:
        assert number >= len(kept.runs)
        asked.append(step)
        return next(coming)

    done = asyncio.run(carry_out(kept, by_client(kept), measure, file, told.append))
    assert len(asked) == len(told) == kept_runs
    assert {step.rate for step in asked} == {5.1}
    assert done == record.read(file)
    assert done.confirmation is not None
    assert done.confirmation.verdict is verdict
    assert done.finding == kept.finding
