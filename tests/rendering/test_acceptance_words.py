"""The words about variants: every reason has some, and they say what to do."""

from dataclasses import replace

import pytest

from servingplan.planning.acceptance import Acceptance, Evaluation, Gate, Missing, Verdict
from servingplan.planning.reasons import Reason
from servingplan.rendering.acceptance import WHY_HELD, WHY_NOT, variant_to_wire
from servingplan.rendering.identity import identity
from servingplan.rendering.situation import Status
from servingplan.rendering.variant import Variant
from support.plans import an_engine
from support.situations import a_situation, condition

OLD, NEW = an_engine(), an_engine(quantization="gptq", image="registry.local/vllm/vllm-openai:v0.33.0")
NEW_DIGEST = identity(NEW).digest


def a_variant(reason, *, found=Missing.ABSENT, running=OLD):
    held = reason in WHY_HELD
    gate = Gate(evaluation="gptq", found=found)
    acceptance = Acceptance(held=held, reason=reason)
    return Variant(gate=gate, stated=identity(NEW), running=running, acceptance=acceptance)


def said(variant, type_="VariantAccepted"):
    return condition(a_situation(variant=variant), type_)


def test_without_a_gate_the_condition_does_not_stand():
    assert condition(a_situation(), "VariantAccepted") is None


@pytest.mark.parametrize("reason", [*WHY_HELD, *WHY_NOT])
def test_every_reason_names_the_stated_variant(reason):
    assert NEW_DIGEST[:19] in said(a_variant(reason)).message


@pytest.mark.parametrize("reason", WHY_HELD)
def test_a_held_variant_is_told_with_what_goes_on_and_what_differs(reason):
    found = said(a_variant(reason))
    assert found.status is (Status.UNKNOWN if reason is Reason.EVALUATION_UNREADABLE else Status.FALSE)
    assert (
        f"{identity(OLD).digest[:19]} goes on: image registry.local/vllm/vllm-openai:v0.33.0, running" in found.message
    )


@pytest.mark.parametrize("reason", WHY_NOT)
def test_only_a_running_variant_that_failed_is_bad_though_nothing_is_held(reason):
    bad = reason is Reason.RUNNING_VARIANT_FAILED
    assert said(a_variant(reason)).status is (Status.FALSE if bad else Status.TRUE)


@pytest.mark.parametrize("reason", WHY_HELD)
def test_the_engine_is_not_up_to_date_while_a_variant_is_held_and_says_the_same(reason):
    accepted, up_to_date = said(a_variant(reason)), said(a_variant(reason), "EngineUpToDate")
    assert (up_to_date.status, up_to_date.reason, up_to_date.message) == (Status.FALSE, reason, accepted.message)


@pytest.mark.parametrize("reason", WHY_NOT)
def test_the_engine_is_up_to_date_where_nothing_is_held(reason):
    assert said(a_variant(reason), "EngineUpToDate").reason is Reason.UP_TO_DATE


def test_what_an_evaluation_says_of_itself_is_told():
    stopped = a_variant(Reason.EVALUATION_STOPPED, found=Evaluation(moving=False, state="RunnerFailed: exit 1."))
    assert said(stopped).message.endswith("comes to no result by itself: RunnerFailed: exit 1")
    unclear = Evaluation(variant=NEW_DIGEST, verdict=Verdict.INCONCLUSIVE, items=90, needed=570)
    assert (
        "from 90 items; about 570 are needed" in said(a_variant(Reason.EVALUATION_INCONCLUSIVE, found=unclear)).message
    )


def test_many_differences_are_counted():
    many = replace(NEW, max_num_seqs=1, max_model_len=1, dtype="half", kv_cache_dtype="fp8")
    variant = replace(a_variant(Reason.NO_EVALUATION), stated=identity(many))
    assert "; and 3 more. ModelEvaluation" in said(variant).message


def test_status_has_the_whole_digests_and_leaves_out_what_cannot_be_told():
    whole = {"stated": NEW_DIGEST, "running": identity(OLD).digest}
    assert variant_to_wire(a_variant(Reason.NO_EVALUATION)) == {"variant": whole}
    assert variant_to_wire(a_variant(Reason.NO_EVALUATION, running=None)) == {"variant": {"stated": NEW_DIGEST}}
    assert variant_to_wire(None) == {}
