"""Whether what is said to bind a server does: the runs under the controlled change against those of the failing rate.

In: a ramp's failing level and an `Experiment`. Out: an `Answer`, confirmed, refuted or unclear, with its evidence.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from servingplan.benchmarking.changes import CHANGES, Bound, Variation
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import Level, bounds_of
from servingplan.benchmarking.run import Run, Seen, engine_mean

SLOTS_MATTER, SLOTS_DO_NOT = 0.7, 0.9
"""Tokens/s with half of the requests at once, as a share of those with all: half says that slots are all that counts,
all of them that the batch was as fast as it gets."""

TPOT_FELL, TPOT_STAYED = 0.8, 0.95
"""TPOT with half of the requests at once, as a share of that with all."""

WAITING_FELL, WAITING_STAYED = 0.5, 0.8
"""Waiting requests with half of the KV cache in use, as a share of those before."""

FILLED = 0.9
"""Share of the cap on concurrency from which on the runs had so many requests at once."""


class Verdict(StrEnum):
    """What an experiment says. Documented in docs/reference/bench-json.md."""

    CONFIRMED = "Confirmed"
    REFUTED = "Refuted"
    UNCLEAR = "Unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Runs under one controlled change, at or for the rate that failed first.

    variation: what the client changed; None where `url` is another server, with the change made there.
    concurrency: most requests at once of the client, where that is the change. doubt: what else was different or
    could not be checked.
    """

    bound: Bound
    variation: Variation | None
    url: str
    concurrency: int | None = None
    runs: tuple[Run, ...] = ()
    doubt: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The change, in words."""
        if self.variation is Variation.HALF_LENGTHS:
            return "half as many tokens a request at twice the rate"
        if self.variation is Variation.HALF_CONCURRENCY:
            return f"{self.concurrency} at once at most, half of what ran"
        engine = CHANGES[self.bound].engine
        return f"at {self.url}" + (f", {engine.words}" if engine else "")

    def repeats(self, other: Experiment) -> bool:
        """Whether the other one would be this one again, of which a run counts."""
        return bool(self.valid) and replace(self, runs=()) == replace(other, runs=())

    @property
    def valid(self) -> tuple[Run, ...]:
        """Those that say something."""
        return tuple(run for run in self.runs if run.counts and run.seen is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The verdict, and by what."""

    verdict: Verdict
    evidence: tuple[str, ...]
    doubt: tuple[str, ...]


def answer(experiment: Experiment, failing: Level, criterion: Criterion, *, seed: int) -> Answer:
    """What the experiment says. failing: the level that it varies. criterion: the goodput share."""
    after = tuple(run.seen for run in experiment.valid if run.seen is not None)
    if not after:
        reasons = dict.fromkeys(void.message for run in experiment.runs for void in run.voids)
        verdict, evidence = (
            Verdict.UNCLEAR,
            "no run under the change was valid" + "".join(f": {why}" for why in reasons),
        )
    elif experiment.variation is None:
        verdict, evidence = _goodput(experiment, failing, criterion, seed)
    else:
        verdict, evidence = _JUDGES[experiment.variation](experiment, failing.seen, after)
    return Answer(verdict=verdict, evidence=(evidence,), doubt=experiment.doubt)


Found = tuple[Verdict, str]


def _goodput(experiment: Experiment, failing: Level, criterion: Criterion, seed: int) -> Found:
    """On another server: whether clearly more requests are good at the same rate."""
    after = bounds_of(experiment.valid, seed=seed)[0]
    before = failing.bounds[0] if failing.bounds else None
    engine = CHANGES[experiment.bound].engine
    evidence = (
        f"{after.share:.1%} were good at {failing.rate:g}/s {'' if engine is None else engine.words}, "
        f"{'none' if before is None else f'{before.share:.1%}'} without"
    )
    if after.lower > (criterion.target if before is None else before.upper):
        return Verdict.CONFIRMED, evidence
    return (Verdict.REFUTED if after.upper < criterion.target else Verdict.UNCLEAR), evidence


def _half_concurrency(experiment: Experiment, before: Sequence[Seen], after: Sequence[Seen]) -> Found:
    ran, runs = (engine_mean(seen, lambda engine: engine.running_p50) for seen in (before, after))
    gap, gap_now = _tpot(before), _tpot(after)
    if not ran or not runs or not gap or not gap_now:
        return Verdict.UNCLEAR, "how many ran at once, or how long a token took, was not readable"
    if experiment.concurrency is not None and runs < FILLED * experiment.concurrency:
        return Verdict.UNCLEAR, f"only {runs:.0f} of {experiment.concurrency} ran at once: the rate did not fill them"
    tokens = (runs / gap_now) / (ran / gap)
    evidence = (
        f"with {runs:.3g} at once instead of {ran:.3g} a token took {gap_now * 1000:.3g} ms instead of "
        f"{gap * 1000:.3g}, so {tokens:.0%} of the tokens/s"
    )
    if experiment.bound is Bound.COMPUTE:
        return _between(gap_now / gap, TPOT_FELL, TPOT_STAYED), evidence
    return _between(tokens, SLOTS_MATTER, SLOTS_DO_NOT), evidence


def _half_lengths(_: Experiment, before: Sequence[Seen], after: Sequence[Seen]) -> Found:
    waited, waits = (engine_mean(seen, lambda engine: engine.waiting) for seen in (before, after))
    if waited is None or waits is None or not waited:
        return Verdict.UNCLEAR, "how many waited was not readable"
    evidence = (
        f"{waits:.2g} waited instead of {waited:.2g}, with "
        f"{_preemptions(after):.2g} preemptions a request instead of {_preemptions(before):.2g}"
    )
    return _between(waits / waited, WAITING_FELL, WAITING_STAYED), evidence


def _between(share: float, confirms: float, refutes: float) -> Verdict:
    """A share that falls confirms."""
    if share <= confirms:
        return Verdict.CONFIRMED
    return Verdict.REFUTED if share >= refutes else Verdict.UNCLEAR


def _tpot(seen: Sequence[Seen]) -> float | None:
    found = [one.tpot.mean for one in seen if one.tpot is not None]
    return float(np.mean(found)) if found else None


def _preemptions(seen: Sequence[Seen]) -> float:
    engines = [one.engine for one in seen if one.engine is not None]
    return sum(engine.preemptions for engine in engines) / max(1.0, sum(engine.finished for engine in engines))


_JUDGES: dict[Variation, Callable[[Experiment, Sequence[Seen], Sequence[Seen]], Found]] = {
    Variation.HALF_CONCURRENCY: _half_concurrency,
    Variation.HALF_LENGTHS: _half_lengths,
}
