"""From a CapacityBenchmark on the wire to values, or to everything that is wrong with it at once.

Place in the flow: in, a CapacityBenchmark as plain JSON and the ServingPlans it refers to; out, a
`planning.benchmark.Benchmark`. As ``resolve`` does it for the plan. Has no clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servingplan.api.benchmark import CapacityBenchmarkSpec
from servingplan.api.evidence import ServiceSpec
from servingplan.api.kinds import CAPACITY_BENCHMARK
from servingplan.api.objectives import objectives
from servingplan.api.referenced import (
    PlanSource,
    RunnerDefaults,
    data_file,
    engine_of,
    named_plan,
    objectives_of,
    or_problems,
    runner,
)
from servingplan.api.resolve import DEFAULT_NAMESPACE
from servingplan.api.target import secret_key
from servingplan.api.validation import as_kept, form_problems
from servingplan.errors import InputError, Problem
from servingplan.planning.benchmark import Benchmark, Endpoint, TrialPool
from servingplan.planning.plan import Objectives
from servingplan.planning.units import exact, parse_duration


def resolve_benchmark(document: Mapping[str, Any], plans: PlanSource, defaults: RunnerDefaults) -> Benchmark:
    """The benchmark. Raises InputError with every problem of it, and of what it takes of the plans."""
    kept = as_kept(document, CAPACITY_BENCHMARK)
    if problems := form_problems(kept, CAPACITY_BENCHMARK):
        raise InputError(*problems)
    spec = CapacityBenchmarkSpec.model_validate_json(json.dumps(kept["spec"]))
    found: list[Problem] = []
    measured = or_problems(lambda: _measured(spec, plans), found)
    limits = or_problems(lambda: _objectives(spec, plans), found)
    works = or_problems(lambda: runner(spec.runner, "spec.runner", defaults), found)
    quiet = spec.quiet_hours_of
    if quiet is not None:
        or_problems(lambda: named_plan(quiet, "spec.quietHoursOf", plans), found)
    if found or measured is None or limits is None or works is None:
        raise InputError(*dict.fromkeys(found))
    return Benchmark(
        namespace=kept["metadata"].get("namespace") or DEFAULT_NAMESPACE,
        name=kept["metadata"]["name"],
        measured=measured,
        quiet_hours_of=None if quiet is None else quiet.name,
        objectives=limits,
        prompts=data_file(spec.prompts),
        cv=exact(spec.cv),
        prefix_hit_share=exact(spec.prefix_hit_share),
        chat=spec.chat,
        effort=spec.effort,
        start=None if spec.start is None else exact(spec.start),
        longest=None if spec.longest is None else parse_duration(spec.longest),
        suspend=spec.suspend,
        runner=works,
    )


def _measured(spec: CapacityBenchmarkSpec, plans: PlanSource) -> TrialPool | Endpoint:
    if spec.plan_ref is not None:
        engine = engine_of(spec.plan_ref, "spec.planRef", plans)
        return TrialPool(plan=spec.plan_ref.name, engine=engine, sizes=tuple(sorted(spec.pool_sizes)))
    if spec.service is not None:
        return endpoint(spec.service)
    raise ValueError("neither planRef nor service: the document was not validated")


def endpoint(wire: ServiceSpec) -> Endpoint:
    """What serves."""
    return Endpoint(
        name=wire.name,
        port=wire.port,
        replicas=wire.replicas,
        model=wire.model,
        tokenizer=wire.tokenizer,
        api_key=secret_key(wire.api_key_secret_ref),
    )


def _objectives(spec: CapacityBenchmarkSpec, plans: PlanSource) -> Objectives:
    """Those that are stated; else those of the plan that is measured, or whose quiet hours are kept."""
    named, path = (spec.plan_ref, "spec.planRef") if spec.plan_ref else (spec.quiet_hours_of, "spec.quietHoursOf")
    stated = objectives(spec.objectives)
    if spec.objectives is None and named is not None:
        stated = objectives_of(named, path, plans)
    if stated.stated:
        return stated
    message = (
        "a benchmark needs an objective, and neither it nor the plan states one: write for example ttft: {p95: 1500ms}"
    )
    raise InputError(Problem(path="spec.objectives", reason="Required", message=message))
