"""A gate on variants: what is held, what goes on meanwhile, and what lets a variant through."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.api.references import Kind
from servingplan.clients.references import ObjectRef
from servingplan.errors import Refused
from support.small_operator import ENGINE, KEY, SmallOperator
from support.specs import ENGINE as OLD
from support.specs import an_evaluation, document

ACCEPTANCE = {"evaluationRef": {"name": "fp8"}}
NEW = {**OLD, "quantization": "gptq", "maxNumSeqs": 64}
EVALUATION = ObjectRef(api_version="servingplan.dev/v1alpha1", kind="ModelEvaluation", name="fp8", namespace="llm")


async def gated(at: str = "2026-12-01T12:00") -> SmallOperator:
    """A plan with a gate whose first engine runs, all replicas ready, everything reported."""
    operator = SmallOperator(at)
    operator.server.put(document(acceptance=ACCEPTANCE))
    await operator.look()
    operator.server.make_ready(ENGINE)
    await operator.look()
    await operator.look()
    operator.wrote()
    return operator


async def edited(engine: dict[str, Any] | None = None, **evaluation: Any) -> SmallOperator:
    """The same, after an edit of the engine and one look."""
    operator = await gated()
    if evaluation:
        say(operator, **evaluation)
    operator.server.put(document(acceptance=ACCEPTANCE, engine=engine or NEW))
    await operator.look()
    return operator


def say(operator: SmallOperator, **evaluation: Any) -> None:
    """The evaluation as its controller reports it now; the watch has seen it."""
    live = an_evaluation(**evaluation)
    operator.server.put(live)
    operator.store.put_content(Kind.MODEL_EVALUATION, live)


def stated(operator: SmallOperator) -> str:
    return str(operator.status["variant"]["stated"])


def image_args(operator: SmallOperator) -> list[str]:
    (container,) = operator.server.objects[ENGINE]["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def runs_new(operator: SmallOperator) -> bool:
    return "--quantization=gptq" in image_args(operator)


async def test_the_first_variant_is_rolled_out_and_what_runs_is_accepted() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(document(acceptance=ACCEPTANCE))
    await operator.look()
    assert operator.said("VariantAccepted") == "True FirstVariant"
    operator.server.make_ready(ENGINE)
    await operator.look()
    assert operator.said("VariantAccepted") == "True VariantRuns"
    assert operator.status["variant"]["running"] == stated(operator)


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        pytest.param({}, "False NoEvaluation", id="none"),
        pytest.param({"complete": ("False", "Running", "r")}, "False EvaluationRunning", id="running"),
        pytest.param({"complete": ("False", "RunnerFailed", "exit 1")}, "False EvaluationStopped", id="failed to run"),
        pytest.param({"verdict": "Failed"}, "False EvaluationFailed", id="failed"),
        pytest.param({"verdict": "Inconclusive"}, "False EvaluationInconclusive", id="inconclusive"),
        pytest.param({"verdict": "Passed", "variant": "sha256:other"}, "False OtherVariantEvaluated", id="other"),
    ],
)
async def test_a_variant_is_held_and_what_runs_stays(evaluation: dict[str, Any], said: str) -> None:
    operator = await edited()
    if "verdict" in evaluation:
        evaluation = {"variant": stated(operator), **evaluation}
    if evaluation:
        say(operator, **evaluation)
        await operator.look()
    assert operator.said("VariantAccepted") == said
    assert not runs_new(operator)
    assert operator.said("EngineUpToDate") == said
    assert (operator.said("Ready"), operator.said("Reconciling")) == ("True AsPlanned", "absent")
    assert operator.said("Stalled") == "absent"


async def test_holding_and_a_restart_while_held_write_nothing_but_the_status() -> None:
    operator = await edited()
    assert operator.wrote() == ["apply_status"]
    await operator.look("2026-12-01T12:40")  # the first rise, which nobody saw complete, counts no more
    operator.wrote()
    operator.restart()
    await operator.look("2026-12-01T12:41")
    await operator.look("2026-12-01T13:00")
    assert operator.wrote() == []


async def test_both_variants_and_the_way_out_are_named() -> None:
    operator = await edited()
    digests = operator.status["variant"]
    assert operator.message("VariantAccepted") == (
        f"spec.engine ({digests['stated'][:19]}) is held, {digests['running'][:19]} goes on: "
        "--max-num-seqs 64, running with 128; --quantization gptq, running with fp8. "
        "ModelEvaluation fp8 does not exist: create it, or correct spec.acceptance"
    )
    assert sum("held" in said for said in operator.events.said) == 1


async def test_the_schedule_goes_on_with_what_runs() -> None:
    operator = await edited()
    await operator.look("2026-12-01T20:00")
    assert operator.replicas(ENGINE) == 4
    assert not runs_new(operator)


async def test_a_passing_evaluation_rolls_the_variant_out() -> None:
    operator = await edited()
    old, new = operator.status["variant"]["running"], stated(operator)
    say(operator, verdict="Passed", variant=new)
    await operator.look()
    assert runs_new(operator)
    assert (operator.said("VariantAccepted"), operator.said("Reconciling")) == (
        "True EvaluationPassed", "True RollingUpdate",
    )  # fmt: skip
    annotations = operator.server.objects[ENGINE]["metadata"]["annotations"]
    assert (annotations["servingplan.dev/variant"], annotations["servingplan.dev/variant-before"]) == (new, old)


async def accepted() -> SmallOperator:
    """The new variant passed and runs, everything reported."""
    operator = await edited()
    say(operator, verdict="Passed", variant=stated(operator))
    await operator.look()
    operator.server.make_ready(ENGINE)
    await operator.look()
    await operator.look()
    operator.wrote()
    return operator


async def test_an_evaluation_that_is_deleted_takes_nothing_back() -> None:
    operator = await accepted()
    operator.store.drop_content(Kind.MODEL_EVALUATION, operator.server.objects.pop(EVALUATION))
    await operator.look()
    assert operator.wrote() == ["apply_status"]
    assert (runs_new(operator), operator.said("VariantAccepted")) == (True, "True VariantRuns")


async def test_a_verdict_that_turns_takes_nothing_back_and_is_told() -> None:
    operator = await accepted()
    say(operator, verdict="Failed", variant=stated(operator))
    await operator.look()
    assert (runs_new(operator), operator.said("VariantAccepted")) == (True, "False RunningVariantFailed")


async def test_another_edit_is_held_again() -> None:
    operator = await accepted()
    operator.server.put(document(acceptance=ACCEPTANCE, engine={**NEW, "maxNumSeqs": 32}))
    await operator.look()
    assert operator.said("VariantAccepted") == "False OtherVariantEvaluated"
    assert "--max-num-seqs=64" in image_args(operator)


async def test_going_back_to_what_ran_before_waits_for_nothing() -> None:
    operator = await accepted()
    operator.server.put(document(acceptance=ACCEPTANCE))
    await operator.look()
    assert (runs_new(operator), operator.said("VariantAccepted")) == (False, "True VariantRanBefore")


async def test_taking_back_an_edit_that_is_held_is_accepted_at_once() -> None:
    operator = await edited(verdict="Failed", variant="sha256:other")
    operator.server.put(document(acceptance=ACCEPTANCE))
    await operator.look()
    assert operator.said("VariantAccepted") == "True VariantRuns"


async def test_without_its_gate_a_held_engine_is_rolled_out() -> None:
    operator = await edited()
    operator.server.put(document(engine=NEW))
    await operator.look()
    assert (runs_new(operator), operator.said("VariantAccepted")) == (True, "absent")


async def test_an_edit_that_changes_no_answer_rolls_as_ever() -> None:
    operator = await edited(engine={**OLD, "drainTimeout": "9m"})
    assert "--shutdown-timeout=540" in image_args(operator)
    assert operator.said("Reconciling") == "True RollingUpdate"


async def test_an_upgrade_of_the_operator_holds_nothing_that_runs() -> None:
    operator = await gated()
    annotations = operator.server.objects[ENGINE]["metadata"]["annotations"]
    for name in ("variant", "variant-spec"):
        del annotations[f"servingplan.dev/{name}"]
    operator.restart()
    await operator.look()
    assert operator.said("VariantAccepted") == "True VariantRuns"
    assert operator.server.objects[ENGINE]["metadata"]["annotations"]["servingplan.dev/variant"] == stated(operator)


async def test_where_nobody_can_tell_what_runs_the_deployment_is_left_as_it_is() -> None:
    operator = await gated()
    del operator.server.objects[ENGINE]["metadata"]["annotations"]["servingplan.dev/variant-spec"]
    operator.server.put(document(acceptance=ACCEPTANCE, engine=NEW))
    await operator.look()
    assert (runs_new(operator), operator.said("Reconciling")) == (False, "absent")
    assert "cannot be told from the Deployment" in operator.message("VariantAccepted")
    await operator.look("2026-12-01T20:00")
    assert (operator.replicas(ENGINE), operator.wrote()) == (4, ["apply_status", "apply_scale", "apply_status"])
    say(operator, verdict="Passed", variant=stated(operator))
    await operator.look()
    assert runs_new(operator)


async def test_an_evaluation_that_may_not_be_read_holds_and_the_plan_acts() -> None:
    operator = await edited()
    operator.restart()
    operator.server.refuse("get ModelEvaluation", Refused("get of ModelEvaluation llm/fp8 was refused (403)"))
    await operator.look("2026-12-01T20:00")
    assert operator.said("VariantAccepted") == "Unknown EvaluationUnreadable"
    assert (operator.said("PlanValid"), operator.replicas(ENGINE), runs_new(operator)) == ("True Resolved", 4, False)


async def test_a_verdict_concerns_the_plans_that_ask_for_it_and_no_other() -> None:
    operator = await gated()
    operator.store.put_plan({**document("other", acceptance={"evaluationRef": {"name": "awq"}})})
    assert operator.store.put_content(Kind.MODEL_EVALUATION, an_evaluation()) == {KEY}
    assert operator.store.put_content(Kind.MODEL_EVALUATION, an_evaluation()) == frozenset()
