"""From the wire to a `Plan`, or to everything that is wrong with it at once.

Place in the flow: in, a ServingPlan as plain JSON and what it refers to; out, validated values, after which
nothing is optional that has a default. The operator and the command line both come through here. Has no clock.

Two passes over the same converters: the first checks every part that is sound in form and collects all problems, the
second, reached only without problems, builds the plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter

from servingplan.api import calendars, capacity, profiles, target, windows
from servingplan.api.engine import EngineSpec, TargetRefSpec
from servingplan.api.feedback import FeedbackSpec, ScrapeSpec
from servingplan.api.objectives import objective, objectives
from servingplan.api.plausibility import implausible
from servingplan.api.references import References, found_evaluation
from servingplan.api.schedule import CalendarSpec, OverrideSpec, ProfileSpec, WindowSpec
from servingplan.api.schema import plan_schema, walk
from servingplan.api.v1alpha1 import (
    CapacitySpec,
    LeadTimeSpec,
    QuantilesSpec,
    ScaleDownSpec,
    ServingPlanSpec,
    WorkloadSpec,
)
from servingplan.api.validation import as_kept, form_problems
from servingplan.errors import InputError, InvalidPlan, Problem
from servingplan.planning import plan as values
from servingplan.planning.acceptance import Gate
from servingplan.planning.target import Engine, Target
from servingplan.planning.units import exact, parse_duration, parse_percent

LEAD_CAP = 3
"""Default of leadTime.max, in declared leads: a lead beyond it is a fault to look at, not one to plan for."""

DEFAULT_NAMESPACE = "default"
"""Where kubectl puts an object that names no namespace."""


def resolve(document: Mapping[str, Any], references: References) -> values.Plan:
    """The plan. Raises InvalidPlan with every problem, in the order of their paths.

    document: a ServingPlan as plain JSON, with or without the API server's defaults. references: what decides of the
    objects in its namespace that `referenced` names.
    """
    kept = as_kept(document)
    problems = [*form_problems(kept)]
    problems += _part_problems(kept, references, problems)
    if problems:
        raise InvalidPlan(*sorted(dict.fromkeys(problems), key=_by_path))
    spec = ServingPlanSpec.model_validate_json(json.dumps(kept["spec"]))
    plan = _plan(kept["metadata"], spec, references)
    return replace(plan, warnings=(*plan.warnings, *implausible(plan)))


def _by_path(problem: Problem) -> tuple[tuple[str | int, ...], ...]:
    """Entry 10 after entry 9."""
    parts = re.findall(r"\d+|[^\d.\[\]]+", problem.path)
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in parts)


# ---- first pass: every problem ----------------------------------------------------------------------------

Check = Callable[[Any, str, References], object]


def _alone(convert: Callable[[Any, str], object]) -> Check:
    return lambda wire, path, _: convert(wire, path)


PARTS: Mapping[str, tuple[TypeAdapter[Any], Check]] = {
    "spec.engine": (TypeAdapter(EngineSpec), _alone(target.engine)),
    "spec.engine.extraArgs": (TypeAdapter(list[str]), _alone(target.extra_args)),
    "spec.engine.podTemplate": (TypeAdapter(dict[str, Any]), _alone(target.pod_template)),
    "spec.targetRef": (TypeAdapter(TargetRefSpec), _alone(target.target_ref)),
    "spec.capacity": (TypeAdapter(CapacitySpec), capacity.capacity),
    "spec.schedule.timeZone": (TypeAdapter(str), _alone(windows.zone)),
    "spec.schedule.windows[]": (TypeAdapter(WindowSpec), _alone(windows.window)),
    "spec.schedule.overrides[]": (TypeAdapter(OverrideSpec), _alone(windows.override)),
    "spec.schedule.profile": (TypeAdapter(ProfileSpec), profiles.profile),
    "spec.schedule.calendars[]": (TypeAdapter(CalendarSpec), calendars.calendar),
}
"""The parts whose conversion can fail although their form is valid, by path. What is judged alone stands alone, so
that a mistake beside it does not hide it."""


def _part_problems(kept: Mapping[str, Any], references: References, known: list[Problem]) -> Iterator[Problem]:
    unsound = [problem.path for problem in known]
    for path, value, _ in walk(kept, plan_schema()):
        part = PARTS.get(re.sub(r"\[\d+\]", "[]", path))
        if part is None or any(_within(problem, path) for problem in unsound):
            continue
        adapter, check = part
        try:
            check(adapter.validate_json(json.dumps(value)), path, references)
        except InputError as error:
            yield from error.problems


def _within(path: str, part: str) -> bool:
    return path == part or path.startswith((f"{part}.", f"{part}["))


# ---- second pass: the plan --------------------------------------------------------------------------------


def _plan(metadata: Mapping[str, Any], spec: ServingPlanSpec, references: References) -> values.Plan:
    schedule = spec.schedule
    stated_windows = [windows.window(wire, "spec.schedule.windows") for wire in schedule.windows]
    calendars_and_warnings = [
        calendars.calendar(wire, f"spec.schedule.calendars[{index}]", references)
        for index, wire in enumerate(schedule.calendars)
    ]
    runs = _target(spec)
    serves, measured = capacity.capacity(spec.capacity, "spec.capacity", references)
    return values.Plan(
        namespace=metadata.get("namespace") or DEFAULT_NAMESPACE,
        name=metadata["name"],
        suspend=spec.suspend,
        target=runs,
        gpus_per_replica=runs.parallelism.gpus if isinstance(runs, Engine) else spec.gpus_per_replica,
        workload=_workload(spec.workload),
        capacity=serves,
        measured=measured,
        reserve=_reserve(spec),
        zone=windows.zone(schedule.time_zone, "spec.schedule.timeZone"),
        base=values.Rate(requests_per_second=exact(schedule.base.requests_per_second)),
        windows=tuple(window for window in stated_windows if isinstance(window, values.Window)),
        cron_windows=tuple(window for window in stated_windows if isinstance(window, values.CronWindow)),
        profile=None
        if schedule.profile is None
        else profiles.profile(schedule.profile, "spec.schedule.profile", references),
        calendars=tuple(calendar for calendar, _ in calendars_and_warnings),
        overrides=tuple(windows.override(wire, "spec.schedule.overrides") for wire in schedule.overrides),
        lead=_lead(spec.lead_time),
        scale_down=_scale_down(spec.scale_down),
        bounds=values.Bounds(minimum=spec.bounds.min_replicas, maximum=spec.bounds.max_replicas),
        feedback=None if spec.feedback is None else _feedback(spec.feedback),
        acceptance=None if spec.acceptance is None else _gate(spec.acceptance.evaluation_ref.name, references),
        warnings=tuple(warning for _, warnings in calendars_and_warnings for warning in warnings),
    )


def _target(spec: ServingPlanSpec) -> Target:
    if spec.engine is not None:
        return target.engine(spec.engine, "spec.engine")
    if spec.target_ref is not None:
        return target.target_ref(spec.target_ref, "spec.targetRef")
    raise ValueError("neither engine nor targetRef: the document was not validated")


def _reserve(spec: ServingPlanSpec) -> values.Reserve:
    busy, quiet = spec.reserve.replicas, spec.reserve.quiet
    return values.Reserve(replicas=busy, quiet=busy if quiet is None else quiet)


def _lead(wire: LeadTimeSpec) -> values.Lead:
    declared = parse_duration(wire.declared)
    maximum = LEAD_CAP * declared if wire.max is None else parse_duration(wire.max)
    return values.Lead(declared=declared, margin=parse_percent(wire.margin), maximum=maximum, learn=wire.learn)


def _scale_down(wire: ScaleDownSpec) -> values.ScaleDown:
    every, stabilization = parse_duration(wire.every), parse_duration(wire.stabilization)
    return values.ScaleDown(step=wire.step, every=every, stabilization=stabilization)


def _feedback(wire: FeedbackSpec) -> values.Feedback:
    """Zero and false are off."""
    when, source = wire.raise_when, wire.prometheus
    scrape = wire.scrape or ScrapeSpec()
    waiting = _auto_or(when.waiting_per_replica)
    return values.Feedback(
        source=values.ScrapeSource(port=scrape.port, path=scrape.path)
        if source is None
        else values.PrometheusSource(name=source.source),
        raise_when=values.RaiseWhen(
            arrivals=when.arrivals,
            in_flight_per_replica=_auto_or(when.in_flight_per_replica),
            tpot_breach=when.tpot_breach,
            ttft_breach=when.ttft_breach,
            waiting_per_replica=waiting or None,
            queue_time=objective(when.queue_time),
            preemption_share=exact(when.preemption_share) or None,
            rejections=when.rejections,
        ),
        max_extra=wire.max_extra,
        stale_after=parse_duration(wire.stale_after),
        foresight=None if wire.foresight is None else values.Foresight(miss_price=exact(wire.foresight.miss_price)),
    )


def _gate(evaluation: str, references: References) -> Gate:
    """Without an evaluation the plan acts all the same: only a variant waits for one."""
    return Gate(evaluation=evaluation, found=found_evaluation(references, evaluation))


def _auto_or(stated: Any) -> Decimal | values.Auto | None:
    if stated is None:
        return None
    return values.Auto.AUTO if stated == "auto" else exact(stated)


def _workload(wire: WorkloadSpec | None) -> values.Workload:
    if wire is None:
        return values.Workload()
    tokens = wire.tokens
    return values.Workload(
        tokens=values.TokenLengths(
            input=_quantiles(None if tokens is None else tokens.input),
            output=_quantiles(None if tokens is None else tokens.output),
        ),
        objectives=objectives(wire.objectives),
    )


def _quantiles(wire: QuantilesSpec | None) -> tuple[tuple[str, int], ...]:
    return () if wire is None else tuple(sorted(wire.model_dump(exclude_none=True).items()))
