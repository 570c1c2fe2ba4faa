"""The command line of ``vllm bench serve`` for one run.

In: what is measured, where, with which prompts. Out: arguments. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from servingplan.planning.plan import Objectives


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is measured. vllm: the program. tokenizer: None where the model's name is one that can be fetched."""

    vllm: str
    url: str
    model: str
    tokenizer: str | None
    chat: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One run's load. count: requests. salt: keeps the run apart in the prefix cache.

    max_concurrency: most requests at once; None on every run that counts, since with it TTFT starts after the client's
    own queue.
    """

    rate: float
    burstiness: float
    count: int
    seed: int
    salt: str
    max_concurrency: int | None = None


def serve_command(target: Target, load: Load, objectives: Objectives, *, prompts: Path, result: Path) -> list[str]:
    """The command."""
    endpoint = "/v1/chat/completions" if target.chat else "/v1/completions"
    limits = [f"{name}:{objective.limit.total_seconds() * 1000:g}" for name, objective in objectives.stated]
    return [
        target.vllm, "bench", "serve",
        "--backend", "openai-chat" if target.chat else "openai",
        "--base-url", target.url,
        "--endpoint", endpoint,
        "--model", target.model,
        *(["--tokenizer", target.tokenizer] if target.tokenizer else []),
        "--dataset-name", "custom",
        "--dataset-path", str(prompts),
        "--custom-output-len", "-1",
        "--skip-chat-template",
        "--no-oversample",
        "--num-prompts", str(load.count),
        "--request-rate", repr(load.rate),
        *(["--max-concurrency", str(load.max_concurrency)] if load.max_concurrency else []),
        "--burstiness", repr(load.burstiness),
        "--seed", str(load.seed),
        "--ignore-eos",
        "--temperature", "0",
        "--extra-body", json.dumps({"cache_salt": load.salt}),
        "--goodput", *limits,
        "--percentile-metrics", "ttft,tpot,itl,e2el",
        "--metric-percentiles", "50,95,99",
        "--save-result", "--save-detailed", "--disable-tqdm",
        "--result-dir", str(result.parent),
        "--result-filename", result.name,
    ]  # fmt: skip
