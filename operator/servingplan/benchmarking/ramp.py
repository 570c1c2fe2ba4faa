"""A whole ramp: asks the server what it is, then measures run after run until the search has its finding.

In: what is asked, a server, a file. Out: the kept state, written after each run. Who cancels it loses the run that goes
on and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from servingplan.benchmarking import record
from servingplan.benchmarking.level import Level
from servingplan.benchmarking.machine import machine, route
from servingplan.benchmarking.measuring import PROBE_TOKENS, Bench
from servingplan.benchmarking.prompts import Prompt, Prompts, mark, probe_prompts
from servingplan.benchmarking.record import Asked, Fingerprint, Kept, Unloaded
from servingplan.benchmarking.run import Run
from servingplan.benchmarking.search import Finding, Measure, levels
from servingplan.clients.openai_server import OpenAIServer, Timed
from servingplan.errors import ClusterError, UsageError

MOST_TOKENIZED = 5000
"""Prompts whose tokens the server is asked for; a longer file goes without."""

AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is told while a ramp goes on."""

    before_run: Callable[[Measure, int], None]
    after_run: Callable[[Run, Level], None]


async def look(
    server: OpenAIServer,
    *,
    model: str | None,
    chat: bool,
    prompts: Prompts,
    stated: Mapping[str, int | None] = MappingProxyType({}),
) -> Fingerprint:
    """What the server is. stated: engine arguments that the user knows.

    Raises ClusterError, and UsageError for the model.
    """
    names = await server.models()
    if model is not None and model not in names:
        raise UsageError(f"{server.url} serves {', '.join(names) or 'no model'}, not {model}: choose one with --model")
    if model is None and len(names) != 1:
        raise UsageError(f"{server.url} serves {len(names)} models ({', '.join(names)}): choose one with --model")
    config = await server.arguments()
    scheduler = _part(config, "scheduler_config")
    try:
        cache = dict((await server.load()).cache)
    except ClusterError:
        cache = {}
    here = await machine(server.url)
    return Fingerprint(
        url=server.url,
        model=model or names[0],
        vllm=await server.version(),
        chat=chat,
        dataset=prompts.digest,
        max_num_seqs=stated.get("max_num_seqs") or scheduler.get("max_num_seqs"),
        max_num_batched_tokens=stated.get("max_num_batched_tokens") or scheduler.get("max_num_batched_tokens"),
        cache=cache,
        scheduler=scheduler,
        parallel=_part(config, "parallel_config"),
        route=route(server.url),
        accelerator=here.accelerator,
        driver=here.driver,
    )


def _part(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The plain values of a part of the engine's configuration."""
    part = config.get(name)
    found = part if isinstance(part, Mapping) else {}
    return {key: value for key, value in sorted(found.items()) if isinstance(value, int | float | str)}


async def counted(server: OpenAIServer, model: str, prompts: Prompts) -> Prompts:
    """The prompts with their tokens, as the server counts them; unchanged where it does not, or there are too many."""
    if len(prompts.entries) > MOST_TOKENIZED or await server.tokens(model, prompts.entries[0].text) is None:
        return prompts
    slots = asyncio.Semaphore(AT_ONCE)

    async def count(entry: Prompt) -> Prompt:
        async with slots:
            return replace(entry, input_tokens=await server.tokens(model, entry.text))

    entries = tuple(await asyncio.gather(*(count(entry) for entry in prompts.entries)))
    first = prompts.entries[0].text
    plain, marked = await server.tokens(model, first), await server.tokens(model, mark(0) + first)
    added = None if plain is None or marked is None else marked - plain
    return replace(prompts, entries=entries, mark_tokens=added)


async def unloaded(bench: Bench, prompts: Prompts) -> Unloaded:
    """One request at a time. The first probe warms the server up and is not counted."""
    await bench.probe()
    answers = await bench.probe()
    ttft = [answer.ttft_s for answer in answers]
    tokens: list[int] = [answer.prompt_tokens for answer in answers if answer.prompt_tokens is not None]
    return Unloaded(
        ttft_p95_s=float(np.quantile(ttft, 0.95)),
        latency_s=_whole_answer(answers, prompts),
        prefill_tokens_per_s=sum(tokens) / sum(ttft) if len(tokens) == len(ttft) > 0 else None,
    )


def _whole_answer(answers: tuple[Timed, ...], prompts: Prompts) -> float:
    """Mean seconds of a whole answer, from the shorter ones of the probe."""
    short = [min(prompt.output_tokens, PROBE_TOKENS) for prompt in probe_prompts(prompts, len(answers))]
    decode = sum(answer.latency_s - answer.ttft_s for answer in answers)
    token = decode / max(1, sum(count - 1 for count in short))
    return sum(answer.ttft_s for answer in answers) / len(answers) + token * prompts.mean_output


def same_ramp(kept: Kept, asked: Asked, fingerprint: Fingerprint) -> str | None:
    """What differs from the ramp in the file, in words; None where it can go on."""
    before, now = replace(kept.asked, longest_s=0, start=0), replace(asked, longest_s=0, start=0)
    for what, old, new in (("what is asked", before, now), ("the server", kept.fingerprint, fingerprint)):
        differing = [name for name in type(old).__slots__ if getattr(old, name) != getattr(new, name)]
        if differing:
            return f"{what} is another one now: {', '.join(differing)}"
    return None


async def climb(
    kept: Kept, measure: Callable[[Measure, int, float], Awaitable[Run]], path: Path, progress: Progress
) -> Kept:
    """Measure until there is a finding. measure: (what, number of the run, expected mean latency) to a run."""
    record.write(kept, path)
    while not isinstance(step := kept.step, Finding):
        number = len(kept.runs)
        progress.before_run(step, number)
        run = await measure(step, number, _latency(kept, step))
        kept = kept.with_run(run)
        record.write(kept, path)
        level = next(level for level in levels(kept.ramp, kept.runs) if level.rate == step.rate)
        progress.after_run(run, level)
    return kept


def _latency(kept: Kept, step: Measure) -> float:
    """The mean latency to expect: that of the nearest rate measured, or that of a server without load."""
    seen = [run for run in kept.runs if run.seen is not None and run.seen.e2el is not None]
    nearest = min(seen, key=lambda run: abs(np.log(run.rate / step.rate)), default=None)
    if nearest is None or nearest.seen is None or nearest.seen.e2el is None:
        return kept.unloaded.latency_s
    return nearest.seen.e2el.mean
