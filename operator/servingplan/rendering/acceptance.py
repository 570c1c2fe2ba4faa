"""Conditions of what runs: whether it is what ``spec.engine`` states, and why a variant is held or not.

In: a `Situation` with its `Variant`. Out: two conditions, and the digests as status shows them. Digests are whole in
status and short in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from servingplan.errors import Problem
from servingplan.planning.acceptance import Evaluation
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.identity import differences, identity
from servingplan.rendering.metadata import ENGINE_ANNOTATION
from servingplan.rendering.situation import Condition, Situation, Status
from servingplan.rendering.variant import Variant, variant_of

DIFFERENCES_SHOWN = 3

SHOWN_CHARACTERS = len("sha256:") + 12
"""Of a digest, in a message: enough to find it in the status of the plan and of the evaluation."""

_SOMETHING_RUNS = {"metadata": {"annotations": {ENGINE_ANNOTATION: ""}}}
"""A Deployment with an engine that is not the stated one."""

Json = dict[str, Any]
Words = Callable[[Variant], str]


def variant_accepted(s: Situation) -> Condition | None:
    """False while the stated engine is held; Unknown where no evaluation can be read to let it through."""
    if s.variant is None:
        return None
    reason = s.variant.acceptance.reason
    if s.variant.held:
        message = f"{_held(s.variant)}. {WHY_HELD[reason](s.variant)}"
        status = Status.UNKNOWN if reason is Reason.EVALUATION_UNREADABLE else Status.FALSE
    else:
        message = WHY_NOT[reason](s.variant)
        status = Status.FALSE if reason is Reason.RUNNING_VARIANT_FAILED else Status.TRUE
    return Condition(type="VariantAccepted", status=status, reason=reason, message=message)


def engine_up_to_date(s: Situation) -> Condition | None:
    """False where the running template is an older rendering of the same engine, or where the stated one is held.

    In the latter case with the words of `variant_accepted`: it is one thing to know.
    """
    if s.plan is None or s.plan.engine is None or s.observation is None or s.observation.current is None:
        return None
    accepted = variant_accepted(s)
    if s.variant is not None and s.variant.held and accepted is not None:
        return replace(accepted, type="EngineUpToDate", status=Status.FALSE)
    if s.rollout.held:
        status, reason = Status.FALSE, Reason.TEMPLATE_HELD
        message = (
            "this version of the operator renders the engine differently; the running template stays until the "
            "next edit of spec.engine"
        )
    else:
        status, reason = Status.TRUE, Reason.UP_TO_DATE
        message = "the running template is what spec.engine renders to"
    return Condition(type="EngineUpToDate", status=status, reason=reason, message=message)


def variant_to_wire(variant: Variant | None) -> Json:
    """Status' part: the whole digests."""
    if variant is None:
        return {}
    stated, running = variant.digests
    return {"variant": {"stated": stated} | ({"running": running} if running else {})}


def short(digest: str) -> str:
    """``sha256:0123456789ab``."""
    return digest[:SHOWN_CHARACTERS]


def unaccepted(plan: Plan) -> tuple[Problem, ...]:
    """What to know of a plan's gate without a cluster, where what runs is not known; empty where the engine passed."""
    found = variant_of(plan, _SOMETHING_RUNS, lambda _: None)
    if found is None or not found.held:
        return ()
    reason = found.acceptance.reason
    message = f"spec.engine ({short(found.stated.digest)}) is held where another engine runs. {WHY_HELD[reason](found)}"
    return (Problem(path="spec.acceptance.evaluationRef", reason=reason.value, message=message),)


# ---- the words --------------------------------------------------------------------------------------------


def _held(variant: Variant) -> str:
    stated, running = variant.digests
    if variant.running is None:
        return f"spec.engine ({short(stated)}) is held; what runs goes on, and cannot be told from the Deployment"
    found = differences(variant.stated, identity(variant.running))
    told = [difference.told("running") for difference in found[:DIFFERENCES_SHOWN]]
    more = [f"and {len(found) - DIFFERENCES_SHOWN} more"] if len(found) > DIFFERENCES_SHOWN else []
    return f"spec.engine ({short(stated)}) is held, {short(running)} goes on: {'; '.join([*told, *more])}"


def _evaluation(variant: Variant) -> str:
    return f"ModelEvaluation {variant.gate.evaluation}"


def _state(variant: Variant) -> str:
    """What the evaluation says of itself."""
    found = variant.gate.found
    return found.state.rstrip(".") if isinstance(found, Evaluation) else ""


def _other(variant: Variant) -> str:
    found = variant.gate.found
    about = short(found.variant) if isinstance(found, Evaluation) and found.variant else "a server of unknown engine"
    return f"{_evaluation(variant)} is about {about}: evaluate this engine, under a new name in spec.acceptance"


WHY_HELD: Mapping[Reason, Words] = {
    Reason.NO_EVALUATION: lambda v: f"{_evaluation(v)} does not exist: create it, or correct spec.acceptance",
    Reason.EVALUATION_UNREADABLE: lambda v: (
        f"{_evaluation(v)} cannot be read: install the kind ModelEvaluation and the operator's rights on it"
    ),
    Reason.EVALUATION_RUNNING: lambda v: f"{_evaluation(v)} measures it; it is rolled out once that passed",
    Reason.EVALUATION_STOPPED: lambda v: f"{_evaluation(v)} comes to no result by itself: {_state(v)}",
    Reason.EVALUATION_FAILED: lambda v: (
        f"{_evaluation(v)} failed for it. Correct the engine and evaluate it under a new name, or state the engine "
        "that runs"
    ),
    Reason.EVALUATION_INCONCLUSIVE: lambda v: (
        f"{_evaluation(v)} cannot tell whether it is as good{_needed(v)}: evaluate it with more items under a new "
        "name, or state the engine that runs"
    ),
    Reason.OTHER_VARIANT_EVALUATED: _other,
}
"""Of each reason for which a variant is held: what the evaluation says, and what to do."""

WHY_NOT: Mapping[Reason, Words] = {
    Reason.EVALUATION_PASSED: lambda v: f"{_evaluation(v)} passed for spec.engine ({short(v.stated.digest)})",
    Reason.VARIANT_RUNS: lambda v: (
        f"spec.engine is what runs ({short(v.stated.digest)}); another variant waits until "
        f"{_evaluation(v)} passed for it"
    ),
    Reason.FIRST_VARIANT: lambda v: (
        f"spec.engine ({short(v.stated.digest)}) is the first variant of this plan: nothing ran that it could be "
        "compared with"
    ),
    Reason.VARIANT_RAN_BEFORE: lambda v: (
        f"spec.engine ({short(v.stated.digest)}) is what ran before: going back waits for no evaluation"
    ),
    Reason.RUNNING_VARIANT_FAILED: lambda v: (
        f"spec.engine ({short(v.stated.digest)}) runs, and {_evaluation(v)} failed for it. Nothing is taken away by "
        "itself: state the engine that ran before, or evaluate this one anew"
    ),
}
"""Of each reason for which no variant is held."""


def _needed(variant: Variant) -> str:
    found = variant.gate.found
    if not isinstance(found, Evaluation) or found.needed is None:
        return ""
    return f" from {found.items} items; about {found.needed} are needed"
