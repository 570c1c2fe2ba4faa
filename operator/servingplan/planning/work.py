"""The work of evidence: what is to run now, of a trial pool and of the Jobs that do the work piece by piece.

In: the pieces, whether they may run, what was seen of pool and Jobs. Out: the `Step` to bring about. A chain of small
rules, the first that applies wins. It remembers nothing: a restart at any instant goes on from what is there. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class JobState(StrEnum):
    """How far a Job is."""

    RUNNING = "Running"
    SUSPENDED = "Suspended"
    DONE = "Done"
    FAILED = "Failed"


class Stage(StrEnum):
    """Where the work stands."""

    OVER = "Over"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    WAITING = "Waiting"
    STARTING = "Starting"
    RUNNING = "Running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be done. pieces: each by the replicas of the pool that it needs. pool: whether one is started for it.

    may_run: whether now is the time, where there are hours to keep to.
    """

    pieces: Sequence[int]
    pool: bool
    suspend: bool
    may_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSeen:
    """What is there. ready: replicas of the pool that serve, None while they are not all that is asked for.

    jobs: by piece. results: the pieces whose result is known.
    """

    ready: int | None
    jobs: Mapping[int, JobState] = field(default_factory=dict)
    results: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is to be so now. replicas: of the pool. piece: the one that it is about; the last one when all is over."""

    stage: Stage
    replicas: int
    piece: int

    @property
    def runs(self) -> bool:
        """Whether the piece's Job runs; no other one does."""
        return self.stage is Stage.RUNNING


def next_step(work: Work, seen: WorkSeen) -> Step:
    """What to bring about now."""
    piece = next((piece for piece in work.pieces if piece not in seen.results), None)
    if piece is None:
        return Step(stage=Stage.OVER, replicas=0, piece=work.pieces[-1])
    case = _Case(work=work, seen=seen, piece=piece)
    stage = next(found for rule in RULES if (found := rule(case)) is not None)
    pool = piece if work.pool and stage in {Stage.STARTING, Stage.RUNNING} else 0
    return Step(stage=stage, replicas=pool, piece=piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    work: Work
    seen: WorkSeen
    piece: int

    @property
    def job(self) -> JobState | None:
        return self.seen.jobs.get(self.piece)


def _failed(case: _Case) -> Stage | None:
    """It stays so: what failed is looked at by a person, who edits the spec or makes another one."""
    return Stage.FAILED if case.job in {JobState.FAILED, JobState.DONE} else None


def _suspended(case: _Case) -> Stage | None:
    return Stage.SUSPENDED if case.work.suspend else None


def _waiting(case: _Case) -> Stage | None:
    return None if case.work.may_run else Stage.WAITING


def _going_on(case: _Case) -> Stage | None:
    """What runs goes on although a replica is lost: the runner sees that itself, and would lose its work by a pause."""
    return Stage.RUNNING if case.job is JobState.RUNNING else None


def _starting(case: _Case) -> Stage | None:
    return Stage.STARTING if case.work.pool and case.seen.ready != case.piece else None


def _running(_: _Case) -> Stage | None:
    return Stage.RUNNING


RULES: Sequence[Callable[[_Case], Stage | None]] = (_failed, _suspended, _waiting, _going_on, _starting, _running)
"""In their order; the last always applies."""
