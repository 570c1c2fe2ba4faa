"""What runs for evidence: the trial pool and the runner's Job, as files that a reviewer reads."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rendering.test_golden import OWNER, same_as_file
from servingplan.cli.bench_run import command
from servingplan.rendering.benchmark import BESIDE_RUNS, runner_job
from servingplan.rendering.deployment import deployment
from servingplan.rendering.identity import identity
from servingplan.rendering.measured import (
    Measured,
    identity_from_json,
    measured_from_json,
    measured_to_json,
)
from servingplan.rendering.metadata import IDENTITY_ANNOTATION, Owner, selector, serving_selector
from servingplan.rendering.runner import RESOURCES, job, job_name
from servingplan.rendering.trial import Trial, trial_objects
from support.evidence import a_benchmark, service_benchmark
from support.plans import a_full_engine, a_plan, an_engine
from support.specs import ENGINE, document

EVIDENCE = Owner(
    uid="00000000-0000-4000-8000-000000000002",
    api_version="servingplan.dev/v1alpha1",
    kind="CapacityBenchmark",
    name="qwen3-l40s",
)
WORK = "0a1b2c3d"


def a_trial(engine=None) -> Trial:
    return Trial(namespace="llm", evidence="qwen3-l40s", work=WORK, engine=engine or an_engine())


def a_job(size=1, reports=None, **spec):
    return job(runner_job(a_benchmark(**spec), WORK, size, reports or {}), EVIDENCE, "default")


def container(manifest):
    (only,) = manifest["spec"]["template"]["spec"]["containers"]
    return only


def test_the_rendered_pool_and_job_are_those_of_the_file():
    engine = {**ENGINE, "modelVolume": {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}}
    runs = runner_job(a_benchmark(plan=document(engine=engine)), WORK, 1, {})
    rendered = (*trial_objects(a_trial(), EVIDENCE, 1, "default"), job(runs, EVIDENCE, "default"))
    same_as_file("benchmark", rendered)


def test_no_plan_counts_a_trial_pool_and_no_plans_service_sends_it_requests():
    service, pool = trial_objects(a_trial(a_full_engine()), EVIDENCE, 2, "default")
    labels = pool["spec"]["template"]["metadata"]["labels"]
    assert not set(selector("support-chat")) & set(labels)
    assert not serving_selector("support-chat").items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert pool["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_trial_pool_runs_the_very_engine_of_the_plan():
    plan = a_plan(target=a_full_engine())
    _, pool = trial_objects(a_trial(a_full_engine()), EVIDENCE, 1, "default")
    plans = deployment(plan, OWNER, 1)["spec"]["template"]["spec"]["containers"]
    assert pool["spec"]["template"]["spec"]["containers"] == plans


def test_both_objects_and_the_job_go_with_the_evidence():
    for manifest in (*trial_objects(a_trial(), EVIDENCE, 1, "default"), a_job()):
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (EVIDENCE.uid, True)


def test_a_pool_says_which_engine_it_runs():
    _, pool = trial_objects(a_trial(a_full_engine()), EVIDENCE, 1, "default")
    stated = pool["metadata"]["annotations"][IDENTITY_ANNOTATION]
    assert identity_from_json(stated) == identity(a_full_engine())


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"arguments": []}', "null"])
def test_an_annotation_that_somebody_changed_is_not_known_rather_than_wrong(text):
    assert identity_from_json(text) is None
    assert measured_from_json(text) == Measured()


def test_what_was_measured_comes_back_through_its_annotation():
    measured = Measured(identity=identity(an_engine()), image_digest="sha256:ab", product="NVIDIA-L40S")
    assert measured_from_json(measured_to_json(measured)) == measured


def test_the_runner_has_no_token_no_privilege_and_no_root():
    pod = a_job()["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
    context = container(a_job())["securityContext"]
    assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_longest_work_of_a_job_is_that_of_its_ramp_and_what_lies_beside_it():
    assert a_job()["spec"]["activeDeadlineSeconds"] == (timedelta(hours=4) + BESIDE_RUNS).total_seconds()
    assert (
        a_job(effort="Quick")["spec"]["activeDeadlineSeconds"] == (timedelta(minutes=30) + BESIDE_RUNS).total_seconds()
    )
    assert a_job(longest="2h")["spec"]["activeDeadlineSeconds"] == (timedelta(hours=2) + BESIDE_RUNS).total_seconds()


def test_work_is_kept_in_a_claim_where_there_is_one_and_in_the_pod_otherwise():
    def work_volume(manifest):
        return next(each for each in manifest["spec"]["template"]["spec"]["volumes"] if each["name"] == "work")

    assert work_volume(a_job()) == {"name": "work", "emptyDir": {}}
    claimed = a_job(runner={"volume": {"persistentVolumeClaim": {"claimName": "work"}}})
    assert work_volume(claimed) == {"name": "work", "persistentVolumeClaim": {"claimName": "work"}}


def test_resources_are_those_that_are_stated_or_enough_for_the_client():
    assert container(a_job())["resources"] == RESOURCES
    stated = {"limits": {"cpu": "3"}}
    assert container(a_job(runner={"resources": stated}))["resources"] == stated


def arguments(size=1, reports=None, **spec):
    return container(a_job(size, reports, **spec))["args"]


@pytest.mark.parametrize(
    ("spec", "argument"),
    [
        ({}, "--url=http://qwen3-l40s-trial:8000"),
        ({}, "--prompts=/data/prompts.jsonl"),
        ({}, f"--out=/var/lib/servingplan/{job_name('qwen3-l40s', WORK, 1)}.json"),
        ({}, "--report=/dev/termination-log"),
        ({}, "--ttft=p95:1s500ms"),
        ({}, "--goodput-share=0.99"),
        ({}, "--model=qwen3-14b"),
        ({}, "--tokenizer=/models/qwen3-14b-fp8"),
        ({}, "--max-num-seqs=128"),
        ({"objectives": {"e2el": {"p90": "20s"}}}, "--e2el=p90:20s"),
        ({"effort": "Quick"}, "--effort=quick"),
        ({"cv": 1.5}, "--cv=1.5"),
        ({"prefixHitShare": 0.4}, "--prefix-hit-share=0.4"),
        ({"chat": True}, "--chat"),
        ({"longest": "90m"}, "--longest=1h30m"),
        ({"start": 2.5}, "--start=2.5"),
        (
            {"prompts": {"persistentVolumeClaim": {"claimName": "sets", "path": "chat/p.jsonl"}}},
            "--prompts=/data/chat/p.jsonl",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_field_becomes_its_argument(spec, argument):
    assert argument in arguments(**spec)


def test_the_first_rate_of_a_larger_pool_follows_from_the_smaller_one():
    found = {1: {"outcome": "Found", "requestsPerSecond": 4.0}}
    nothing = {1: {"outcome": "OutOfTime"}}
    assert "--start=22.4" in arguments(8, found, poolSizes=[1, 8])
    assert not [each for each in arguments(8, nothing, poolSizes=[1, 8]) if each.startswith("--start")]
    assert "--start=20" in arguments(8, found, poolSizes=[1, 8], start=2.5)


def test_what_serves_is_asked_where_it_is_with_its_key():
    service = {"name": "vllm", "port": 80, "replicas": 2, "model": "chat", "tokenizer": "/data/tokenizer"}
    spec = service_benchmark(service=service | {"apiKeySecretRef": {"name": "vllm-key", "key": "token"}})["spec"]
    manifest = a_job(2, planRef=None, service=spec["service"], quietHoursOf=spec["quietHoursOf"])
    wanted = {"--url=http://vllm:80", "--replicas=2", "--model=chat", "--tokenizer=/data/tokenizer"}
    assert wanted <= set(container(manifest)["args"])
    key = {"name": "OPENAI_API_KEY", "valueFrom": {"secretKeyRef": {"name": "vllm-key", "key": "token"}}}
    assert key in container(manifest)["env"]


def test_the_command_line_takes_every_argument_that_is_rendered():
    known = {option for parameter in command.params for option in parameter.opts}
    service = {"name": "vllm", "model": "chat", "tokenizer": "t"}
    rendered = arguments(
        chat=True,
        start=1,
        longest="1h",
        objectives={"ttft": {"p95": "1s"}, "tpot": {"p95": "1s"}, "e2el": {"p95": "1s"}},
    )
    rendered += arguments(planRef=None, service=service, quietHoursOf={"name": "support-chat"})
    assert rendered[:2] == ["bench", "run"]
    assert {each.partition("=")[0] for each in rendered if each.startswith("--")} <= known
