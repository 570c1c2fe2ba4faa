"""A ramp as it is kept: what was asked, of what, and every run; written after each run, so that it can go on.

In: a ramp's state. Out: one JSON file, and the state read back from it. What follows from the runs (levels, finding,
bottleneck) is in the file too, for those who read it, and worked out again by us.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from servingplan import kept_files
from servingplan.benchmarking.bottleneck import Bottleneck, Facts, bottleneck, failing_level
from servingplan.benchmarking.confirmation import Answer, Experiment, answer
from servingplan.benchmarking.effort import EFFORTS, Effort
from servingplan.benchmarking.goodput import criteria
from servingplan.benchmarking.level import Level
from servingplan.benchmarking.machine import Route
from servingplan.benchmarking.run import Run
from servingplan.benchmarking.search import Finding, Measure, Outcome, Ramp, best, levels, next_step
from servingplan.clients.engine_load import kv_tokens
from servingplan.planning.plan import Objectives

FORMAT = "servingplan.dev/bench/v1"
"""First in the file: what it is."""

_FORM = kept_files.Form(noun="ramp", format=FORMAT, command="servingplan bench run", verb="measure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a ramp is to find out. start: the first rate in requests/s. replicas: of the pool that is measured.

    burstiness: as vLLM takes it. prefix_hit_share: of the workload, 0 to 1. longest_s: all runs together.
    """

    objectives: Objectives
    effort: str
    start: float
    longest_s: float
    burstiness: float
    prefix_hit_share: float
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What was measured. Empty or None where the server does not say.

    cache: what the engine's metrics say of its KV cache. scheduler, parallel: its configuration, which vLLM shows in
    its development mode alone. dataset: the digest of the prompts file. route: the kind of address. accelerator,
    driver: of the machine of the server.
    """

    url: str
    model: str
    vllm: str | None
    chat: bool
    dataset: str
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    cache: dict[str, str]
    scheduler: dict[str, Any]
    parallel: dict[str, Any]
    route: Route | None = None
    accelerator: str | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """One request at a time: TTFT p95 and mean latency in seconds, prompt tokens a second until the first token.

    latency_s: expected of a whole answer of the workload.
    """

    ttft_p95_s: float
    latency_s: float
    prefill_tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The state of a ramp. name: in the salts of its requests. started: when, ISO 8601 in UTC.

    experiment: what was tried to decide what bound the server.
    """

    format: str = FORMAT
    name: str
    started: str
    asked: Asked
    fingerprint: Fingerprint
    unloaded: Unloaded
    runs: tuple[Run, ...] = ()
    experiment: Experiment | None = None

    @property
    def effort(self) -> Effort:
        """How much is measured."""
        return EFFORTS[self.asked.effort]

    @property
    def ramp(self) -> Ramp:
        """The search."""
        asked = self.asked
        return Ramp(
            criteria=criteria(asked.objectives), effort=self.effort, start=asked.start, longest_s=asked.longest_s
        )

    @property
    def step(self) -> Measure | Finding:
        """What comes next."""
        return next_step(self.ramp, self.runs)

    @property
    def finding(self) -> Finding:
        """What is known now; out of time where the ramp was not finished."""
        step = self.step
        if isinstance(step, Finding):
            return step
        found = levels(self.ramp, self.runs)
        capacity, failing = best(found)
        message = "run it again with the same file, and it goes on"
        return Finding(outcome=Outcome.OUT_OF_TIME, capacity=capacity, failing=failing, levels=found, message=message)

    @property
    def bottleneck(self) -> Bottleneck | None:
        """What bound the server."""
        return bottleneck(self.finding.levels, facts(self.fingerprint))

    @property
    def confirmation(self) -> Answer | None:
        """What the experiment says, where there was one."""
        failing = failing_level(self.finding.levels)
        if self.experiment is None or failing is None:
            return None
        return answer(self.experiment, failing, self.ramp.criteria[0], seed=self.ramp.seed)

    def with_run(self, run: Run) -> Kept:
        """The same with one run more."""
        return replace(self, runs=(*self.runs, run))

    def longer(self, longest_s: float) -> Kept:
        """The same with another limit."""
        return replace(self, asked=replace(self.asked, longest_s=longest_s))


def facts(fingerprint: Fingerprint) -> Facts:
    """What a server's fingerprint says of its limits."""
    return Facts(
        max_num_seqs=fingerprint.max_num_seqs,
        max_num_batched_tokens=fingerprint.max_num_batched_tokens,
        kv_tokens=kv_tokens(fingerprint.cache),
    )


@cache
def _adapter() -> TypeAdapter[Kept]:
    return TypeAdapter(Kept)


@cache
def _level_adapter() -> TypeAdapter[tuple[Level, ...]]:
    return TypeAdapter(tuple[Level, ...])


def document(kept: Kept) -> dict[str, Any]:
    """Everything as plain JSON: the state, and what follows from it."""
    finding = kept.finding
    found = _level_adapter().dump_python(finding.levels, mode="json")
    state = _adapter().dump_python(kept, mode="json")
    runs = state.pop("runs")  # last in the file: they are long
    return {
        **state,
        "finding": {
            "outcome": finding.outcome.value,
            "message": finding.message,
            "requestsPerSecond": _a_replica(kept, finding.capacity),
            "failingRequestsPerSecond": _a_replica(kept, finding.failing),
            "atCapacity": at_capacity(kept),
        },
        "levels": [
            {
                "rate": level["rate"],
                "verdict": level["verdict"],
                "because": level["because"],
                "bounds": level["bounds"],
                "runs": len(level["runs"]),
                "void": [{"seed": run["seed"], "voids": run["voids"]} for run in level["void"]],
            }
            for level in found
        ],
        "bottleneck": _bottleneck(kept.bottleneck),
        "confirmation": _confirmation(kept),
        "runs": runs,
    }


def _bottleneck(found: Bottleneck | None) -> dict[str, Any] | None:
    if found is None:
        return None
    change = found.change
    return {
        "bounds": [bound.value for bound in found.bounds],
        "evidence": list(found.evidence),
        "doubt": list(found.doubt),
        "change": change.words,
        "byClient": None if change.client is None else change.client.value,
        "byEngine": None if change.engine is None else change.engine.words,
    }


def _confirmation(kept: Kept) -> dict[str, Any] | None:
    found, experiment = kept.confirmation, kept.experiment
    if found is None or experiment is None:
        return None
    return {
        "bound": experiment.bound.value,
        "by": experiment.what,
        "verdict": found.verdict.value,
        "evidence": list(found.evidence),
        "doubt": list(found.doubt),
    }


def _a_replica(kept: Kept, rate: float | None) -> float | None:
    """A rate of the pool as that of one of its replicas."""
    return None if rate is None else float(f"{rate / kept.asked.replicas:.4g}")


def at_capacity(kept: Kept) -> dict[str, float | None] | None:
    """Means over the runs of the capacity: what sizing and queue limits are made of. None where nothing passed."""
    finding = kept.finding
    seen = [one for level in finding.levels if level.rate == finding.capacity for one in level.seen]
    if not seen:
        return None
    engines = [one.engine for one in seen if one.engine is not None]
    usage = [engine.kv_p90 for engine in engines if engine.kv_p90 is not None]
    hits = [engine.prefix_hit_share for engine in engines if engine.prefix_hit_share is not None]
    pool = kept.asked.replicas
    return {
        "inFlightMean": _mean([one.in_flight_mean / pool for one in seen]),
        "inFlightP99": _mean([one.in_flight_p99 / pool for one in seen]),
        "ttftP95Seconds": _mean([one.ttft.p95 for one in seen if one.ttft is not None]),
        "tpotP95Seconds": _mean([one.tpot.p95 for one in seen if one.tpot is not None]),
        "inputTokens": _mean([one.input_tokens for one in seen]),
        "outputTokens": _mean([one.output_tokens for one in seen]),
        "prefixHitShare": _mean(hits),
        "kvCacheUseP90": _mean(usage),
        "unloadedTtftP95Seconds": kept.unloaded.ttft_p95_s,
        "prefillTokensPerSecond": kept.unloaded.prefill_tokens_per_s,
    }


def _mean(values: list[float]) -> float | None:
    return float(f"{sum(values) / len(values):.4g}") if values else None


def write(kept: Kept, path: Path) -> None:
    """The file, whole or not at all."""
    kept_files.write(path, json.dumps(document(kept), indent=1) + "\n")


def read(path: Path) -> Kept:
    """The state in a file. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _FORM.unusable(str(path), f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _FORM.no_json(str(path), error) from error
    return kept_files.read(text, str(path), _FORM, _adapter())
