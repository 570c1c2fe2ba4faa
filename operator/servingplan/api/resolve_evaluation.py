"""From a ModelEvaluation on the wire to values, or to everything that is wrong with it at once.

Place in the flow: in, a ModelEvaluation as plain JSON and the ServingPlan it refers to; out, a
`planning.comparison.Comparison`. As ``resolve_benchmark`` does it. Has no clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servingplan.api.evaluation import ComparedSpec, ModelEvaluationSpec
from servingplan.api.evidence import PlanRefSpec
from servingplan.api.kinds import MODEL_EVALUATION
from servingplan.api.referenced import PlanSource, RunnerDefaults, data_file, engine_of, named_plan, or_problems, runner
from servingplan.api.resolve import DEFAULT_NAMESPACE
from servingplan.api.target import secret_key
from servingplan.api.validation import as_kept, form_problems
from servingplan.errors import InputError, Problem
from servingplan.planning.comparison import Asker, Comparison, Server
from servingplan.planning.runner import DataFile
from servingplan.planning.target import Engine
from servingplan.planning.units import exact, parse_duration


def resolve_evaluation(document: Mapping[str, Any], plans: PlanSource, defaults: RunnerDefaults) -> Comparison:
    """The comparison. Raises InputError with every problem of it, and of what it takes of the plan."""
    kept = as_kept(document, MODEL_EVALUATION)
    if problems := form_problems(kept, MODEL_EVALUATION):
        raise InputError(*problems)
    spec = ModelEvaluationSpec.model_validate_json(json.dumps(kept["spec"]))
    found: list[Problem] = []
    compared = or_problems(lambda: _compared(spec, plans), found)
    works = or_problems(lambda: runner(spec.runner, "spec.runner", defaults), found)
    if found or compared is None or works is None:
        raise InputError(*dict.fromkeys(found))
    baseline, variant = compared
    return Comparison(
        namespace=kept["metadata"].get("namespace") or DEFAULT_NAMESPACE,
        name=kept["metadata"]["name"],
        baseline=baseline,
        baseline_digest=_running(spec.plan_ref, plans),
        variant=variant,
        questions=_questions(spec),
        minimum_score=exact(spec.rule.minimum_score),
        margin=exact(spec.rule.margin),
        chat=spec.chat,
        concurrency=spec.concurrency,
        longest=parse_duration(spec.longest),
        suspend=spec.suspend,
        runner=works,
    )


def _compared(spec: ModelEvaluationSpec, plans: PlanSource) -> tuple[Server, Server | Engine]:
    if spec.plan_ref is not None:
        engine = engine_of(spec.plan_ref, "spec.planRef", plans)
        # The plan's Service has the plan's name. What serves may have another name for its model: it has one alone.
        served = Server(name=spec.plan_ref.name, port=engine.port, model=None, api_key=engine.api_key)
        return served, engine
    if spec.baseline is not None and spec.variant is not None:
        return _server(spec.baseline), _server(spec.variant)
    raise ValueError("neither planRef nor two services: the document was not validated")


def _server(wire: ComparedSpec) -> Server:
    service = wire.service
    return Server(
        name=service.name,
        port=service.port,
        model=service.model,
        api_key=secret_key(service.api_key_secret_ref),
    )


def _running(reference: PlanRefSpec | None, plans: PlanSource) -> str:
    """The digest of the engine that a plan's status says runs; empty where it does not say."""
    if reference is None:
        return ""
    status = named_plan(reference, "spec.planRef", plans).get("status") or {}
    running = (status.get("variant") or {}).get("running")
    return running if isinstance(running, str) else ""


def _questions(spec: ModelEvaluationSpec) -> DataFile | Asker:
    if spec.set is not None:
        return data_file(spec.set)
    if spec.container is not None:
        return Asker(image=spec.container.image, args=tuple(spec.container.args))
    raise ValueError("neither set nor container: the document was not validated")
