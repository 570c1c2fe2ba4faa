"""Ramps and levels that were measured on the real vLLM: what follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingplan.benchmarking.changes import Bound
from servingplan.benchmarking.confirmation import Verdict
from servingplan.benchmarking.effort import EFFORTS
from servingplan.benchmarking.record import at_capacity, document, read
from servingplan.benchmarking.search import Outcome
from support.benches import SHORT

RECORDED = Path(__file__).parents[1] / "data" / "ramps"
WHOLE = [RECORDED / "tiny-0.32-first.json", RECORDED / "tiny-0.32-second.json"]


@pytest.mark.parametrize("file", WHOLE, ids=lambda file: file.stem)
def test_a_whole_ramp_ends_with_a_capacity_and_what_it_is_good_for(file: Path) -> None:
    kept = read(file)
    assert kept.finding.outcome is Outcome.FOUND
    assert kept.finding.capacity is not None
    assert kept.finding.failing is not None
    assert kept.finding.capacity < kept.finding.failing
    figures = at_capacity(kept)
    assert figures is not None
    assert figures["inputTokens"] == pytest.approx(131, abs=3)
    assert figures["outputTokens"] == pytest.approx(85, abs=2)
    assert figures["prefixHitShare"] == 0


def test_a_second_ramp_of_the_same_server_finds_an_interval_that_overlaps() -> None:
    found = [read(file).finding for file in WHOLE]
    assert max(one.capacity or 0 for one in found) <= min(one.failing or 0 for one in found)


def test_the_first_ramps_bottleneck_is_confirmed_by_a_run_with_half_of_the_slots() -> None:
    kept = read(WHOLE[0])
    assert kept.bottleneck is not None
    assert kept.bottleneck.bounds == (Bound.SEQUENCES,)
    shown = document(kept)["confirmation"]
    assert shown["verdict"] == Verdict.CONFIRMED
    assert shown["evidence"] == [
        "with 1 at once instead of 2 a token took 1.13 ms instead of 1.13, so 50% of the tokens/s"
    ]


COUNTS = {
    Bound.MEMORY: {"waiting": True, "kv": True, "slots": False},
    Bound.SEQUENCES: {"waiting": True, "kv": False, "slots": True},
    Bound.COMPUTE: {"waiting": False, "kv": False, "slots": False},
}


@pytest.mark.parametrize(("bound", "counts"), COUNTS.items(), ids=COUNTS)
def test_what_binds_is_told_apart_by_the_engines_own_counts(
    bound: Bound, counts: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EFFORTS, SHORT.name, SHORT)  # type: ignore[arg-type] # a dict, which nothing else may change
    kept = read(RECORDED / f"bound-by-{bound.value.lower()}.json")
    assert kept.bottleneck is not None
    assert kept.bottleneck.bounds[0] is bound
    assert kept.confirmation is not None
    assert kept.confirmation.verdict is Verdict.CONFIRMED
    seen = kept.runs[-1].seen
    engine = None if seen is None else seen.engine
    assert engine is not None
    assert engine.kv_p90 is not None
    told = {
        "waiting": engine.waiting > 1,
        "kv": engine.kv_p90 > 0.5,
        "slots": engine.running_high == kept.fingerprint.max_num_seqs,
    }
    assert told == counts
