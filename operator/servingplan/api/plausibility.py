"""What is valid but probably not meant: warnings of a plan, which keep nothing from acting.

Place in the flow: last step of ``resolve``. In: a `Plan`. Out: warnings, in the order of the plan's fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from servingplan.api.wire import MAX_REPLICAS
from servingplan.errors import Problem
from servingplan.planning.evidence import in_flight_limit
from servingplan.planning.plan import Auto, CronWindow, Level, Plan, Rate, Total, Window
from servingplan.planning.sizing import need
from servingplan.planning.units import format_rate

SLICE = "/mig-"
"""What the names of NVIDIA's GPU slices have in common (Multi-Instance GPU)."""


def implausible(plan: Plan) -> tuple[Problem, ...]:
    """The warnings of a plan."""
    checks = (_without_reserve, _over_slices, _below_base, _beyond_maximum, _not_measured)
    return tuple(problem for check in checks for problem in check(plan))


def _without_reserve(plan: Plan) -> Iterator[Problem]:
    if plan.reserve.replicas == 0:
        yield Problem(
            path="spec.reserve.replicas",
            reason="NoReserve",
            message="is 0: a lost node or a rolling update leaves fewer replicas than the demand needs; state at "
            "least 1, or accept that",
        )


def _over_slices(plan: Plan) -> Iterator[Problem]:
    if plan.engine is None or plan.engine.parallelism.gpus == 1:
        return
    resource, gpus = plan.engine.accelerator_resource, plan.engine.parallelism.gpus
    if SLICE in resource:
        yield Problem(
            path="spec.engine.parallelism",
            reason="OverSlices",
            message=f"spreads a replica over {gpus} of {resource}: slices of a GPU cannot reach "
            "each other's memory, and CUDA shows a process one of them; take one larger slice, or whole GPUs",
        )


def _windows(plan: Plan) -> tuple[Window | CronWindow, ...]:
    return (*plan.windows, *plan.cron_windows)


def _below_base(plan: Plan) -> Iterator[Problem]:
    base = plan.base.requests_per_second
    for window in _windows(plan):
        if isinstance(window.level, Rate) and window.level.requests_per_second < base:
            rate = format_rate(window.level.requests_per_second)
            yield Problem(
                path="spec.schedule.windows",
                reason="WindowBelowBase",
                message=f"window {window.name} has {rate} requests/s, below base's {format_rate(base)}: inside it the "
                "window counts, not base; raise it if that is not meant",
            )


def _levels(plan: Plan) -> Iterator[tuple[str, str, Level]]:
    yield "spec.schedule.base", "base", plan.base
    for window in _windows(plan):
        yield "spec.schedule.windows", f"window {window.name}", window.level
    if plan.profile is not None:
        largest = Rate(requests_per_second=max(plan.profile.rates))
        yield "spec.schedule.profile", "the profile's largest entry", largest
    for calendar in plan.calendars:
        if isinstance(calendar.treat_as, Rate):
            yield "spec.schedule.calendars", f"calendar {calendar.name}", calendar.treat_as
    for override in plan.overrides:
        yield "spec.schedule.overrides", f"override {override.name}", override.level


def _beyond_maximum(plan: Plan) -> Iterator[Problem]:
    maximum = plan.bounds.maximum
    for path, what, level in _levels(plan):
        wanted = _wanted(plan, level)
        if wanted > maximum:
            yield Problem(
                path=path,
                reason="BeyondMaximum",
                message=f"{what} needs {_counted(wanted)} replicas, reserve included, but "
                f"bounds.maxReplicas is {maximum}: raise the bound, or expect that it is not met",
            )


def _not_measured(plan: Plan) -> Iterator[Problem]:
    if plan.feedback is None or plan.feedback.raise_when.in_flight_per_replica is not Auto.AUTO:
        return
    if in_flight_limit(plan, plan.feedback.raise_when) is None:
        source = (
            "no benchmark measures the capacity"
            if plan.measured is None
            else (f"CapacityBenchmark {plan.measured.benchmark} does not say what was in flight at capacity")
        )
        yield Problem(
            path="spec.feedback.raiseWhen.inFlightPerReplica",
            reason="NotMeasured",
            message=f"is auto, but {source}: the signal is off; state a number, or capacity.benchmarkRef",
        )


def _counted(replicas: int) -> str:
    """A tiny capacity would make a number of hundreds of digits."""
    return str(replicas) if replicas <= MAX_REPLICAS else f"more than {MAX_REPLICAS}"


def _wanted(plan: Plan, level: Level) -> int:
    if isinstance(level, Total):
        return level.replicas
    return need(level.requests_per_second, plan.capacity, plan.bounds.maximum).unbounded + plan.reserve.replicas
