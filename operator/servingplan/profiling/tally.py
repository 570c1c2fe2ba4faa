"""Requests, counted: arrivals by the minute, lengths, warm prefixes, tenants. In bounded memory, whatever a log holds.

In: what was logged, in any order. Out: `Counted`. Knows no time zone and no week.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from servingplan.errors import InputError, Problem
from servingplan.profiling.lengths import LengthCounts, Lengths
from servingplan.profiling.prefixes import Prefixes
from servingplan.profiling.request import Logged, Request, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

MINUTE = 60
_BATCH = 1 << 16
_NAMED = 10_000
"""Different tenants, or priorities, that are counted by name; beyond, they are counted together."""

OTHERS = "(others)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How many requests came in each step from `start` (seconds since 1970) on.

    step: seconds. counts: NaN where nothing was recorded.
    """

    start: float
    step: float
    counts: NDArray[np.float64]

    @property
    def end(self) -> float:
        """The end of the last step."""
        return self.start + self.step * len(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A name that is logged, and the share of requests that have it."""

    name: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted. arrivals: without what can wait. requests: all. prefix_share: 0 to 1."""

    arrivals: Arrivals
    requests: float
    deferrable: float
    input: Lengths | None
    output: Lengths | None
    prefix_share: float | None
    tenants: tuple[Share, ...]
    priorities: tuple[Share, ...]


class Tally:
    """Counts. deferrable: by ``tenant`` or ``priority``, the values of requests that can wait.

    width: seconds, over which arrivals of single requests are counted together.
    """

    def __init__(self, deferrable: Mapping[str, frozenset[str]] | None = None, *, width: int = MINUTE) -> None:
        stated = deferrable or {}
        self._late_tenants = stated.get("tenant", frozenset())
        self._late_priorities = stated.get("priority", frozenset())
        self._width = width
        self._counts: Counter[int] = Counter()
        self._steps: dict[float, float] = {}
        self._step = 0.0
        self._deferrable = 0
        self._input, self._output, self._prefixes = LengthCounts(), LengthCounts(), Prefixes()
        self._tenants: Counter[str] = Counter()
        self._priorities: Counter[str] = Counter()

    def add(self, logged: Iterable[Logged]) -> None:
        """Count everything. Raises InputError for steps of several lengths, and for steps beside requests."""
        batch: list[Request] = []
        for each in logged:
            if type(each) is Request:
                batch.append(each)
                if len(batch) == _BATCH:
                    self._count(batch)
                    batch = []
            else:
                self._add_step(each)
        self._count(batch)
        if self._steps and self._counts:
            raise _unmixable("one file logs requests and another rates: profile them apart")

    def _add_step(self, step: Logged) -> None:
        if not isinstance(step, Step):
            raise TypeError(step)
        if self._step not in {0.0, step.seconds}:
            raise _unmixable(f"steps of {self._step:g} s and of {step.seconds:g} s: profile them apart")
        self._step = step.seconds
        rate = float("nan") if step.requests is None else step.requests
        self._steps[step.at] = self._steps.get(step.at, 0.0) + rate

    def _count(self, batch: list[Request]) -> None:
        if not batch:
            return
        ats, given, answered, tenants, priorities, blocks = zip(*batch, strict=True)
        self._input.add(tokens for tokens in given if tokens is not None)
        self._output.add(tokens for tokens in answered if tokens is not None)
        _add_names(self._tenants, tenants)
        _add_names(self._priorities, priorities)
        if any(blocks):
            for at, tokens, hashes in zip(ats, given, blocks, strict=True):
                if hashes and tokens:
                    self._prefixes.add(at, tokens, hashes)
        places = np.asarray(ats) // self._width
        if self._late_tenants or self._late_priorities:
            late = [
                tenant in self._late_tenants or priority in self._late_priorities
                for tenant, priority in zip(tenants, priorities, strict=True)
            ]
            self._deferrable += sum(late)
            places = places[~np.asarray(late)]
        found, counts = np.unique(places.astype(np.int64), return_counts=True)
        self._counts.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))

    @property
    def counted(self) -> Counted:
        """The result. Raises InputError where nothing was counted."""
        arrivals = self._arrivals()
        known = float(np.nansum(arrivals.counts))
        return Counted(
            arrivals=arrivals,
            requests=known + self._deferrable,
            deferrable=self._deferrable,
            input=self._input.lengths,
            output=self._output.lengths,
            prefix_share=self._prefixes.share,
            tenants=_shares(self._tenants),
            priorities=_shares(self._priorities),
        )

    def _arrivals(self) -> Arrivals:
        if self._steps:
            return _laid_out(self._steps, self._step, missing=float("nan"))
        if not self._counts:
            message = "no line is a request for tokens: state another --format, or --path for other paths"
            raise InputError(Problem(path="", reason="NoRequests", message=message))
        counts = {place * float(self._width): count for place, count in self._counts.items()}
        return _laid_out(counts, self._width, missing=0.0)


_LONGEST_STEPS = 10 * 366 * 24 * 60
"""Ten years of minutes: what an array may hold."""


def _laid_out(counts: Mapping[float, float], step: float, *, missing: float) -> Arrivals:
    first, last = min(counts), max(counts)
    steps = round((last - first) / step) + 1
    if steps > _LONGEST_STEPS:
        raise _unmixable("its first and last times are more than ten years apart: check the times")
    laid = np.full(steps, missing)
    laid[[round((at - first) / step) for at in counts]] = list(counts.values())
    return Arrivals(start=first, step=step, counts=laid)


def _add_names(names: Counter[str], more: Iterable[str]) -> None:
    for name, count in Counter(more).items():
        if name:
            names[name if name in names or len(names) < _NAMED else OTHERS] += count


_SHOWN = 10


def _shares(names: Counter[str]) -> tuple[Share, ...]:
    total = names.total()
    ordered = sorted(names.items(), key=lambda each: (-each[1], each[0]))
    return tuple(Share(name=name, share=count / total) for name, count in ordered[:_SHOWN])


def _unmixable(message: str) -> InputError:
    return InputError(Problem(path="", reason="MixedLogs", message=message))
