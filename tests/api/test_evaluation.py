"""ModelEvaluations on the wire: what is refused, and what of one decides for plans."""

from __future__ import annotations

import json

import pytest

from servingplan.api import evidence_rules
from servingplan.api.evaluated import evaluation
from servingplan.api.evaluation import ModelEvaluationStatus
from servingplan.api.kinds import MODEL_EVALUATION
from servingplan.api.references import Kind, Reference, referenced, unreadable
from servingplan.api.resolve import resolve
from servingplan.api.validation import as_kept, form_problems
from servingplan.planning.acceptance import Evaluation, Gate, Missing, Verdict
from support.evidence import EVALUATION_VIOLATIONS, VIOLATIONS, evaluation_document
from support.specs import an_evaluation, document

NAMED = {"acceptance": {"evaluationRef": {"name": "fp8"}}}
FP8 = Reference(Kind.MODEL_EVALUATION, "fp8")


@pytest.mark.parametrize("violation", EVALUATION_VIOLATIONS, ids=lambda violation: violation.id)
def test_an_evaluation_that_breaks_one_rule_has_that_problem_alone(violation):
    found = form_problems(as_kept(violation.plan, MODEL_EVALUATION), MODEL_EVALUATION)
    assert [(problem.path, problem.message) for problem in found] == [(violation.path, violation.rule.message)]


def test_every_rule_of_evidence_is_broken_by_something():
    broken = {violation.rule.cel for violation in (*VIOLATIONS, *EVALUATION_VIOLATIONS)}
    assert broken == set(evidence_rules.RULES)


def test_an_evaluation_of_a_plan_and_one_of_two_services_are_valid():
    for found in (evaluation_document(), evaluation_document(**_OF_SERVICES)):
        assert form_problems(as_kept(found, MODEL_EVALUATION), MODEL_EVALUATION) == ()


_OF_SERVICES = {
    "planRef": None,
    "baseline": {"service": {"name": "vllm"}},
    "variant": {
        "service": {"name": "vllm-fp8", "port": 9000, "model": "m", "apiKeySecretRef": {"name": "k", "key": "t"}}
    },
}


# ---- what decides ----

DIGEST = "sha256:abc"


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(an_evaluation(), Evaluation(), id="nothing yet"),
        pytest.param({}, Evaluation(), id="not even metadata"),
        pytest.param({"status": "x"}, Evaluation(), id="a status that is text"),
        pytest.param(
            {"status": {"conditions": {"a": 1}, "variant": [], "verdict": ["Passed"]}}, Evaluation(), id="garbage"
        ),
        pytest.param(
            an_evaluation(verdict="Perfect", variant=DIGEST),
            Evaluation(variant=DIGEST, moving=False, state="Perfect: it is over"),
            id="a verdict that nobody knows",
        ),
        pytest.param(
            an_evaluation(verdict="Passed", variant=DIGEST, complete=("False", "Running", "")),
            Evaluation(state="Running"),
            id="running, whatever was found before",
        ),
        pytest.param(
            an_evaluation(complete=("False", "RunnerFailed", "exit 1")),
            Evaluation(moving=False, state="RunnerFailed: exit 1"),
            id="the runner failed",
        ),
        pytest.param(
            an_evaluation(complete=("False", "Suspended", "s")),
            Evaluation(moving=False, state="Suspended: s"),
            id="suspended",
        ),
        pytest.param(
            an_evaluation(complete=("True", "OutOfTime", "4h")),
            Evaluation(moving=False, state="OutOfTime: 4h"),
            id="no result",
        ),
        pytest.param(
            an_evaluation(verdict="Inconclusive", variant=DIGEST, difference={"items": 90, "needed": 570}),
            Evaluation(
                variant=DIGEST,
                verdict=Verdict.INCONCLUSIVE,
                moving=False,
                state="Inconclusive: it is over",
                items=90,
                needed=570,
            ),
            id="inconclusive",
        ),
    ],
)
def test_what_a_status_says_is_read_however_little_of_it_is_there(live, expected):
    assert evaluation(live) == expected


def test_an_invalid_evaluation_comes_to_no_result_by_itself():
    live = an_evaluation()
    live["status"] = {"conditions": [{"type": "Valid", "status": "False", "reason": "Invalid", "message": "no set"}]}
    assert evaluation(live) == Evaluation(moving=False, state="Invalid: no set")


def test_a_verdict_on_an_earlier_spec_does_not_count():
    live = an_evaluation(verdict="Passed", variant=DIGEST, observedGeneration=1)
    live["metadata"]["generation"] = 2
    assert evaluation(live) == Evaluation()
    live["metadata"]["generation"] = 1
    assert evaluation(live).verdict is Verdict.PASSED


def test_a_whole_status_is_of_the_wire():
    status = {
        "observedGeneration": 1,
        "verdict": "Failed",
        "score": {"baseline": 0.91, "variant": 0.9},
        "difference": {"mean": -0.01, "lowerBound": -0.02, "discordant": 0.03, "items": 500, "needed": 470},
        "set": {"digest": DIGEST, "items": 500},
        "variant": {"digest": DIGEST, "image": "vllm:1", "imageDigest": "vllm@sha256:1", "model": "/m"},
        "baseline": {"model": "/m"},
    }
    ModelEvaluationStatus.model_validate_json(json.dumps(status))


# ---- in a plan ----


def test_a_plan_refers_to_the_evaluation_of_its_gate():
    assert referenced(document(**NAMED)) == {FP8}


@pytest.mark.parametrize(
    ("references", "found"),
    [
        pytest.param({}, Missing.ABSENT, id="none"),
        pytest.param({FP8: None}, Missing.ABSENT, id="known to be missing"),
        pytest.param({FP8: unreadable(Kind.MODEL_EVALUATION)}, Missing.UNREADABLE, id="unreadable"),
        pytest.param({FP8: {"evaluation": Evaluation(variant=DIGEST)}}, Evaluation(variant=DIGEST), id="there"),
    ],
)
def test_a_gate_holds_what_was_found_and_the_plan_resolves_all_the_same(references, found):
    assert resolve(document(**NAMED), references).acceptance == Gate(evaluation="fp8", found=found)


def test_without_acceptance_there_is_no_gate():
    assert resolve(document(), {}).acceptance is None
