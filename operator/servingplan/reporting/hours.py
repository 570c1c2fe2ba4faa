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

from servingplan.planning.calendar import cron_fires_on
from servingplan.planning.decision import lead_in_effect
from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.observation import History
from servingplan.planning.plan import CronWindow, Plan, ScaleDown
from servingplan.planning.series import StepFunction, combine, step_function
from servingplan.planning.timeline import Asked, Fold, Peak, as_function, converged_start, fold, peaks

V = TypeVar("V", Requirement, Peak)

MONTH_HOURS = 730
"""A twelfth of 8,760 hours: what clouds bill as a month."""

MONTH_WEEKDAYS = 22
"""Mondays to Fridays of the nominal month, 261/12 rounded up; the other 202 of its 730 hours are weekend."""

_REFERENCE = datetime(2029, 1, 1, tzinfo=UTC)
"""The start of the ordinary week and of the ordinary year: a common year that begins on a Monday."""

_DAY = timedelta(days=1)
_YEAR_DAYS, _YEAR_WEEKDAYS = 365, 261
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
    def functions(self) -> tuple[StepFunction[int], StepFunction[int], StepFunction[int]]:
        """Replicas required, at the peak, and asked for."""
        return self.required_function, self.peak_function, self.asked_function

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
    sums = [function.hours(_itself) for function in found.functions]
    flat = max(found.required_function.values) * ((found.end - found.start) / timedelta(hours=1))
    return _in_gpus(sums, flat, gpus_per_replica)


def nominal_month(plan: Plan) -> GpuHours:
    """The plan's GPU-hours in a nominal month: a figure of the plan, not of any date.

    The month has 730 hours: 22 days from Monday to Friday and 202 hours of weekend. What a weekday and a weekend
    hour hold on average comes from an ordinary week; cron windows that name days of the month or months add what
    they add in an ordinary year. Ordinary: no calendar dates, no overrides, no clock changes.
    """
    ordinary = replace(plan, zone=ZoneInfo("UTC"), calendars=(), overrides=())
    weekly = replace(ordinary, cron_windows=tuple(w for w in plan.cron_windows if _is_weekly(w)))
    week = course(weekly, _REFERENCE, _REFERENCE + timedelta(days=7))
    sums = [_in_month(function, 5, 2) for function in week.functions]
    highest = max(week.required_function.values)
    for start, end in _dated_spans(ordinary):
        usual, dated = course(weekly, start, end), course(ordinary, start, end)
        highest = max(highest, *dated.required_function.values)
        for k, (before, after) in enumerate(zip(usual.functions, dated.functions, strict=True)):
            more = combine(after, before, lambda new, old: new - old)
            sums[k] += _in_month(more, _YEAR_WEEKDAYS, _YEAR_DAYS - _YEAR_WEEKDAYS)
    return _in_gpus(sums, float(highest * MONTH_HOURS), counted_gpus(plan))


def _is_weekly(window: CronWindow) -> bool:
    """Whether every week is the same: ``minute hour * * weekday``."""
    return window.cron.split()[2:4] == ["*", "*"]


def _dated_spans(plan: Plan) -> list[tuple[datetime, datetime]]:
    """The whole days of the reference year around what is not the same every week, apart from each other."""
    around = lead_in_effect(plan, History(), _REFERENCE) + longest_fall(plan.scale_down, plan.bounds.maximum) + _DAY
    spans: list[tuple[datetime, datetime]] = []
    dated = [window for window in plan.cron_windows if not _is_weekly(window)]
    for day in (_REFERENCE + i * _DAY for i in range(_YEAR_DAYS)):
        durations = [w.duration for w in dated if cron_fires_on(w.cron, w.at, day.date())]
        if not durations:
            continue
        start = day - -(-around // _DAY) * _DAY
        end = day + -(-(around + _DAY + max(durations)) // _DAY) * _DAY
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def longest_fall(rules: ScaleDown, maximum: int) -> timedelta:
    """The time after which a fall is over, whatever it began with."""
    return _REFERENCE - converged_start(_REFERENCE, rules, maximum)


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


def _in_month(function: StepFunction[int], weekdays: int, weekend_days: int) -> float:
    """Replica-hours of a nominal month, from a function over whole days out of so many weekdays and weekend days."""
    days = -(-(function.end - function.start) // _DAY)
    dates = [function.start + i * _DAY for i in range(days)]
    is_weekday = step_function([(day, int(day.weekday() not in _WEEKEND)) for day in dates], end=function.end)
    on_weekdays = combine(function, is_weekday, lambda replicas, weekday: replicas * weekday).hours(_itself)
    on_weekends = function.hours(_itself) - on_weekdays
    month_weekday_hours = MONTH_WEEKDAYS * 24
    month_weekend_hours = MONTH_HOURS - month_weekday_hours
    return on_weekdays / (weekdays * 24) * month_weekday_hours + on_weekends / (weekend_days * 24) * month_weekend_hours


def _itself(replicas: int) -> int:
    return replicas


def _counted(function: StepFunction[V], count: Callable[[V], int]) -> StepFunction[int]:
    points = zip(function.times, map(count, function.values), strict=True)
    return step_function(tuple(points), end=function.end)
