"""The bill of some days: GPU-hours planned, spent, and what else would have been spent, with attainment beside them.

In: a plan, what was served and which replicas were set. Out: a `Bill`, and as a document the contract of
``bill -o json``. Hours of which something is not known are left out of all lines alike. No clock, no I/O.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction, combine, step_function
from servingplan.rendering.times import wire_time
from servingplan.reporting.hours import GpuHours
from servingplan.reporting.outlook import hours_document, tenth

T = TypeVar("T")

Document = dict[str, Any]
HOUR = timedelta(hours=1)


class Meets(StrEnum):
    """Whether a line kept the objective, as far as its attainment tells."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The share of requests within one limit, between two bounds: equal where the limit is an edge of the histogram."""

    at_least: float
    at_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Attainment as the engines counted it.

    by_objective: each by itself. How many requests kept all of them at once separate histograms do not tell: at least
    `at_least` (every miss another request's), at most `at_most` (the smallest of them). requests: that were finished.
    """

    by_objective: Mapping[str, Kept]
    requests: float

    @property
    def at_least(self) -> float:
        """1 less all misses, at least 0."""
        return max(0.0, 1 - sum(1 - kept.at_least for kept in self.by_objective.values()))

    @property
    def at_most(self) -> float:
        """The smallest share."""
        return min(kept.at_most for kept in self.by_objective.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One way to have served these days. gpu_hours: over the hours that count.

    modelled: attainment in the fluid model, the same for all lines; measured: of the actual line alone. meets: of what
    was measured where it was, else of the model; None where neither is known.
    """

    name: str
    what: str
    gpu_hours: float
    modelled: float | None = None
    measured: Measured | None = None
    meets: Meets | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Hours that count in no line, and why."""

    start: datetime
    end: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What some days cost. planned: of all of them, counted or not. share: what must be good, None where not stated.

    gpu_hour: what one GPU-hour costs, in any currency. queries: what a Prometheus was asked for arrivals and replicas.
    """

    plan: Plan
    start: datetime
    end: datetime
    planned: GpuHours
    lines: Sequence[Line]
    left_out: Sequence[Span]
    share: float | None
    remarks: Sequence[str]
    gpu_hour: Decimal | None
    queries: Sequence[str]

    @property
    def hours(self) -> float:
        """All hours."""
        return (self.end - self.start) / HOUR

    @property
    def counted(self) -> float:
        """Hours that count."""
        return self.hours - sum((span.end - span.start) / HOUR for span in self.left_out)

    def cost(self, line: Line) -> float | None:
        """What a line costs, None where no price is given."""
        return None if self.gpu_hour is None else line.gpu_hours * float(self.gpu_hour)

    def cheap_by_missing(self, line: Line) -> bool:
        """Whether a line spends less than was planned and misses the objective: that is no saving."""
        return line.meets is Meets.NO and line.gpu_hours < self.lines[0].gpu_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The days of a bill, in whole hours from `start` on, and which hours count: why not, None where they do."""

    start: datetime
    why_not: Sequence[str | None]

    @property
    def end(self) -> datetime:
        """Where it ends."""
        return self.start + len(self.why_not) * HOUR

    @property
    def left_out(self) -> tuple[Span, ...]:
        """The hours that do not count, neighbours for one reason together."""
        return tuple(
            Span(start=piece.start, end=piece.end, why=piece.value)
            for piece in self._over_hours(self.why_not).pieces()
            if piece.value is not None
        )

    def replica_hours(self, replicas: StepFunction[int]) -> float:
        """The integral over the hours that count."""
        counts = self._over_hours([int(why is None) for why in self.why_not])
        return combine(replicas, counts, operator.mul).hours(int)

    def _over_hours(self, values: Sequence[T]) -> StepFunction[T]:
        return step_function([(self.start + hour * HOUR, value) for hour, value in enumerate(values)], end=self.end)


# ---- the document ----


def bill_document(found: Bill) -> Document:
    """The bill as ``bill -o json`` prints it; docs/reference/bill-json.md describes every field."""
    plan = found.plan
    return {
        "plan": {"namespace": plan.namespace, "name": plan.name},
        "timeZone": plan.zone.key,
        "from": found.start.astimezone(plan.zone).isoformat(),
        "to": found.end.astimezone(plan.zone).isoformat(),
        "hours": tenth(found.hours),
        "countedHours": tenth(found.counted),
        "planned": hours_document(found.planned),
        "objective": None if found.share is None else {"goodputShare": found.share},
        "lines": [_line_document(found, line) for line in found.lines],
        "leftOut": [
            {"from": wire_time(span.start), "to": wire_time(span.end), "why": span.why} for span in found.left_out
        ],
        "remarks": list(found.remarks),
        "queries": list(found.queries),
    }


def _line_document(found: Bill, line: Line) -> Document:
    cost = found.cost(line)
    return {
        "name": line.name,
        "what": line.what,
        "gpuHours": tenth(line.gpu_hours),
        **({} if cost is None else {"cost": round(cost, 2)}),
        "modelledAttainment": _share(line.modelled),
        "measuredAttainment": None if line.measured is None else _measured_document(line.measured),
        "meetsObjective": None if line.meets is None else line.meets.value,
        "cheapByMissing": found.cheap_by_missing(line),
    }


def _measured_document(measured: Measured) -> Document:
    objectives = {
        name: {"atLeast": _share(kept.at_least), "atMost": _share(kept.at_most)}
        for name, kept in measured.by_objective.items()
    }
    return {
        "atLeast": _share(measured.at_least),
        "atMost": _share(measured.at_most),
        "requests": round(measured.requests),
        "byObjective": objectives,
    }


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
