"""GPU-hours: what a schedule holds, and what its peak round the clock would hold.

In: required replicas, the peak within one lead, asked-for replicas, all as step functions. Out: `GpuHours`, with
lead and trail apart. Also the nominal month, a figure of the plan alone that never changes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from servingplan.planning.decision import lead_in_effect
from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.observation import History
from servingplan.planning.plan import Plan
from servingplan.planning.series import StepFunction, combine, step_function
from servingplan.planning.timeline import Asked, Fold, Peak, as_function, converged_start, fold, peaks

V = TypeVar("V", Requirement, Peak)

MONTH_HOURS = 730
"""A twelfth of 8,760 hours: what clouds bill as a month."""

MONTH_WEEKDAYS = 22
"""Mondays to Fridays of the nominal month, 261/12 rounded up; the other 202 of its 730 hours are weekend."""

_REFERENCE = datetime(2029, 1, 1, tzinfo=UTC)
"""A Monday. 2029 is a common year that starts on one, so a week from here and a year from here both start alike."""

_REFERENCE_WEEK = timedelta(days=7)
_REFERENCE_YEAR = timedelta(days=365)
_WEEKEND = (5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHours:
    """GPU-hours of a range of time.

    required: what must be ready. leading: asked for before it is required. trailing: still asked for when no
    longer due. flat_peak: the largest requirement, all the time.
    """

    required: float
    leading: float
    trailing: float
    flat_peak: float
    gpus_per_replica: int

    @property
    def planned(self) -> float:
        """What the plan holds: required, lead and trail."""
        return self.required + self.leading + self.trailing

    @property
    def saved_percent(self) -> float:
        """What the plan saves against the flat peak, in per cent of it; 0 where the peak is 0."""
        return 100 * (1 - self.planned / self.flat_peak) if self.flat_peak else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A schedule over [start, end): required, the peak within one lead, and what is asked for.

    asked: the first entry is what is asked for at `start`.
    """

    required: StepFunction[Requirement]
    peak: StepFunction[Peak]
    asked: Sequence[Asked]
    lead: timedelta

    @property
    def end(self) -> datetime:
        """Where the course ends."""
        return self.required.end

    @property
    def start(self) -> datetime:
        """Where the course begins."""
        return self.required.start

    @property
    def required_function(self) -> StepFunction[int]:
        """The required replicas alone."""
        return _counted(self.required, lambda requirement: requirement.replicas)

    @property
    def peak_function(self) -> StepFunction[int]:
        """The replicas of the peak alone."""
        return _counted(self.peak, lambda peak: peak.replicas)

    @property
    def asked_function(self) -> StepFunction[int]:
        """The asked-for replicas as a step function."""
        return as_function(self.asked, self.end)


def course(plan: Plan, start: datetime, end: datetime) -> Course:
    """What the schedule requires and asks for on [start, end), without feedback.

    The fold begins so far before `start` that it does not matter where it begins.
    """
    lead = lead_in_effect(plan, History(), start)
    before = converged_start(start, plan.scale_down, plan.bounds.maximum)
    required = requirements(plan, before, end + lead)
    peak = peaks(required, lead, before, end)
    changes = fold(Fold(replicas=peak.at(before).replicas), peak, required, plan.scale_down)
    return Course(
        required=required.since(start).until(end),
        peak=peak.since(start),
        asked=_since(changes, peak, start),
        lead=lead,
    )


def _since(changes: Sequence[Asked], peak: StepFunction[Peak], start: datetime) -> tuple[Asked, ...]:
    """The changes from `start` on, with what is asked for there as the first."""
    held = [change for change in changes if change.time <= start][-1]
    later = tuple(change for change in changes if change.time > start)
    if held.time < start and held.replicas == peak.at(start).replicas == held.level:
        now = peak.at(start)
        because = f"ready before {now.source}" if now.since > start else str(now.source)
        held = replace(held, because=because)
    return (replace(held, time=start), *later)


def gpu_hours(found: Course, gpus_per_replica: int) -> GpuHours:
    """The GPU-hours of a course."""
    required = found.required_function
    sums = [function.hours(_itself) for function in (required, found.peak_function, found.asked_function)]
    flat = max(required.values) * ((found.end - found.start) / timedelta(hours=1))
    return _in_gpus(sums, flat, gpus_per_replica)


def nominal_month(plan: Plan) -> GpuHours:
    """The plan's GPU-hours in a nominal month: a figure of the plan, not of any date.

    The month has 730 hours: 22 days from Monday to Friday and 202 hours of weekend. What a weekday and a weekend
    hour hold on average comes from an ordinary week; where there are cron windows, from an ordinary year, as they
    may come once a month or once a year. Ordinary: no calendar dates, no overrides, no clock changes.
    """
    ordinary = replace(plan, zone=ZoneInfo("UTC"), calendars=(), overrides=())
    length = _REFERENCE_YEAR if plan.cron_windows else _REFERENCE_WEEK
    found = course(ordinary, _REFERENCE, _REFERENCE + length)
    sums = [_in_month(f) for f in (found.required_function, found.peak_function, found.asked_function)]
    flat = float(max(found.required_function.values) * MONTH_HOURS)
    return _in_gpus(sums, flat, counted_gpus(plan))


def counted_gpus(plan: Plan) -> int:
    """GPUs per replica; 1 where the plan does not say, as only a target's pods can tell."""
    return plan.gpus_per_replica or 1


def _in_gpus(replica_hours: Sequence[float], flat: float, gpus: int) -> GpuHours:
    """From replica-hours (required, peak, asked) to GPU-hours."""
    required, peak, asked = (hours * gpus for hours in replica_hours)
    return GpuHours(
        required=required,
        leading=peak - required,
        trailing=asked - peak,
        flat_peak=flat * gpus,
        gpus_per_replica=gpus,
    )


def _in_month(function: StepFunction[int]) -> float:
    """Replica-hours of a nominal month, from a function over reference weeks."""
    days = (function.end - function.start) // timedelta(days=1)
    dates = [function.start + timedelta(days=i) for i in range(days)]
    is_weekday = step_function([(day, int(day.weekday() not in _WEEKEND)) for day in dates], end=function.end)
    weekday_hours = is_weekday.hours(_itself)
    weekend_hours = days * 24 - weekday_hours
    on_weekdays = combine(function, is_weekday, lambda replicas, weekday: replicas * weekday).hours(_itself)
    on_weekends = function.hours(_itself) - on_weekdays
    month_weekday_hours = MONTH_WEEKDAYS * 24
    return on_weekdays / weekday_hours * month_weekday_hours + on_weekends / weekend_hours * (
        MONTH_HOURS - month_weekday_hours
    )


def _itself(replicas: int) -> int:
    return replicas


def _counted(function: StepFunction[V], count: Callable[[V], int]) -> StepFunction[int]:
    points = zip(function.times, map(count, function.values), strict=True)
    return step_function(tuple(points), end=function.end)
