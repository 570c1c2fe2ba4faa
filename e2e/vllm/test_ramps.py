"""What binds the real engine, told apart by counts: a tiny KV cache, few slots, and a batch that slows its tokens.

Each engine gets a rate at which it is at ease, one that is far too much, and then the change that decides, made by the
client alone. How fast the machine is does not matter: limits follow from what one request alone takes.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from e2e.vllm.engines import SERVED_NAME, VARIABLES, Server, cpu_engine
from e2e.vllm.environment import Environment
from e2e.vllm.prompts import prompt_lines
from servingplan.benchmarking import record
from servingplan.benchmarking.changes import Bound
from servingplan.benchmarking.command import Target
from servingplan.benchmarking.confirmation import Verdict
from servingplan.benchmarking.confirming import by_client, carry_out
from servingplan.benchmarking.effort import EFFORTS
from servingplan.benchmarking.level import judge
from servingplan.benchmarking.measuring import Bench, Workload
from servingplan.benchmarking.prompts import halved, read_prompts
from servingplan.benchmarking.ramp import counted, look, unloaded
from servingplan.benchmarking.record import Asked, Kept
from servingplan.benchmarking.run import Engine
from servingplan.benchmarking.search import Measure
from servingplan.clients.openai_server import OpenAIServer
from servingplan.planning.plan import Objective, Objectives
from support.benches import SHORT

SHARE = Decimal("0.9")
"""Of requests that must be good."""

MOST_RUNS = 4
"""Tries for one that counts: other work on the machine voids some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An engine, what it is asked, and rates in requests/s as multiples of what one at a time would be.

    words: numbers in a prompt. slower: limit of TPOT, in times of what a token takes alone; None: the limit is of TTFT.
    """

    more: tuple[str, ...] = ()
    max_num_seqs: int
    words: int
    rates: tuple[float, ...]
    slower: float | None = None


CASES = {
    Bound.MEMORY: Case(
        more=("--block-size=32", "--num-gpu-blocks-override=24"), max_num_seqs=64, words=120, rates=(0.3, 1.6, 2.2, 3.1)
    ),
    Bound.SEQUENCES: Case(max_num_seqs=2, words=40, rates=(0.3, 2.2, 3.1)),
    Bound.COMPUTE: Case(
        more=("--max-num-batched-tokens=8192",), max_num_seqs=1024, words=120, rates=(0.3, 3.2, 4.5, 6.3), slower=3.0
    ),
}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run decides a rate."""
    monkeypatch.setitem(EFFORTS, SHORT.name, SHORT)  # type: ignore[arg-type] # a dict, which nothing else may change


@pytest.mark.parametrize("bound", CASES)
def test_what_binds_the_real_engine_is_told_by_counts_and_confirmed(
    environment: Environment, tmp_path: Path, bound: Bound
) -> None:
    case = CASES[bound]
    engine = cpu_engine(environment.model, *case.more, max_num_seqs=case.max_num_seqs)
    with Server(environment, engine, tmp_path / "vllm.log") as server:
        kept = asyncio.run(_measured(server.until_up(), environment, case, tmp_path))

    found, failing, told = kept.bottleneck, kept.runs[-1].seen, kept.confirmation
    print(json.dumps(record.document(kept)["bottleneck"], indent=1), told, sep="\n")
    assert found is not None
    assert found.bounds[0] is bound
    assert failing is not None
    assert failing.engine is not None
    _by_counts(bound, case, failing.engine)
    assert told is not None
    assert told.verdict is Verdict.CONFIRMED


def _by_counts(bound: Bound, case: Case, engine: Engine) -> None:
    """What of the engine's own counts belongs to a bound, and to no other."""
    assert (engine.waiting > 1) == (bound is not Bound.COMPUTE)
    assert (engine.running_high >= case.max_num_seqs) == (bound is Bound.SEQUENCES)
    assert engine.kv_p90 is not None
    assert (engine.kv_p90 > 0.5) == (bound is Bound.MEMORY)
    assert (engine.preemptions > 0) <= (bound is Bound.MEMORY)


async def _measured(server: Server, environment: Environment, case: Case, folder: Path) -> Kept:
    """Levels until one does not hold, and the change that decides."""
    lines = folder / "prompts.jsonl"
    lines.write_text(prompt_lines((case.words, 60 + number % 40) for number in range(200)))
    async with OpenAIServer(server.url, key=None) as asked:
        prompts = await counted(asked, SERVED_NAME, read_prompts(lines))
        target = Target(
            vllm=_program(environment, folder),
            url=server.url,
            model=SERVED_NAME,
            tokenizer=str(environment.model),
            chat=False,
        )
        workload = Workload(prompts=prompts, objectives=_ttft(), burstiness=1.0, prefix_hit_share=0.0)
        alone = await unloaded(Bench(asked, target, workload, SHORT, name="alone", alone=True), prompts)
        token = (alone.latency_s - alone.ttft_p95_s) / prompts.mean_output
        workload = replace(workload, objectives=_ttft() if case.slower is None else _tpot(case.slower * token))
        kept = Kept(
            name="ramp",
            started="2026-12-01T07:00:00+00:00",
            asked=Asked(
                objectives=workload.objectives,
                effort=SHORT.name,
                start=case.rates[0],
                longest_s=SHORT.longest_s,
                burstiness=1.0,
                prefix_hit_share=0.0,
                replicas=1,
            ),
            fingerprint=await look(
                asked, model=None, chat=False, prompts=prompts, stated={"max_num_seqs": case.max_num_seqs}
            ),
            unloaded=alone,
        )
        bench = Bench(asked, target, workload, SHORT, name="levels", alone=True)
        for rate in case.rates:
            if kept.bottleneck is None:
                kept = await _level(kept, bench, rate / alone.latency_s)
        trial = by_client(kept)
        changed = replace(workload, max_concurrency=trial.experiment.concurrency)
        if trial.experiment.concurrency is None:
            changed = replace(changed, prompts=await counted(asked, SERVED_NAME, halved(prompts)))
        bench = Bench(asked, target, changed, SHORT, name="confirm", alone=True)
        return await carry_out(kept, trial, bench.run, folder / "ramp.json", lambda run: None)


async def _level(kept: Kept, bench: Bench, rate: float) -> Kept:
    """One run at that rate that counts."""
    level = judge(rate, (), kept.ramp.criteria, SHORT, seed=0)
    for _ in range(MOST_RUNS):
        step = Measure(rate=rate, extended=False, level=level)
        kept = kept.with_run(await bench.run(step, len(kept.runs), kept.unloaded.latency_s))
        if kept.runs[-1].counts:
            return kept
    raise AssertionError(f"no run at {rate:g}/s counted: {[void.message for run in kept.runs for void in run.voids]}")


def _program(environment: Environment, folder: Path) -> str:
    """The real `vllm`, as one file."""
    file = folder / "vllm"
    named = " ".join(f"{name}={shlex.quote(value)}" for name, value in VARIABLES.items())
    interpreter = shlex.quote(str(environment.python))
    file.write_text(f'#!/bin/sh\nexec env {named} {interpreter} -m vllm.entrypoints.cli.main "$@"\n')
    file.chmod(0o755)
    return str(file)


def _ttft() -> Objectives:
    return Objectives(ttft=Objective(percentile="p90", limit=timedelta(seconds=1)), goodput_share=SHARE)


def _tpot(seconds: float) -> Objectives:
    return Objectives(tpot=Objective(percentile="p90", limit=timedelta(seconds=seconds)), goodput_share=SHARE)
