"""Runs of a scheduler counted in steps: who arrives before which step, and what a step then looks like.

The same cases go through vLLM's own scheduler (e2e/vllm/drive_scheduler.py, recorded in tests/data/scheduler) and
through the model.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from servingplan.simulation.tokens import EngineLimits, TokenRequest
from servingplan.simulation.tokens_blocks import InFlight
from servingplan.simulation.tokens_scheduler import Batch, Scheduler

RECORDED = Path(__file__).parents[1] / "data" / "scheduler"

MAX_MODEL_LEN = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Requests by the step before which they arrive, which is their `arrival_s`."""

    limits: EngineLimits
    requests: Sequence[TokenRequest]

    def document(self) -> dict[str, Any]:
        """As the driver of vLLM's scheduler reads it, and as it is recorded."""
        rows = [
            [int(each.arrival_s), each.prompt_tokens, each.output_tokens, each.prefix or 0, each.prefix_tokens]
            for each in self.requests
        ]
        return {"limits": dataclasses.asdict(self.limits), "max_model_len": MAX_MODEL_LEN, "requests": rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What came of it. rows: running, waiting, preempted, blocks in use and tokens of each step.

    first, last, preempted: by request, the steps that brought its first and its last token; how often it had to leave.
    """

    rows: Sequence[Sequence[int]]
    first: Sequence[int]
    last: Sequence[int]
    preempted: Sequence[int]

    def document(self) -> dict[str, Any]:
        """As it is recorded: of each column of the rows how it changes from step to step, which is mostly nothing."""
        rows = np.diff(np.array(self.rows), axis=0, prepend=0).T.tolist()
        return dataclasses.asdict(self) | {"rows": rows}


Watch: TypeAlias = Callable[[Scheduler, Batch], None]


def modelled(case: Case, watch: Watch | None = None) -> Steps:
    """The case on the model. watch: is shown each step when it has ended."""
    scheduler = Scheduler(case.limits)
    due, under_way = deque(case.requests), deque[tuple[int, Batch]]()
    depth = 2 if case.limits.async_scheduling else 1
    rows: list[list[int]] = []
    arrived: list[InFlight] = []
    first, last = [-1] * len(due), [-1] * len(due)
    while due or scheduler.running or scheduler.waiting:
        while due and due[0].arrival_s <= len(rows):
            arrived.append(scheduler.add(due.popleft()))
        batch = scheduler.schedule()
        under_way.append((len(rows), batch))
        counts = (len(scheduler.running), len(scheduler.waiting), len(batch.preempted))
        rows.append([*counts, scheduler.blocks_in_use, batch.tokens])
        if len(under_way) == depth:
            step, ended = under_way.popleft()
            scheduler.complete(ended)
            if watch is not None:
                watch(scheduler, ended)
            for request in (request for request, _, brings in ended.work if brings):
                last[request.number] = step
                if first[request.number] < 0:
                    first[request.number] = step
    return Steps(rows=rows, first=first, last=last, preempted=[each.preempted for each in arrived])


def drawn(
    limits: EngineLimits, *, requests: int, every_steps: float, prompt: float, output: float, seed: int,
    spread: float = 0.8, prefixes: int = 0,
) -> Case:  # fmt: skip
    """Requests at random: one in `every_steps` steps, in bursts; lognormal lengths with these medians.

    spread: sigma of their logarithm. prefixes: half of the prompts begin like others, with one of so many beginnings.
    """
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.gamma(0.5, every_steps / 0.5, requests)).astype(int)
    longest = min(MAX_MODEL_LEN - 1, limits.usable_blocks * limits.block_size)
    prompts = np.clip(prompt * np.exp(spread * rng.standard_normal(requests)), 1, longest * 3 // 4).astype(int)
    outputs = np.clip(output * np.exp(spread * rng.standard_normal(requests)), 1, longest // 4).astype(int)
    shared = rng.integers(1, prefixes + 1, requests) * (rng.random(requests) < 0.5) if prefixes else np.zeros(requests)
    return Case(
        limits=limits,
        requests=[
            TokenRequest(
                arrival_s=float(at),
                prompt_tokens=int(tokens),
                output_tokens=int(answer),
                prefix=int(prefix) or None,
                prefix_tokens=int(tokens) * 2 // 3 if prefix else 0,
            )
            for at, tokens, answer, prefix in zip(arrivals, prompts, outputs, shared, strict=True)
        ],
    )


def limits(**changes: Any) -> EngineLimits:
    """A small engine."""
    fields: dict[str, Any] = {
        "max_num_seqs": 64,
        "max_num_batched_tokens": 2048,
        "blocks": 4097,
        "block_size": 16,
    }
    return EngineLimits(**fields | changes)


def cases(requests: int) -> Mapping[str, Case]:
    """What bounds an engine, one by one, with so many requests each."""
    small = {"requests": requests, "seed": 1}
    budget = limits(max_num_batched_tokens=512, max_num_seqs=256, blocks=20001)
    sequences = limits(max_num_seqs=16, blocks=20001)
    memory = limits(blocks=401, max_num_seqs=128)
    long = limits(max_num_batched_tokens=512, blocks=1201)
    found = {
        "budget": drawn(budget, **small, every_steps=1.1, prompt=400, output=40),
        "sequences": drawn(sequences, **small, every_steps=8, prompt=200, output=80),
        "memory": drawn(memory, **small, every_steps=5, prompt=200, output=120),
        "long-prompts": drawn(long, **small, every_steps=14, prompt=900, output=150, spread=1.2),
        "long-prompts-bounded": drawn(
            dataclasses.replace(long, long_prefill_token_threshold=128, max_num_batched_tokens=192),
            **small, every_steps=14, prompt=900, output=80, spread=1.2,
        ),
        "watermark": drawn(
            dataclasses.replace(memory, watermark=0.05), **small, every_steps=5, prompt=200, output=120
        ),
    }  # fmt: skip
    ahead = {
        f"{name}-ahead": dataclasses.replace(
            found[name], limits=dataclasses.replace(found[name].limits, async_scheduling=True)
        )
        for name in ("budget", "sequences", "memory", "long-prompts-bounded")
    }
    cached = {
        f"{name}-cached": drawn(
            dataclasses.replace(bounds, prefix_caching=True),
            **small, every_steps=5, prompt=200, output=120, prefixes=8,
        )
        for name, bounds in {
            "memory": memory, "memory-ahead": dataclasses.replace(memory, async_scheduling=True)
        }.items()
    }  # fmt: skip
    return found | ahead | cached


def record(path: Path, case: Case, steps: Steps, by: str) -> None:
    """Keep what a scheduler did. by: which one."""
    document = {"by": by, **case.document(), **steps.document()}
    path.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))


def recorded(path: Path) -> tuple[Case, Steps]:
    """A recording."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    asked = [
        TokenRequest(
            arrival_s=at, prompt_tokens=prompt, output_tokens=output, prefix=prefix or None, prefix_tokens=shared
        )
        for at, prompt, output, prefix, shared in document["requests"]
    ]
    rows = np.cumsum(np.array(document["rows"]), axis=1).T.tolist()
    return (
        Case(limits=EngineLimits(**document["limits"]), requests=asked),
        Steps(rows=rows, **{name: document[name] for name in ("first", "last", "preempted")}),
    )
