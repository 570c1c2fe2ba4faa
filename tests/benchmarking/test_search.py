"""The search: what is measured next, when a level is decided, how a ramp ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarking.ramping import ramp_up
from servingplan.benchmarking.effort import QUICK, STANDARD
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import Because, Level, Verdict, judge
from servingplan.benchmarking.run import Run
from servingplan.benchmarking.search import LADDER, MOST_VOID, Finding, Measure, Outcome, Ramp, next_step
from support.benches import a_run, a_void
from support.queueing import STEEP

TARGET = (Criterion(name="good", target=0.95),)
RAMP = Ramp(criteria=TARGET, effort=STANDARD, start=5.0, longest_s=1e6)


def level(*runs: Run) -> Level:
    return judge(5.0, runs, TARGET, STANDARD, seed=1)


def runs_at(rate: float, good: float, count: int) -> list[Run]:
    return [a_run(rate, good, seed=seed) for seed in range(count)]


def finished(ramp: Ramp, share: Callable[[float], float]) -> tuple[Finding, list[Run]]:
    """A ramp on a server whose share of good requests follows from the rate alone."""
    runs: list[Run] = []
    while isinstance(step := next_step(ramp, runs), Measure):
        runs.append(a_run(step.rate, share(step.rate), seed=len(runs), extended=step.extended))
    return step, runs


# ---- one level ----

DECISIONS = {
    "nothing yet": ((), Verdict.OPEN, Because.MORE_RUNS),
    "two good runs are not enough": (runs_at(5, 1.0, 2), Verdict.OPEN, Because.MORE_RUNS),
    "three good runs hold": (runs_at(5, 1.0, 3), Verdict.PASS, Because.HOLDS),
    "three bad runs fail": (runs_at(5, 0.92, 3), Verdict.FAIL, Because.MISSES),
    "one very bad run cannot be made up for": (runs_at(5, 0.60, 1), Verdict.FAIL, Because.CANNOT_RECOVER),
    "one bad run might be": (runs_at(5, 0.90, 1), Verdict.OPEN, Because.MORE_RUNS),
    "at the target, three do not tell": (runs_at(5, 0.95, 3), Verdict.OPEN, Because.MORE_RUNS),
    "at the target, eight do not either": (runs_at(5, 0.95, 8), Verdict.UNDECIDED, Because.TOO_CLOSE),
    "a server that never finished": ([replace(a_run(5, 1.0), blocks=(), unfinished=True)], Verdict.FAIL,
                                     Because.FALLS_BEHIND),
    "void runs do not count": ([*runs_at(5, 1.0, 2), a_void(5)], Verdict.OPEN, Because.MORE_RUNS),
}  # fmt: skip


@pytest.mark.parametrize(("runs", "verdict", "because"), DECISIONS.values(), ids=DECISIONS)
def test_a_level_is_decided_by_its_bounds(runs: list[Run], verdict: Verdict, because: Because) -> None:
    found = level(*runs)
    assert (found.verdict, found.because) == (verdict, because)


def test_a_queue_that_rises_while_the_level_holds_is_looked_at_for_longer_once() -> None:
    rising = [replace(run, queue_rises=True) for run in runs_at(5, 1.0, 3)]
    first = level(*rising)
    assert (first.verdict, first.because, first.extend) == (Verdict.OPEN, Because.LONGER_WINDOW, True)

    longer = [replace(run, extended=True) for run in rising]
    assert level(*rising, *longer).because is Because.QUEUE_RISES
    settled = [replace(run, queue_rises=False) for run in longer]
    assert level(*rising, *settled).verdict is Verdict.PASS


def test_every_criterion_has_to_hold() -> None:
    both = (*TARGET, Criterion(name="ttft", target=0.99))
    runs = [replace(run, blocks=tuple(replace(block, met=(150, 146)) for block in run.blocks))
            for run in runs_at(5, 1.0, 3)]  # fmt: skip
    assert judge(5.0, runs, both, STANDARD, seed=1).verdict is Verdict.FAIL


# ---- the search ----


def test_the_ladder_climbs_by_its_step_until_a_rate_fails() -> None:
    _, runs = finished(RAMP, lambda rate: 1.0 if rate < 15 else 0.5)
    rates = list(dict.fromkeys(run.rate for run in runs))
    assert rates[:5] == [5.0, 7.0, 9.8, 13.72, 19.21]


def test_the_ladder_goes_down_where_the_first_rate_fails() -> None:
    finding, runs = finished(RAMP, lambda rate: 1.0 if rate < 2 else 0.5)
    assert runs[1].rate == pytest.approx(5 / LADDER, abs=1e-3)
    assert finding.outcome is Outcome.FOUND
    assert finding.capacity is not None
    assert finding.capacity < 2 <= (finding.failing or 0)


@pytest.mark.parametrize("effort", [STANDARD, QUICK], ids=lambda effort: effort.name)
def test_bisection_ends_within_the_resolution(effort: object) -> None:
    ramp = replace(RAMP, effort=effort)
    finding, _ = finished(ramp, lambda rate: 1.0 if rate <= 8.1 else 0.5)
    assert finding.capacity is not None
    assert finding.failing is not None
    assert finding.capacity <= 8.1 < finding.failing
    assert finding.failing / finding.capacity <= ramp.effort.resolution


def test_the_capacity_gets_all_its_runs_before_it_is_one() -> None:
    finding, _ = finished(RAMP, lambda rate: 1.0 if rate <= 8.1 else 0.5)
    by_rate = {found.rate: len(found.runs) for found in finding.levels}
    assert finding.capacity is not None
    assert by_rate[finding.capacity] == STANDARD.most_seeds


def test_an_undecided_rate_is_neither_capacity_nor_the_end_of_the_interval() -> None:
    finding, _ = finished(RAMP, lambda rate: 1.0 if rate < 6.9 else 0.95 if rate < 7.3 else 0.5)
    undecided = [found.rate for found in finding.levels if found.verdict is Verdict.UNDECIDED]
    assert undecided
    assert finding.capacity is not None
    assert finding.failing is not None
    assert all(finding.capacity < rate < finding.failing for rate in undecided)


def test_a_server_that_never_holds_or_never_fails_is_said_to() -> None:
    assert finished(RAMP, lambda _: 0.1)[0].outcome is Outcome.NOTHING_HOLDS
    assert finished(RAMP, lambda _: 1.0)[0].outcome is Outcome.NOTHING_FAILS


def test_void_runs_are_repeated_within_a_bound() -> None:
    voids = [a_void(5.0, seed=seed) for seed in range(MOST_VOID)]
    assert isinstance(next_step(RAMP, voids), Measure)
    finding = next_step(RAMP, [*voids, a_void(5.0, seed=9)])
    assert isinstance(finding, Finding)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "Neighbour" in finding.message
    assert [run.seed for run in finding.levels[0].void] == [0, 1, 2, 9]


def test_a_ramp_without_time_left_says_what_it_knows() -> None:
    finding, runs = finished(replace(RAMP, longest_s=2000.0), lambda rate: 1.0 if rate < 30 else 0.5)
    assert finding.outcome is Outcome.OUT_OF_TIME
    assert finding.capacity == 9.8
    assert finding.failing is None
    assert sum(run.took_s for run in runs) <= 2000


def test_a_ramp_whose_time_went_into_void_runs_says_what_voided_them() -> None:
    runs = [a_void(5.0, seed=1), a_void(5.0, seed=2)]
    finding = next_step(replace(RAMP, longest_s=2 * runs[0].took_s), runs)
    assert isinstance(finding, Finding)
    assert finding.outcome is Outcome.OUT_OF_TIME
    assert "2 of 2 are void: Neighbour" in finding.message


def test_what_comes_next_follows_from_the_runs_alone_so_a_ramp_goes_on_anywhere() -> None:
    server, objectives, _ = STEEP["tokens slow down"]
    whole = ramp_up(server, objectives, start=6.0, seed=3)
    ramp = Ramp(criteria=TARGET, effort=STANDARD, start=6.0, longest_s=1e9, seed=3)
    for number, run in enumerate(whole.runs):
        step = next_step(ramp, whole.runs[:number])
        assert isinstance(step, Measure)
        assert (step.rate, step.extended) == (run.rate, run.extended)
    assert next_step(ramp, whole.runs) == whole.finding


def test_rates_are_the_same_after_a_way_through_json() -> None:
    _, runs = finished(RAMP, lambda rate: 1.0 if rate < math.pi * 2 else 0.5)
    assert json.loads(json.dumps([run.rate for run in runs])) == [run.rate for run in runs]
