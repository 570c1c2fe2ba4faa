"""What bound a server: the first failing level against the last passing one, by rules in their order.

In: the runs of those levels and what is known of the engine. Out: what bound it, with the evidence, the doubt that is
left and the controlled change that would decide. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from servingplan.benchmarking.changes import CHANGES, Bound, Change
from servingplan.benchmarking.level import Level, Verdict
from servingplan.benchmarking.run import Engine, Run, Seen, engine_mean
from servingplan.benchmarking.search import MOST_VOID

HALF = 0.5
"""A cause of at least half of the misses is what bound the server."""

FULL_BATCH, SLOTS = 0.95, 0.98
"""Shares of max_num_seqs: below the first the batch had room, from the second on its slots were taken."""

LITTLE_KV = 0.05
"""Share of the KV cache that is always free: the next prompt needs it at once."""

PREEMPTED = 0.01
"""Preemptions a finished request from which on the KV cache was too small."""

SLOWER_TOKENS = 1.5
"""Times the gap between tokens of the slowest level from which on the batch itself is what slows them."""

FEW_WAIT = 1.0
"""Requests that may wait on average where the queue is said to be empty."""

FRONTEND_CORES, FRONTEND_SHARE = 0.9, 0.10
"""Cores of the API server, and the share of the latency outside of the engine, from which on it is the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the engine; None where it is not. kv_tokens: tokens that its KV cache holds.

    watermark: share of the KV cache that it keeps free when it admits a request.
    """

    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    kv_tokens: float | None = None
    watermark: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """bounds: in the order of the rules; more than one where their rules hold together. change: what would decide."""

    bounds: tuple[Bound, ...]
    evidence: tuple[str, ...]
    doubt: tuple[str, ...]
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """failing: of the first level that does not pass; lowest: of the lowest level."""

    failing: Sequence[Seen]
    void: Sequence[Run]
    lowest: Sequence[Seen]
    facts: Facts

    @property
    def misses(self) -> int:
        """Requests that met not all limits, at most: a request may miss several."""
        return max(1, sum(seen.failed + max(seen.misses.values(), default=0) for seen in self.failing))

    @property
    def engines(self) -> tuple[Engine, ...]:
        return tuple(seen.engine for seen in self.failing if seen.engine is not None)

    def mean(self, value: Callable[[Engine], float | None]) -> float | None:
        return engine_mean(self.failing, value)

    def full(self) -> bool | None:
        """Whether the slots of the batch were taken."""
        running = self.mean(lambda engine: engine.running_high)
        if running is None or self.facts.max_num_seqs is None:
            return None
        return running >= SLOTS * self.facts.max_num_seqs

    def kv_limit(self) -> float:
        """Use of the KV cache from which on the next request does not fit."""
        longest = max((seen.input_tokens_p95 for seen in self.failing), default=0.0)
        prompt = longest / self.facts.kv_tokens if self.facts.kv_tokens else 0.0
        return 1 - self.facts.watermark - max(LITTLE_KV, prompt)


def bottleneck(levels: Sequence[Level], facts: Facts) -> Bottleneck | None:
    """What bound the server. levels: by rate ascending. None where no level failed and none was given up as void."""
    failing = failing_level(levels)
    if failing is None:
        return None
    if not _did_not_hold(failing):
        return _of_void(failing)
    case = _Case(
        failing=failing.seen,
        void=failing.void,
        lowest=levels[0].seen,
        facts=facts,
    )
    found = [(bound, evidence) for bound, rule in RULES if (evidence := rule(case)) is not None]
    bounds = tuple(bound for bound, _ in found) or (Bound.UNKNOWN,)
    # A cause further down the list is often the effect of one above: those above come first, at most two are named.
    bounds = bounds[:2]
    return Bottleneck(
        bounds=bounds,
        evidence=tuple(evidence for bound, evidence in found if bound in bounds),
        doubt=_doubt(case, failing),
        change=CHANGES[bounds[0]],
    )


def failing_level(levels: Sequence[Level]) -> Level | None:
    """The lowest rate that did not hold or was given up as void: what bound the server is read there."""
    return next((level for level in levels if _did_not_hold(level) or _given_up(level)), None)


def _did_not_hold(level: Level) -> bool:
    return level.verdict in {Verdict.FAIL, Verdict.UNDECIDED}


def _given_up(level: Level) -> bool:
    return level.verdict is Verdict.OPEN and len(level.void) > MOST_VOID


def _of_void(failing: Level) -> Bottleneck:
    reasons = tuple(dict.fromkeys(void.message for run in failing.void for void in run.voids))
    return Bottleneck(
        bounds=(Bound.CLIENT,),
        evidence=reasons,
        doubt=("too few runs at this rate were valid, so the server itself was not seen at its limit",),
        change=CHANGES[Bound.CLIENT],
    )


def _admission(case: _Case) -> str | None:
    rejected = sum(engine.rejections for engine in case.engines)
    if rejected < HALF * case.misses:
        return None
    return f"{rejected:.0f} requests were rejected, of {case.misses} that missed: the engine's own queue limit"


def _memory(case: _Case) -> str | None:
    waiting = case.mean(lambda engine: engine.waiting_for_capacity)
    if waiting is None:
        waiting = case.mean(lambda engine: engine.waiting)
    running = case.mean(lambda engine: engine.running_p50)
    if not waiting or running is None:
        return None
    if case.facts.max_num_seqs is not None and running >= FULL_BATCH * case.facts.max_num_seqs:
        return None
    usage = case.mean(lambda engine: engine.kv_p90)
    finished = sum(engine.finished for engine in case.engines)
    preempted = sum(engine.preemptions for engine in case.engines)
    often = finished > 0 and preempted / finished >= PREEMPTED
    if not often and (usage is None or usage < case.kv_limit()):
        return None
    used = "" if usage is None else f", {usage:.0%} of the KV cache in use"
    return f"{waiting:.1f} waited while {running:.0f} ran{used}, {preempted:.0f} preemptions of {finished:.0f} requests"


def _sequences(case: _Case) -> str | None:
    usage, waiting = case.mean(lambda engine: engine.kv_p90), case.mean(lambda engine: engine.waiting)
    if not case.full() or not waiting or (usage is not None and usage >= case.kv_limit()):
        return None
    return (
        f"all {case.facts.max_num_seqs} slots of the batch were taken and {waiting:.1f} waited, with room for more KV"
    )


def _token_budget(case: _Case) -> str | None:
    usage, waiting = case.mean(lambda engine: engine.kv_p90), case.mean(lambda engine: engine.waiting)
    budget = case.facts.max_num_batched_tokens
    if budget is None or not waiting or case.full() or (usage is not None and usage >= case.kv_limit()):
        return None
    full = case.mean(lambda engine: _in_budget(engine, budget))
    if full is None or full < HALF:
        return None
    return f"{full:.0%} of the iterations were filled to {budget} tokens while {waiting:.1f} waited"


def _in_budget(engine: Engine, budget: int) -> float | None:
    """The share of iterations in the bucket that the token budget falls into."""
    return next((share for edge, share in engine.iteration_tokens if edge >= budget), None)


def _compute(case: _Case) -> str | None:
    slow = sum(seen.misses.get("tpot", 0) for seen in case.failing)
    waiting = case.mean(lambda engine: engine.waiting)
    gap, at_ease = _itl(case.failing), _itl(case.lowest)
    if slow < HALF * case.misses or gap is None or at_ease is None or gap <= SLOWER_TOKENS * at_ease:
        return None
    if waiting is not None and waiting > FEW_WAIT:
        return None
    return (
        f"{slow} of {case.misses} misses are of TPOT, with nothing waiting: a token took {gap * 1000:.3g} ms "
        f"instead of {at_ease * 1000:.3g}"
    )


def _itl(seen: Sequence[Seen]) -> float | None:
    found = [one.itl_median for one in seen if one.itl_median is not None]
    return float(np.median(found)) if found else None


def _frontend(case: _Case) -> str | None:
    cores = case.mean(lambda engine: engine.api_cores)
    outside = case.mean(_outside)
    if cores is None or outside is None or cores < FRONTEND_CORES or outside <= FRONTEND_SHARE:
        return None
    return f"the API server used {cores:.2f} cores, and {outside:.0%} of the latency was spent outside of the engine"


def _outside(engine: Engine) -> float | None:
    if engine.latency_s is None or engine.queue_s is None or engine.inference_s is None or engine.latency_s <= 0:
        return None
    return (engine.latency_s - engine.queue_s - engine.inference_s) / engine.latency_s


RULES: Sequence[tuple[Bound, Callable[[_Case], str | None]]] = (
    (Bound.ADMISSION, _admission),
    (Bound.MEMORY, _memory),
    (Bound.SEQUENCES, _sequences),
    (Bound.TOKEN_BUDGET, _token_budget),
    (Bound.COMPUTE, _compute),
    (Bound.FRONTEND, _frontend),
)
"""In their order. The client comes before all of them: its rules are those of `validity`."""


def _doubt(case: _Case, failing: Level) -> tuple[str, ...]:
    """What could not be seen, and so what is not ruled out."""
    doubts = []
    if failing.verdict is Verdict.UNDECIDED:
        doubts.append(f"the level at {failing.rate:g}/s is too close to the objectives to be called failing")
    if not case.engines:
        doubts.append("the engine's metrics were not readable: what it did inside was not seen")
    if case.facts.max_num_seqs is None:
        doubts.append("max_num_seqs is not known, so a full batch cannot be told: state it with --max-num-seqs")
    if case.facts.max_num_batched_tokens is None:
        doubts.append("the token budget is not known: state it with --max-num-batched-tokens")
    if case.void:
        doubts.append(f"{len(case.void)} runs at this rate were void")
    return tuple(doubts)
