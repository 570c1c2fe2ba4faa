"""The work of evidence: what runs now, and that it goes on from whatever is there."""

from __future__ import annotations

import itertools

import pytest

from servingplan.planning.work import JobState, Stage, Step, Work, WorkSeen, next_step


def work(*pieces: int, **changes) -> Work:
    stated = {"pieces": pieces or (1,), "pool": True, "suspend": False, "may_run": True}
    return Work(**(stated | changes))


def seen(*, ready=None, results=(), **jobs) -> WorkSeen:
    named = {"one": 1, "eight": 8}
    return WorkSeen(ready=ready, jobs={named[name]: state for name, state in jobs.items()}, results=frozenset(results))


RUNS = JobState.RUNNING


@pytest.mark.parametrize(
    ("what", "is_there", "step"),
    [
        (work(), seen(), Step(stage=Stage.STARTING, replicas=1, piece=1)),
        (work(), seen(ready=1), Step(stage=Stage.RUNNING, replicas=1, piece=1)),
        (work(), seen(ready=1, one=RUNS), Step(stage=Stage.RUNNING, replicas=1, piece=1)),
        (work(), seen(ready=None, one=RUNS), Step(stage=Stage.RUNNING, replicas=1, piece=1)),
        (work(), seen(one=JobState.SUSPENDED), Step(stage=Stage.STARTING, replicas=1, piece=1)),
        (work(), seen(ready=1, one=JobState.DONE, results=[1]), Step(stage=Stage.OVER, replicas=0, piece=1)),
        (work(), seen(ready=1, one=JobState.DONE), Step(stage=Stage.FAILED, replicas=0, piece=1)),
        (work(), seen(ready=1, one=JobState.FAILED), Step(stage=Stage.FAILED, replicas=0, piece=1)),
        (work(suspend=True), seen(ready=1, one=RUNS), Step(stage=Stage.SUSPENDED, replicas=0, piece=1)),
        (work(may_run=False), seen(ready=1, one=RUNS), Step(stage=Stage.WAITING, replicas=0, piece=1)),
        (work(suspend=True, may_run=False), seen(), Step(stage=Stage.SUSPENDED, replicas=0, piece=1)),
        (work(pool=False), seen(), Step(stage=Stage.RUNNING, replicas=0, piece=1)),
        (work(1, 8), seen(ready=1, one=JobState.DONE, results=[1]), Step(stage=Stage.STARTING, replicas=8, piece=8)),
        (work(1, 8), seen(ready=8, one=JobState.DONE, results=[1]), Step(stage=Stage.RUNNING, replicas=8, piece=8)),
        (
            work(1, 8),
            seen(ready=8, one=JobState.DONE, eight=JobState.DONE, results=[1, 8]),
            Step(stage=Stage.OVER, replicas=0, piece=8),
        ),
    ],
    ids=[
        "the pool first",
        "then the runner",
        "which goes on",
        "also where a replica is lost",
        "after a pause the pool first again",
        "over",
        "a runner that handed nothing back",
        "a runner that failed",
        "suspended",
        "not the time",
        "suspended for both reasons",
        "what serves needs no pool",
        "the next size grows the pool",
        "and is measured when it is complete",
        "all sizes",
    ],
)
def test_what_is_to_run_follows_from_what_is_there(what, is_there, step):
    assert next_step(what, is_there) == step


def test_accelerators_are_taken_only_while_something_starts_or_runs():
    states = (None, *JobState)
    for suspend, may_run, ready, state, done in itertools.product(
        (True, False), (True, False), (None, 1), states, (True, False)
    ):
        there = WorkSeen(ready=ready, jobs={} if state is None else {1: state}, results=frozenset({1} if done else ()))
        step = next_step(work(suspend=suspend, may_run=may_run), there)
        assert (step.replicas > 0) == (step.stage in {Stage.STARTING, Stage.RUNNING})
        assert not step.runs or (not suspend and may_run and not done)
