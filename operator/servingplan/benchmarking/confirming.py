"""The one change that would decide what bound a server, made and measured.

In: a ramp with a bottleneck, and the same server, or another one on which the change was made. Out: the ramp with an
`Experiment`, written to its file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from servingplan.benchmarking import record
from servingplan.benchmarking.bottleneck import Facts, failing_level
from servingplan.benchmarking.changes import Bound, Change, OnEngine, Variation
from servingplan.benchmarking.confirmation import Experiment
from servingplan.benchmarking.level import Level
from servingplan.benchmarking.record import Fingerprint, Kept
from servingplan.benchmarking.run import Run, engine_mean
from servingplan.benchmarking.search import MOST_VOID, Measure
from servingplan.errors import UsageError

CHANGED = 0.95
"""Share of what the change asks for from which on it was made: a KV cache has whole blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is measured: the experiment before its runs, and the rate that is asked for."""

    experiment: Experiment
    failing: Level
    rate: float


def by_client(kept: Kept) -> Trial:
    """The change that the client alone can make. Raises UsageError with what to do where there is none."""
    bound, change, failing = _to_decide(kept)
    if change.client is None:
        raise UsageError(_needs_a_server(bound, change))
    if change.client is Variation.HALF_LENGTHS:
        if kept.asked.prefix_hit_share:
            why = "half of each prompt would have another share of them in the prefix cache"
            raise UsageError(f"{why}. {_needs_a_server(bound, change)}")
        concurrency, rate = None, 2 * failing.rate
    else:
        concurrency, rate = _half_of_what_ran(failing), failing.rate
    experiment = Experiment(bound=bound, variation=change.client, url=kept.fingerprint.url, concurrency=concurrency)
    return Trial(experiment=experiment, failing=failing, rate=rate)


def by_engine(kept: Kept, other: Fingerprint) -> Trial:
    """The change made on another server. Raises UsageError where it was visibly not made, or cannot be."""
    bound, change, failing = _to_decide(kept)
    if change.engine is None:
        raise UsageError(f"{bound} is not decided by another server: {change.words}; leave --confirm-url out")
    before = kept.fingerprint
    if before.model != other.model or before.vllm != other.vllm:
        raise UsageError(
            f"{other.url} serves {other.model} with vLLM {other.vllm}, the ramp was of {before.model} with vLLM "
            f"{before.vllm}: change one thing alone"
        )
    doubt = _made(change.engine, before, other) + _beside(change.engine, before, other)
    experiment = Experiment(bound=bound, variation=None, url=other.url, doubt=doubt)
    return Trial(experiment=experiment, failing=failing, rate=failing.rate)


async def carry_out(
    kept: Kept,
    trial: Trial,
    measure: Callable[[Measure, int, float], Awaitable[Run]],
    path: Path,
    after_run: Callable[[Run], None],
) -> Kept:
    """One valid run under the change, of a few tries; written and told after each. measure: as of a ramp."""
    step = Measure(rate=trial.rate, extended=False, level=trial.failing)
    experiment = trial.experiment
    while not experiment.valid and len(experiment.runs) <= MOST_VOID:
        run = await measure(step, len(kept.runs) + len(experiment.runs), kept.unloaded.latency_s)
        experiment = replace(experiment, runs=(*experiment.runs, run))
        kept = replace(kept, experiment=experiment)
        record.write(kept, path)
        after_run(run)
        if run.unfinished:
            break
    return kept


def _to_decide(kept: Kept) -> tuple[Bound, Change, Level]:
    found, failing = kept.bottleneck, failing_level(kept.finding.levels)
    if found is None or failing is None:
        raise UsageError("no rate failed, so nothing is known to bind the server: there is nothing to confirm")
    return found.bounds[0], found.change, failing


def _needs_a_server(bound: Bound, change: Change) -> str:
    if change.engine is None:
        return f"{bound} is not decided by one run: {change.words}"
    return f"{bound} is decided by another server: start the same one {change.engine.words}, name it with --confirm-url"


def _half_of_what_ran(failing: Level) -> int:
    half = round((engine_mean(failing.seen, lambda engine: engine.running_p50) or 0.0) / 2)
    if half < 1:
        raise UsageError("fewer than two requests ran at once, so half as many cannot be tried")
    return half


def _made(change: OnEngine, before: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """The doubt that is left whether the change was made. Raises UsageError where it was not."""
    was, now = (_value(record.facts(each), change) for each in (before, other))
    if was is None or now is None:
        return (f"{other.url} does not say whether it runs {change.words}",)
    if now < CHANGED * change.times * was:
        raise UsageError(
            f"{other.url} has {change.fact} {now:g}, the server of the ramp {was:g}: start it {change.words}"
        )
    return ()


def _value(facts: Facts, change: OnEngine) -> float | None:
    found = None if change.fact is None else getattr(facts, change.fact)
    return None if found is None else float(found)


def _beside(change: OnEngine, before: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """What else is another one."""
    pairs: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = (
        (before.scheduler, other.scheduler),
        (before.parallel, other.parallel),
    )
    differing = [
        name
        for old, new in pairs
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name] and name != change.fact
    ]
    return (f"the other server differs in {', '.join(differing)} too",) if differing else ()
