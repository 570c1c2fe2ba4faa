"""Making a bill: the plan's course, the replicas that were set, and reactive autoscalers on the same arrivals.

In: a plan, its past replicas, what a Prometheus kept of the days. Out: a `Bill`. All lines go through one fluid fleet,
so that a difference between them is no difference of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from servingplan.planning.ledger import Entry, replicas_held
from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction, step_function
from servingplan.planning.sizing import capacity_per_replica
from servingplan.planning.units import format_duration
from servingplan.reporting.bill import HOUR, Bill, Kept, Line, Measured, Meets, Period
from servingplan.reporting.hours import Course, counted_gpus, course, gpu_hours

if TYPE_CHECKING:
    from servingplan.profiling.served import Served, Within
    from servingplan.simulation.week import Outcome

NOTHING_KEPT = "Prometheus kept no arrivals"
NOT_KNOWN = "replicas are not known"

_SMALLEST = 1e-9
"""Shares that differ by less are equal."""

PLANNED, ACTUAL, FLAT = "planned", "actual", "flat peak"
HPA, REACTIVE = "HPA in-flight", "rate-reactive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actual:
    """The replicas that were set, who tells, and by hour whether that is known."""

    replicas: StepFunction[int]
    told_by: str
    known: Sequence[bool]


def bill(
    plan: Plan,
    start: datetime,
    end: datetime,
    *,
    actual: Actual | None,
    served: Served | None,
    gpu_hour: Decimal | None,
    remarks: Sequence[str] = (),
) -> Bill:
    """The bill of whole hours from `start` to `end` (aware). served: of exactly these; None without a Prometheus."""
    found = course(plan, start, end)
    period = _period(start, end, actual, served)
    lines = _Lines(plan=plan, course=found, period=period, actual=actual, served=served)
    return Bill(
        plan=plan,
        start=start,
        end=end,
        planned=gpu_hours(found, counted_gpus(plan)),
        lines=lines.all(),
        left_out=period.left_out,
        share=objective_share(plan),
        remarks=(*lines.remarks(), *remarks),
        gpu_hour=gpu_hour,
        queries=() if served is None else served.queries,
    )


def objective_share(plan: Plan) -> float | None:
    """The share of requests that must be good; None where nothing states it."""
    objectives = plan.workload.objectives
    share = objectives.lowest_share if objectives.goodput_share is None else objectives.goodput_share
    return None if share is None else float(share)


def actual_replicas(entries: Sequence[Entry], served: Served | None, start: datetime, end: datetime) -> Actual | None:
    """The replicas that were set in whole hours, by whoever knows them of more hours; the ledger where both do."""
    told = [each for each in (_by_ledger(entries, start, end), _by_prometheus(served)) if each is not None]
    return max(told, key=lambda each: sum(each.known), default=None)


def _by_ledger(entries: Sequence[Entry], start: datetime, end: datetime) -> Actual | None:
    held = replicas_held(entries, end)
    if held is None:
        return None
    known = [start + hour * HOUR >= held.start for hour in range(round((end - start) / HOUR))]
    return Actual(replicas=held, told_by="the ledger", known=known)


def _by_prometheus(served: Served | None) -> Actual | None:
    if served is None:
        return None
    step = timedelta(seconds=served.step_s)
    points = [(served.start + n * step, round(count)) for n, count in enumerate(served.replicas) if count is not None]
    if not points:
        return None
    hours = range(len(served.replicas) * served.step_s // round(HOUR.total_seconds()))
    return Actual(
        replicas=step_function(points, end=served.start + len(served.replicas) * step),
        told_by=f"Prometheus, every {format_duration(step)}",
        known=[None not in _of_hour(served.replicas, served, hour) for hour in hours],
    )


def _period(start: datetime, end: datetime, actual: Actual | None, served: Served | None) -> Period:
    """Which hours count: those of which arrivals and replicas are known, as far as there are any at all."""
    why_not: list[str | None] = []
    for hour in range(round((end - start) / HOUR)):
        if served is not None and None in _of_hour(served.requests, served, hour):
            why_not.append(NOTHING_KEPT)
        elif actual is not None and not actual.known[hour]:
            why_not.append(NOT_KNOWN)
        else:
            why_not.append(None)
    return Period(start=start, why_not=why_not)


def _of_hour(steps: Sequence[float | None], served: Served, hour: int) -> Sequence[float | None]:
    count = round(HOUR.total_seconds()) // served.step_s
    return steps[hour * count : (hour + 1) * count]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """The lines of one bill."""

    plan: Plan
    course: Course
    period: Period
    actual: Actual | None
    served: Served | None

    def all(self) -> tuple[Line, ...]:
        """Planned first; what is not known has no line."""
        functions = self._functions()
        modelled, others = self._modelled(functions)
        lines = [
            self._line(name, what, self._gpu_hours(function), modelled.get(name))
            for name, (what, function) in functions.items()
        ]
        what = {
            HPA: f"an HPA on requests in flight, reserve {self.plan.reserve.replicas}, replayed",
            REACTIVE: f"replicas by the rate of two minutes, reserve {self.plan.reserve.replicas}, replayed",
        }
        gpus = counted_gpus(self.plan)
        replayed = [
            self._line(name, what[name], outcome.replica_hours * gpus, outcome.attainment)
            for name, outcome in others.items()
        ]
        return (*lines, *replayed)

    def remarks(self) -> tuple[str, ...]:
        """What people must know to read the figures."""
        found = []
        if self.actual is not None:
            found.append("actual counts replicas that are set; what still ends after them is not in it")
        if self.served is not None and self._has_requests:
            found.append(
                f"modelled: a fluid fleet, {float(self._capacity):g}/s a replica, a start of "
                f"{format_duration(self.course.lead)}, good within a wait of {format_duration(self._wait)}; the same "
                "arrivals for all lines. Beside the measured share it shows how far the model can be trusted"
            )
        return tuple(found)

    # ---- inside ----

    def _functions(self) -> dict[str, tuple[str, StepFunction[int]]]:
        highest = max(self.course.required_function.values)
        flat = step_function([(self.course.start, highest)], end=self.course.end)
        lead = format_duration(self.course.lead)
        found = {
            PLANNED: (f"what the plan asks for, {lead} of lead and its falls included", self.course.asked_function)
        }
        if self.actual is not None:
            found[ACTUAL] = (f"what was set, by {self.actual.told_by}", self.actual.replicas)
        return found | {FLAT: ("the largest level round the clock", flat)}

    def _gpu_hours(self, function: StepFunction[int]) -> float:
        return self.period.replica_hours(function) * counted_gpus(self.plan)

    def _line(self, name: str, what: str, hours: float, modelled: float | None) -> Line:
        measured = self._measured() if name == ACTUAL else None
        return Line(
            name=name,
            what=what,
            gpu_hours=hours,
            modelled=modelled,
            measured=measured,
            meets=_meets(objective_share(self.plan), modelled, measured),
        )

    # ---- attainment ----

    @property
    def _has_requests(self) -> bool:
        return self.served is not None and any(self.served.requests)

    @property
    def _capacity(self) -> float:
        """Of one replica, in a pool of the largest need."""
        most = max(requirement.need for requirement in self.course.required.values)
        return float(capacity_per_replica(self.plan.capacity, max(1, most)))

    @property
    def _wait(self) -> timedelta:
        """How long a good request may wait: the limit of its time to first token, else the fleet's own."""
        ttft = self.plan.workload.objectives.ttft
        return DEFAULT_WAIT if ttft is None else ttft.limit

    def _modelled(
        self, functions: Mapping[str, tuple[str, StepFunction[int]]]
    ) -> tuple[dict[str, float | None], dict[str, Outcome]]:
        """Attainment by line, and what reactive autoscalers would have done; nothing where no requests are known."""
        if self.served is None or not self._has_requests:
            return {}, {}
        from servingplan.reporting.bill_model import Fleet, replayed  # noqa: PLC0415  loads numpy

        fleet = Fleet(
            capacity=self._capacity,
            lead=self.course.lead,
            wait=self._wait,
            reserve=self.plan.reserve.replicas,
            most=self.plan.bounds.maximum,
        )
        found = replayed(self.served, self.period, [function for _, function in functions.values()], fleet)
        shares = {name: outcome.attainment for name, outcome in zip(functions, found.held, strict=True)}
        return shares, {HPA: found.in_flight, REACTIVE: found.by_rate}

    def _measured(self) -> Measured | None:
        """Of the hours that count; None where the engines' histograms tell nothing."""
        if self.served is None:
            return None
        sums = {name: _sum(hours, self.period) for name, hours in self.served.within.items()}
        counts = [count for _, count in sums.values() if count]
        if not counts:
            return None
        return Measured(by_objective={name: kept for name, (kept, _) in sums.items()}, requests=max(counts))


DEFAULT_WAIT = timedelta(seconds=10)
"""Where no time to first token is stated: that of the fluid fleet's own rules."""


def _sum(hours: Sequence[Within | None], period: Period) -> tuple[Kept, float]:
    """What was kept of one limit over the hours that count; anything is possible where nothing was counted."""
    known = [each for each, why in zip(hours, period.why_not, strict=True) if each is not None and why is None]
    count = sum(each.count for each in known)
    if not count:
        return Kept(at_least=0.0, at_most=1.0), 0.0
    at_least, at_most = (
        sum(figures) / count for figures in zip(*((k.at_least, k.at_most) for k in known), strict=True)
    )
    return Kept(at_least=at_least, at_most=at_most), count


def _meets(share: float | None, modelled: float | None, measured: Measured | None) -> Meets | None:
    if share is None:
        return None
    if measured is not None:
        if measured.at_least >= share - _SMALLEST:
            return Meets.YES
        return Meets.NO if measured.at_most < share - _SMALLEST else Meets.UNCLEAR
    if modelled is None:
        return None
    return Meets.YES if modelled >= share - _SMALLEST else Meets.NO
