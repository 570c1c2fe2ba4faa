"""The run of a ModelEvaluation, and what its status says of it."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from click.testing import CliRunner

from servingplan.api.evaluation import ModelEvaluationStatus
from servingplan.api.evaluation_report import evaluation_report
from servingplan.api.referenced import RunnerDefaults
from servingplan.api.resolve_evaluation import resolve_evaluation
from servingplan.cli.evaluate import command
from servingplan.cli.program import program
from servingplan.errors import InputError
from servingplan.evaluating.verdict import Because
from servingplan.planning.comparison import Asker, Server
from servingplan.planning.reasons import Reason
from servingplan.planning.target import Engine, SecretKey
from servingplan.rendering.evaluation import outcome, result, runner_job
from servingplan.rendering.identity import identity
from servingplan.rendering.measured import Measured
from servingplan.rendering.metadata import Owner
from servingplan.rendering.runner import SCRATCH_MOUNT, WORK_MOUNT, job
from support.evidence import RUNNER, an_evaluation_report, evaluation_document
from support.plans import an_engine
from support.specs import ENGINE, document, targeting

RESULTS = f"{WORK_MOUNT}/fp8-0a1b2c3d-1.jsonl"
DEFAULTS = RunnerDefaults(image=RUNNER)
EVIDENCE = Owner(uid="u", api_version="servingplan.dev/v1alpha1", kind="ModelEvaluation", name="fp8")
KEY = {"name": "vllm-key", "key": "token"}
OF_SERVICES = {
    "planRef": None,
    "baseline": {"service": {"name": "vllm"}},
    "variant": {"service": {"name": "vllm-fp8", "port": 9000, "model": "small", "apiKeySecretRef": KEY}},
}


def a_comparison(plan=None, **spec):
    return resolve_evaluation(evaluation_document(**spec), {"support-chat": plan or document()}, DEFAULTS)


def problems(plans, defaults=DEFAULTS, **spec):
    with pytest.raises(InputError) as found:
        resolve_evaluation(evaluation_document(**spec), plans, defaults)
    return [(problem.path, problem.reason) for problem in found.value.problems]


def a_pod(**spec):
    return job(runner_job(a_comparison(**spec), "0a1b2c3d"), EVIDENCE, "default")["spec"]["template"]["spec"]


# ---- what resolves ----


def test_a_plans_variant_is_its_stated_engine_and_its_baseline_what_the_plan_serves():
    plan = document(engine={**ENGINE, "apiKeySecretRef": KEY})
    plan["status"] = {"variant": {"stated": "sha256:new", "running": "sha256:old"}}
    found = a_comparison(plan)
    assert isinstance(found.variant, Engine)
    key = SecretKey(name="vllm-key", key="token")
    assert found.baseline == Server(name="support-chat", port=8000, model=None, api_key=key)
    assert (found.baseline_digest, found.margin, found.longest) == ("sha256:old", Decimal("0.02"), timedelta(hours=4))


@pytest.mark.parametrize("status", [None, {}, {"variant": {}}, {"variant": {"running": 1}}], ids=str)
def test_a_plan_that_does_not_say_what_runs_gives_the_baseline_no_digest(status):
    assert a_comparison({**document(), "status": status}).baseline_digest == ""


def test_all_that_is_wrong_is_told_at_once():
    assert problems({}, RunnerDefaults()) == [
        ("spec.planRef.name", "PlanNotFound"),
        ("spec.runner.image", "NoRunnerImage"),
    ]
    assert problems({"support-chat": document(**targeting())}) == [("spec.planRef.name", "NoEngine")]
    assert problems({}, rule={"margin": 0}) == [("spec.rule.margin", "OutOfRange")]


# ---- what runs ----


def test_the_runner_asks_both_and_says_how_it_judges():
    (container,) = a_pod(rule={"minimumScore": 0.8}, chat=True, concurrency=8)["containers"]
    assert container["args"] == [
        "evaluate",
        "--baseline=http://support-chat:8000",
        "--variant=http://fp8-trial:8000",
        "--variant-model=qwen3-14b",
        "--set=/data/set.jsonl",
        f"--out={RESULTS}",
        "--concurrency=8",
        "--chat",
        "--minimum-score=0.8",
        "--margin=0.02",
        "--report=/dev/termination-log",
    ]


@pytest.mark.parametrize("spec", [{"chat": True}, {"set": None, "container": {"image": "asks:1"}}], ids=["set", "own"])
def test_the_command_line_takes_every_argument_that_is_rendered(spec):
    known = {option for parameter in command.params for option in parameter.opts}
    (container,) = a_pod(**spec)["containers"]
    assert {each.partition("=")[0] for each in container["args"][1:]} <= known


def test_each_server_gets_its_own_key():
    (container,) = a_pod(**OF_SERVICES)["containers"]
    assert [variable["name"] for variable in container["env"]] == ["HOME", "VARIANT_API_KEY"]
    assert {"--baseline=http://vllm:8000", "--variant=http://vllm-fp8:9000", "--variant-model=small"} <= set(
        container["args"]
    )


def test_a_container_of_the_users_asks_first_and_its_scores_are_judged():
    pod = a_pod(**OF_SERVICES, set=None, container={"image": "asks:1", "args": ["--quick"]})
    (first,), (judge,) = pod["initContainers"], pod["containers"]
    told = {variable["name"]: variable.get("value") for variable in first["env"]}
    assert (first["image"], first["args"]) == ("asks:1", ["--quick"])
    assert told == {
        "HOME": SCRATCH_MOUNT,
        "SERVINGPLAN_RESULTS": RESULTS,
        "SERVINGPLAN_BASELINE_URL": "http://vllm:8000",
        "SERVINGPLAN_VARIANT_URL": "http://vllm-fp8:9000",
        "SERVINGPLAN_VARIANT_MODEL": "small",
        "VARIANT_API_KEY": None,
    }
    assert judge["args"][:2] == ["evaluate", f"--results={RESULTS}"]
    assert [variable["name"] for variable in judge["env"]] == ["HOME"]
    assert first["securityContext"] == judge["securityContext"]
    assert {"name": "work", "mountPath": WORK_MOUNT} in first["volumeMounts"]


def test_a_container_that_asks_is_resolved_as_it_is_stated():
    assert a_comparison(set=None, container={"image": "asks:1"}).questions == Asker(image="asks:1", args=())


# ---- what was found ----


def test_the_digests_are_those_of_what_really_ran():
    ran = identity(an_engine(quantization="gptq"))
    report = evaluation_report(an_evaluation_report())
    plan = document()
    plan["status"] = {"variant": {"running": "sha256:old"}}
    found = result(a_comparison(plan), report, Measured(identity=ran, image_digest="vllm@sha256:1"))
    assert found["variant"] == {
        "digest": ran.digest,
        "image": ran.image,
        "imageDigest": "vllm@sha256:1",
        "model": ran.model,
        "vllm": "0.32.0",
    }
    assert found["baseline"] == {"digest": "sha256:old", "model": "qwen3-14b", "vllm": "0.32.0"}
    assert (found["verdict"], found["set"]) == ("Passed", {"digest": "sha256:set", "items": 500})
    ModelEvaluationStatus.model_validate_json(json.dumps(found))


def test_what_serves_already_has_no_digest_and_so_accepts_nothing():
    found = result(a_comparison(**OF_SERVICES), evaluation_report(an_evaluation_report()), Measured())
    assert (found["variant"], found["baseline"]) == (
        {"model": "qwen3-14b", "vllm": "0.32.0"}, {"model": "qwen3-14b", "vllm": "0.32.0"},
    )  # fmt: skip


@pytest.mark.parametrize("reason", [because.value for because in Because])
def test_every_reason_of_a_report_is_a_reason(reason):
    report = evaluation_report(an_evaluation_report("Failed", reason))
    assert outcome(report) == (Reason(reason), "the variant is not worse by more than the margin")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Killed", id="last words"),
        pytest.param("{}", id="nothing in it"),
        pytest.param(an_evaluation_report(score={"baseline": 2, "variant": 0}), id="a score above 1"),
        pytest.param(an_evaluation_report("Perfect"), id="a verdict that nobody knows"),
        pytest.param(an_evaluation_report(message="x" * 5000), id="too long"),
    ],
)
def test_what_is_no_report_is_said_to_be_none(text):
    with pytest.raises(InputError, match="use a runner image of the operator's version"):
        evaluation_report(text)


def test_what_the_command_line_reports_is_read(tmp_path):
    scores, report = tmp_path / "scores.jsonl", tmp_path / "report"
    scores.write_text("".join(f'{{"id": "q{number}", "baseline": 1, "variant": 1}}\n' for number in range(300)))
    done = CliRunner().invoke(program, ["evaluate", f"--results={scores}", f"--report={report}"])
    assert done.exit_code == 0, done.output
    found = evaluation_report(report.read_text())
    assert (found["verdict"], found["score"], found["set"]["items"]) == ("Passed", {"baseline": 1, "variant": 1}, 300)


def test_a_report_of_a_container_knows_nothing_of_the_servers():
    report = evaluation_report(an_evaluation_report(baseline={}, variant={}))
    found = result(a_comparison(), report, Measured())
    assert (found["variant"], found["baseline"]) == ({}, {})
