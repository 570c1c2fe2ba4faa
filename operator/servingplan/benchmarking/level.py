"""What the runs at one rate say: it passes, fails, is undecided, or needs another run.

In: the runs of one rate, criteria, effort. Out: a `Level`. A chain of small rules, the first that applies wins. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from servingplan.benchmarking.effort import Effort
from servingplan.benchmarking.goodput import Block, Criterion
from servingplan.benchmarking.run import Run, Seen
from servingplan.benchmarking.statistics import Bounds, share_bounds


class Verdict(StrEnum):
    """What is known of a rate."""

    PASS = "Pass"  # noqa: S105  not a password
    FAIL = "Fail"
    UNDECIDED = "Undecided"
    OPEN = "Open"


class Because(StrEnum):
    """Why a level has its verdict. Documented in docs/reference/bench-json.md."""

    HOLDS = "Holds"
    MISSES = "Misses"
    CANNOT_RECOVER = "CannotRecover"
    FALLS_BEHIND = "FallsBehind"
    QUEUE_RISES = "QueueRises"
    TOO_CLOSE = "TooClose"
    MORE_RUNS = "MoreRuns"
    LONGER_WINDOW = "LongerWindow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One rate of the ramp. runs: those that count, void ones apart. bounds: by criterion, empty without a request."""

    rate: float
    verdict: Verdict
    because: Because
    runs: tuple[Run, ...]
    void: tuple[Run, ...]
    bounds: tuple[Bounds, ...]

    @property
    def seen(self) -> tuple[Seen, ...]:
        """What the runs that count saw; an unfinished one saw nothing."""
        return tuple(run.seen for run in self.runs if run.seen is not None)

    @property
    def extend(self) -> bool:
        """Whether the next run has a window of twice the length."""
        return self.because is Because.LONGER_WINDOW or any(run.extended for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    runs: tuple[Run, ...]
    bounds: tuple[Bounds, ...]
    criteria: tuple[Criterion, ...]
    effort: Effort

    @property
    def holds(self) -> bool:
        return all(bound.lower >= wanted.target for bound, wanted in zip(self.bounds, self.criteria, strict=True))

    @property
    def misses(self) -> bool:
        return any(bound.upper < wanted.target for bound, wanted in zip(self.bounds, self.criteria, strict=True))


def judge(rate: float, runs: Sequence[Run], criteria: tuple[Criterion, ...], effort: Effort, *, seed: int) -> Level:
    """The level of the runs at `rate`. Where a window was doubled, only the longer runs count.

    seed: of the bootstrap.
    """
    counted = tuple(run for run in runs if run.counts)
    longer = tuple(run for run in counted if run.extended)
    counted = longer or counted
    bounds = bounds_of(counted, seed=seed)
    case = _Case(runs=counted, bounds=bounds, criteria=criteria, effort=effort)
    verdict, because = next(found for rule in RULES if (found := rule(case)) is not None)
    return Level(
        rate=rate,
        verdict=verdict,
        because=because,
        runs=counted,
        void=tuple(run for run in runs if not run.counts),
        bounds=bounds,
    )


def bounds_of(runs: Sequence[Run], *, seed: int) -> tuple[Bounds, ...]:
    """The shares of these runs together by criterion; empty without a request. seed: of the bootstrap."""
    return _bounds(tuple(block for run in runs for block in run.blocks), seed)


@lru_cache(maxsize=1024)
def _bounds(blocks: tuple[Block, ...], seed: int) -> tuple[Bounds, ...]:
    # Cached by value: every step of a search judges all its levels again.
    sent = np.array([block.sent for block in blocks], dtype=np.int64)
    if not sent.sum():
        return ()
    by_criterion = np.array([block.met for block in blocks], dtype=np.int64).T
    return tuple(share_bounds(sent, met, seed=seed) for met in by_criterion)


Found = tuple[Verdict, Because] | None


def _falls_behind(case: _Case) -> Found:
    """The server could not even finish what a run sent."""
    return (Verdict.FAIL, Because.FALLS_BEHIND) if any(run.unfinished for run in case.runs) else None


def _nothing_yet(case: _Case) -> Found:
    return (Verdict.OPEN, Because.MORE_RUNS) if not case.bounds else None


def _cannot_recover(case: _Case) -> Found:
    """Stops early: misses of the first runs alone exceed (1 - target) x what the planned runs send."""
    if len(case.runs) >= case.effort.seeds or not case.misses:
        return None
    sent = sum(block.sent for run in case.runs for block in run.blocks)
    planned = sent / len(case.runs) * case.effort.seeds
    over = any(
        (1 - bound.share) * sent > (1 - wanted.target) * planned
        for bound, wanted in zip(case.bounds, case.criteria, strict=True)
    )
    return (Verdict.FAIL, Because.CANNOT_RECOVER) if over else None


def _planned_runs_first(case: _Case) -> Found:
    return (Verdict.OPEN, Because.MORE_RUNS) if len(case.runs) < case.effort.seeds else None


def _misses(case: _Case) -> Found:
    return (Verdict.FAIL, Because.MISSES) if case.misses else None


def _queue_rises(case: _Case) -> Found:
    """A level that would pass while more and more wait is on its way to failing: look longer, once."""
    rising = sum(run.queue_rises for run in case.runs)
    if not case.holds or 2 * rising <= len(case.runs):
        return None
    if any(run.extended for run in case.runs):
        return Verdict.FAIL, Because.QUEUE_RISES
    return Verdict.OPEN, Because.LONGER_WINDOW


def _holds(case: _Case) -> Found:
    return (Verdict.PASS, Because.HOLDS) if case.holds else None


def _undecided(case: _Case) -> Found:
    return (Verdict.UNDECIDED, Because.TOO_CLOSE) if len(case.runs) >= case.effort.most_seeds else None


def _another_run(_: _Case) -> Found:
    return Verdict.OPEN, Because.MORE_RUNS


RULES: tuple[Callable[[_Case], Found], ...] = (
    _falls_behind,
    _nothing_yet,
    _cannot_recover,
    _planned_runs_first,
    _misses,
    _queue_rises,
    _holds,
    _undecided,
    _another_run,
)
"""In their order; the last always applies."""
