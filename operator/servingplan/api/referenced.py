"""What evidence kinds resolve alike: engine and objectives of a ServingPlan, whatever else it says, files, the runner.

Place in the flow: part of ``resolve_benchmark`` and ``resolve_evaluation``. In: a ServingPlan as plain JSON, wire
models. Out: values, or `InputError` with the problems of just that part: a plan whose capacity is still to be measured
does not resolve, and is measured all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from servingplan.api import target
from servingplan.api.engine import EngineSpec
from servingplan.api.evidence import FileSpec, PlanRefSpec, RunnerSpec
from servingplan.api.objectives import ObjectivesSpec, objectives
from servingplan.api.validation import as_kept, form_problems
from servingplan.errors import InputError, Problem
from servingplan.planning.plan import Objectives
from servingplan.planning.runner import ClaimFile, ConfigMapFile, DataFile, Runner
from servingplan.planning.target import Engine

T = TypeVar("T")

PlanSource = Mapping[str, Mapping[str, Any] | None]
"""ServingPlans of the namespace as plain JSON, by name; None, or no entry, where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerDefaults:
    """What the installation states for all runners. image: None where it states none."""

    image: str | None = None


def named_plan(reference: PlanRefSpec, path: str, plans: PlanSource) -> Mapping[str, Any]:
    """The plan's document. Raises InputError where there is none."""
    found = plans.get(reference.name)
    if found is None:
        message = f"ServingPlan {reference.name!r} does not exist in this namespace: create it, or correct the name"
        raise InputError(Problem(path=f"{path}.name", reason="PlanNotFound", message=message))
    return found


def engine_of(reference: PlanRefSpec, path: str, plans: PlanSource) -> Engine:
    """The plan's engine. Raises InputError where it has none, or one with problems."""
    kept = as_kept(named_plan(reference, path, plans))
    stated = kept.get("spec", {}).get("engine")
    if stated is None:
        message = (
            f"ServingPlan {reference.name!r} names a workload with targetRef, so there is no engine that could run "
            "beside it: measure what serves, with service"
        )
        raise InputError(Problem(path=f"{path}.name", reason="NoEngine", message=message))
    _refuse(_problems_within(kept, "spec.engine"), reference, path)
    try:
        return target.engine(EngineSpec.model_validate_json(json.dumps(stated)), "spec.engine")
    except InputError as error:
        _refuse(error.problems, reference, path)
        raise


def objectives_of(reference: PlanRefSpec, path: str, plans: PlanSource) -> Objectives:
    """The plan's objectives, perhaps none. Raises InputError where they have problems."""
    kept = as_kept(named_plan(reference, path, plans))
    where = "spec.workload.objectives"
    _refuse(_problems_within(kept, where), reference, path)
    stated = (kept.get("spec", {}).get("workload") or {}).get("objectives")
    return objectives(None if stated is None else ObjectivesSpec.model_validate_json(json.dumps(stated)))


def referenced_plans(document: Mapping[str, Any]) -> frozenset[str]:
    """Names of the ServingPlans that evidence refers to, of malformed documents too."""
    spec = document.get("spec")
    references = [spec.get(field) for field in ("planRef", "quietHoursOf")] if isinstance(spec, Mapping) else []
    return frozenset(
        reference["name"]
        for reference in references
        if isinstance(reference, Mapping) and isinstance(reference.get("name"), str)
    )


def or_problems(make: Callable[[], T], found: list[Problem]) -> T | None:
    """The value, or None and its problems in `found`: one part's mistake does not hide another's."""
    try:
        return make()
    except InputError as error:
        found.extend(error.problems)
        return None


def data_file(wire: FileSpec) -> DataFile:
    """Where the file is."""
    if wire.config_map is not None:
        return ConfigMapFile(name=wire.config_map.name, key=wire.config_map.key)
    if wire.persistent_volume_claim is not None:
        claim = wire.persistent_volume_claim
        return ClaimFile(claim_name=claim.claim_name, path=claim.path)
    raise ValueError("a file that is nowhere: the document was not validated")


def runner(wire: RunnerSpec, path: str, defaults: RunnerDefaults) -> Runner:
    """The runner. Raises InputError where nobody names an image, and for resources that are none."""
    image = wire.image or defaults.image
    problems = [*target.resource_problems(wire.resources, f"{path}.resources")]
    if not image:
        message = (
            "no image is known that has vLLM and servingplan[bench,evaluate]: name one here, or have whoever installed "
            "the operator set the chart's value evidence.runnerImage; its image is built with `make runner-image`"
        )
        problems.append(Problem(path=f"{path}.image", reason="NoRunnerImage", message=message))
    if problems or not image:
        raise InputError(*problems)
    claim = None if wire.volume is None else wire.volume.persistent_volume_claim.claim_name
    return Runner(image=image, resources=wire.resources, claim=claim)


def _problems_within(kept: Mapping[str, Any], part: str) -> tuple[Problem, ...]:
    return tuple(
        problem
        for problem in form_problems(kept)
        if problem.path == part or problem.path.startswith((f"{part}.", f"{part}["))
    )


def _refuse(problems: tuple[Problem, ...], reference: PlanRefSpec, path: str) -> None:
    """Problems of the plan as those of the reference to it."""
    if problems:
        raise InputError(
            *(
                Problem(
                    path=f"{path}.name",
                    reason=problem.reason,
                    message=f"ServingPlan {reference.name!r} cannot be used: {problem.path}: {problem.message}",
                )
                for problem in problems
            )
        )
