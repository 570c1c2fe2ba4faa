"""A trace on virtual time: how many requests come in each slice, and which of them count.

In: counts by the step, as a log holds them, or the demand that a plan states. Out: a `Trace`. Where a step is longer
than a slice, the requests inside it are drawn. Before the first one lies a while of the same demand, which does not
count: no policy begins cold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from servingplan.errors import InputError, Problem
from servingplan.planning.demand import requirements
from servingplan.planning.evidence import planned_rate
from servingplan.planning.learned import MINUTE, Past
from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction
from servingplan.simulation.arrivals import SLICE_S, arrivals
from servingplan.simulation.traces import over_gaps

T = TypeVar("T")

SLICE = timedelta(seconds=SLICE_S)

SHORTEST = timedelta(minutes=30)
"""Of less nothing is learned: a rise and its start take most of it."""

PLANNED_STEP_S = 300
"""A plan states the rate of the busiest five minutes."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_PER_MINUTE = MINUTE // SLICE

_FIRST = timedelta(minutes=10)
"""Whose mean is the demand before the first request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How requests are drawn inside a step. dispersion: variance over mean of the requests in a slice."""

    seed: int
    dispersion: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Requests by slice from `start` on.

    counted: by slice, False in gaps of the recording and before its first request. drawn: requests inside a step of
    `step_s` seconds are drawn; else each lies where it came, to a slice.
    """

    start: datetime
    requests: NDArray[np.float64]
    counted: NDArray[np.bool_]
    step_s: int
    drawn: bool

    @property
    def end(self) -> datetime:
        """The end of the last slice."""
        return self.start + len(self.requests) * SLICE

    @property
    def first(self) -> datetime:
        """The first instant that counts."""
        return self.at(int(np.argmax(self.counted)))

    def at(self, index: int) -> datetime:
        """The start of a slice."""
        return self.start + index * SLICE

    def index(self, instant: datetime) -> int:
        """The slice in which an instant lies."""
        return (instant - self.start) // SLICE

    def index_from(self, instant: datetime) -> int:
        """The first slice that begins at an instant or after it."""
        return -((self.start - instant) // SLICE)

    def between(self, start: datetime, end: datetime) -> Trace:
        """The part in [start, end). Raises InputError where that is too short."""
        first, last = max(0, self.index(start)), max(0, self.index_from(end))
        part = replace(self, start=self.at(first), requests=self.requests[first:last], counted=self.counted[first:last])
        return _long_enough(part)

    def minutes(self, start: datetime, end: datetime) -> Past:
        """Requests/s of each whole minute in [start, end), NaN in gaps: as a Prometheus would have kept them."""
        first = -((_EPOCH - start) // MINUTE) * MINUTE + _EPOCH
        begin, count = self.index_from(first), max(0, (end - first) // MINUTE)
        place = slice(begin, begin + count * _PER_MINUTE)
        requests = np.where(self.counted[place], self.requests[place], np.nan).reshape(count, _PER_MINUTE)
        return Past(start=first, rates=(requests.sum(axis=1) / MINUTE.total_seconds()).tolist())

    def after_a_while(self, while_: timedelta) -> Trace:
        """With so much time before it in which the demand is that of its first minutes, and nothing counts."""
        slices = -(-while_ // SLICE)
        known = self.requests[self.counted][: _FIRST // SLICE]
        return replace(
            self,
            start=self.start - slices * SLICE,
            requests=np.concatenate([np.full(slices, known.mean()), self.requests]),
            counted=np.concatenate([np.zeros(slices, bool), self.counted]),
        )


def recorded(counts: NDArray[np.float64], start: datetime, step_s: float, drawing: Drawing) -> Trace:
    """A trace of counts by the step, NaN where nothing was recorded. Raises InputError for what is no trace."""
    if step_s % SLICE_S:
        raise _problem("StepsUnfit", f"it has steps of {step_s:g} s: they must be a multiple of {SLICE_S} s")
    known = np.isfinite(counts)
    if not np.nansum(counts[known]) > 0:
        raise _problem("NoRequests", "it holds no request: nothing can be simulated")
    per_step = round(step_s) // SLICE_S
    return _long_enough(
        Trace(
            start=start,
            requests=_inside_steps(over_gaps(counts, known), round(step_s), drawing),
            counted=np.repeat(known, per_step),
            step_s=round(step_s),
            drawn=per_step > 1,
        )
    )


def planned(plan: Plan, start: datetime, end: datetime, drawing: Drawing) -> Trace:
    """The demand that the plan states on [start, end), as a trace: in steps of five minutes, drawn inside."""
    steps = -(-(end - start) // timedelta(seconds=PLANNED_STEP_S))
    rates = planned_rates(plan, start, steps * PLANNED_STEP_S // SLICE_S)
    by_step = rates.reshape(steps, -1).mean(axis=1)
    if not by_step.any():
        raise _problem("NoRequests", f"{plan.key} plans for no demand then: state a trace with --trace")
    return _long_enough(
        Trace(
            start=start,
            requests=_inside_steps(by_step * PLANNED_STEP_S, PLANNED_STEP_S, drawing),
            counted=np.ones(steps * PLANNED_STEP_S // SLICE_S, bool),
            step_s=PLANNED_STEP_S,
            drawn=True,
        )
    )


def planned_rates(plan: Plan, start: datetime, slices: int) -> NDArray[np.float64]:
    """What the plan holds against, in requests/s at the start of each slice; of a stated total, what it serves."""
    required = requirements(plan, start, start + slices * SLICE)
    return by_slice(required, lambda value: float(planned_rate(plan, value)))


def by_slice(function: StepFunction[T], figure: Callable[[T], float]) -> NDArray[np.float64]:
    """A figure of a step function at the start of each slice, from its own start to its end."""
    edges = [-((function.start - time) // SLICE) for time in (*function.times, function.end)]
    return np.repeat([figure(value) for value in function.values], np.diff(edges))


def _inside_steps(counts: NDArray[np.float64], step_s: int, drawing: Drawing) -> NDArray[np.float64]:
    """The requests of each slice, from those of each step."""
    if step_s == SLICE_S:
        return counts
    drawn = arrivals(counts[:, None] / step_s, step_s, seeds=[drawing.seed], dispersion=drawing.dispersion)
    return drawn[:, 0, 0].astype(np.float64)


def _long_enough(trace: Trace) -> Trace:
    known = int(trace.counted.sum()) * SLICE
    if known < SHORTEST:
        minutes = known / timedelta(minutes=1)
        message = f"it holds {minutes:.0f} minutes of requests; {SHORTEST // timedelta(minutes=1)} are the least"
        raise _problem("TraceTooShort", message)
    return trace


def _problem(reason: str, message: str) -> InputError:
    return InputError(Problem(path="", reason=reason, message=message))
