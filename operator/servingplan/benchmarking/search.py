"""The search for capacity: from recorded runs to the next run, or to the finding.

A ladder of rates in steps of 1.4 finds one that passes and one that fails; geometric bisection brings them together.
What comes next follows from the recorded runs alone, so a ramp that was interrupted goes on where it was. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from servingplan.benchmarking.effort import Effort
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import Level, Verdict, judge
from servingplan.benchmarking.run import Run

LADDER = 1.4
"""Between two rungs: three halvings of their ratio bring both ends within 1.05."""

MOST_LEVELS = 30
"""Rates in all. From the first one up, 1.4 to that power is 17,000 times as much."""

MOST_VOID = 3
"""Void runs that a rate may have beyond which it is given up: what voided four runs will void the fifth."""

_DIGITS = 4
"""Significant digits of a rate: far finer than the search, and the same number after a way through JSON."""


class Outcome(StrEnum):
    """How a ramp ended. Documented in docs/reference/bench-json.md."""

    FOUND = "Found"
    OUT_OF_TIME = "OutOfTime"
    INCONCLUSIVE = "Inconclusive"
    NOTHING_HOLDS = "NothingHolds"
    NOTHING_FAILS = "NothingFails"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """What is asked. start: the first rate in requests/s. longest_s: all runs together. seed: of every bootstrap."""

    criteria: tuple[Criterion, ...]
    effort: Effort
    start: float
    longest_s: float
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The next run. extended: with a window of twice the length. level: what is known of its rate."""

    rate: float
    extended: bool
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The end of a ramp. capacity: the largest rate that passed, requests/s. failing: the smallest that failed.

    The truth lies between the two with the confidence of the levels. message: why it ended so, where that needs saying.
    """

    outcome: Outcome
    capacity: float | None
    failing: float | None
    levels: tuple[Level, ...]
    message: str = ""


def next_step(ramp: Ramp, runs: Sequence[Run]) -> Measure | Finding:
    """The next run, or the finding of these runs."""
    found = levels(ramp, runs)
    opened = [level for level in found if level.verdict is Verdict.OPEN]
    given_up = [level for level in opened if len(level.void) > MOST_VOID]
    if given_up:
        return _finding(Outcome.INCONCLUSIVE, found, _why_void(given_up[0]))
    if opened:
        return _within_time(ramp, runs, found, opened[0])
    rate = _next_rate(ramp, found)
    if isinstance(rate, Outcome):
        unconfirmed = _unconfirmed(ramp, found)
        return _finding(rate, found, "") if unconfirmed is None else _within_time(ramp, runs, found, unconfirmed)
    return _within_time(ramp, runs, found, judge(rate, (), ramp.criteria, ramp.effort, seed=ramp.seed))


def levels(ramp: Ramp, runs: Sequence[Run]) -> tuple[Level, ...]:
    """The levels of these runs, by rate ascending."""
    return tuple(
        judge(rate, [run for run in runs if run.rate == rate], ramp.criteria, ramp.effort, seed=ramp.seed)
        for rate in sorted({run.rate for run in runs})
    )


def rounded(rate: float) -> float:
    """A rate to four significant digits."""
    return float(f"{rate:.{_DIGITS}g}")


def best(found: Sequence[Level]) -> tuple[float | None, float | None]:
    """The largest rate that passed below the smallest that failed, and that one."""
    failing = min((level.rate for level in found if level.verdict is Verdict.FAIL), default=None)
    passing = [
        level.rate for level in found if level.verdict is Verdict.PASS and (failing is None or level.rate < failing)
    ]
    return max(passing, default=None), failing


def _next_rate(ramp: Ramp, found: Sequence[Level]) -> float | Outcome:
    if not found:
        return rounded(ramp.start)
    low, high = best(found)
    if high is None:
        return _rung(found, found[-1].rate * LADDER, Outcome.NOTHING_FAILS)
    if low is None:
        return _rung(found, found[0].rate / LADDER, Outcome.NOTHING_HOLDS)
    # Undecided rates lie between: first what passes is brought close to them, then what fails.
    between = [level.rate for level in found if low < level.rate < high]
    for below, above in ((low, min([*between, high])), (max([low, *between]), high)):
        if above / below > ramp.effort.resolution:
            return rounded(math.sqrt(below * above))
    return Outcome.FOUND


def _unconfirmed(ramp: Ramp, found: Sequence[Level]) -> Level | None:
    """What would be the capacity, where it has not had all runs yet.

    Three runs that happen to see none of the rare, long queues pass a rate that is too high; the one that hardware is
    bought by gets as many as an undecided one.
    """
    capacity, _ = best(found)
    return next((level for level in found if level.rate == capacity and len(level.runs) < ramp.effort.most_seeds), None)


def _rung(found: Sequence[Level], rate: float, otherwise: Outcome) -> float | Outcome:
    return otherwise if len(found) >= MOST_LEVELS else rounded(rate)


def _within_time(ramp: Ramp, runs: Sequence[Run], found: Sequence[Level], level: Level) -> Measure | Finding:
    """The next run, where it is likely to end in time: it takes about as long as the longest so far."""
    took = sum(run.took_s for run in runs)
    longest = max((run.took_s for run in runs), default=0.0)
    if took + longest > ramp.longest_s:
        void = [run for run in runs if not run.counts]
        words = f", and {len(void)} of {len(runs)} are void: {_reasons(void)}" if void else ""
        message = f"the runs took {took / 60:.0f} of {ramp.longest_s / 60:.0f} minutes{words}; allow more time"
        return _finding(Outcome.OUT_OF_TIME, found, message)
    return Measure(rate=level.rate, extended=level.extend, level=level)


def _why_void(level: Level) -> str:
    return f"{len(level.void)} runs at {level.rate:g}/s are void: {_reasons(level.void)}"


def _reasons(void: Sequence[Run]) -> str:
    return ", ".join(sorted({each.reason.value for run in void for each in run.voids}))


def _finding(outcome: Outcome, found: Sequence[Level], message: str) -> Finding:
    capacity, failing = best(found)
    return Finding(outcome=outcome, capacity=capacity, failing=failing, levels=tuple(found), message=message)
