"""A CapacityBenchmark where all is real: the plan's engine in a pod of its own, a runner in the pod of a Job, a result.

The machine may be busy: then runs are void, and the benchmark has to say so instead of a number.
"""

from __future__ import annotations

import json

import pytest

from e2e.support.eventually import eventually
from e2e.support.plans import condition, deployments, edit, plan, status, until_condition, until_ready
from e2e.support.runners import runner
from e2e.support.workloads import is_ready
from e2e.vllm import containers, runners
from e2e.vllm.names import Names
from e2e.vllm.prompts import prompt_lines
from e2e.vllm.test_falls import START_S, tell
from servingplan.rendering.metadata import REPORT_ANNOTATION
from servingplan.rendering.runner import USER
from support.evidence import benchmark_document

NAME = "tiny-cpu"
FILE, MODELS = "prompts.jsonl", "models"

OBJECTIVES = {"ttft": {"p95": "1s"}, "goodputShare": 0.9}
START, LONGEST = 11, "14m"
"""Requests/s, near what two slots serve on two processors; a ramp is nine runs of 80 s then."""

LONGEST_S = 30 * 60


@pytest.fixture(scope="module")
def runner_image(cluster, environment) -> str:
    """An image with ``servingplan`` and ``vllm``, and what its pods need of the machine."""
    runners.give_folders(cluster.kubectl, environment)
    return runners.image(cluster)


@pytest.fixture
def named(cluster, kubectl, tmp_path):
    """The names of the Services of the test's namespace."""
    addresses = {each["type"]: each["address"] for each in cluster.nodes[0].object["status"]["addresses"]}
    with Names(kubectl, addresses["InternalIP"], tmp_path):
        yield


def prompts() -> dict[str, object]:
    """A ConfigMap with 300 prompts of 25 to 55 words without a common beginning, and answers of 60 to 110 tokens."""
    data = {FILE: prompt_lines((25 + 13 * number % 31, 60 + 17 * number % 51) for number in range(300))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prompts"}, "data": data}


def models(namespace: str, environment) -> tuple[dict[str, object], ...]:
    """A volume of the folder that holds the tiny model, for this namespace alone, and the claim of it."""
    size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
    volume = {
        "capacity": size,
        "accessModes": modes,
        "storageClassName": "",
        "claimRef": {"name": MODELS, "namespace": namespace},
        "hostPath": {"path": str(environment.folder)},
    }
    claim = {"accessModes": modes, "storageClassName": "", "volumeName": namespace, "resources": {"requests": size}}
    return (
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace}, "spec": volume},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": MODELS}, "spec": claim},
    )


def planned(namespace: str, environment, image: str, **spec):
    """A plan of the tiny model from a volume, with few slots, so that little load is its limit."""
    volume = {"persistentVolumeClaim": {"claimName": MODELS, "readOnly": True}}
    small = containers.engine(environment, image, model="/models/model", modelVolume=volume, maxNumSeqs=2)
    return containers.plan(
        "chat", namespace, small, replicas=1, workload={"objectives": OBJECTIVES}, feedback=None, **spec
    )


def benchmark(kubectl):
    return kubectl.json("get", "capacitybenchmark", NAME)


def complete(kubectl):
    return condition(benchmark(kubectl), "Complete") or {}


def until_complete(kubectl, *reasons, status="False", timeout_s=START_S):
    return eventually(
        lambda: complete(kubectl),
        lambda found: found.get("status") == status and (not reasons or found["reason"] in reasons),
        what=f"Complete {status} {reasons}",
        timeout_s=timeout_s,
    )


def trial_pods(kubectl):
    return kubectl.json("get", "pods", f"--selector=servingplan.dev/trial={NAME}")["items"]


def is_over(found):
    """What cannot become a result any more is seen at once."""
    assert found.get("reason") != "RunnerFailed", found["message"]
    assert "started again" not in found.get("message", ""), found["message"]
    return found.get("status") == "True"


def test_a_benchmark_measures_the_real_engine_and_a_plans_replicas_follow(
    kubectl, namespace, named, run_operator, environment, vllm_image, runner_image
):
    prepared = planned(namespace, environment, vllm_image, suspend=True)
    asked = benchmark_document(
        NAME,
        namespace,
        planRef={"name": "chat"},
        prompts={"configMap": {"name": "prompts", "key": FILE}},
        effort="Quick",
        start=START,
        longest=LONGEST,
        # What a runner asks for by itself, two processors, is all that such a machine has.
        runner={"image": runner_image, "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}}},
    )
    kubectl.apply(*models(namespace, environment), prompts(), prepared, asked)
    run_operator()

    until_complete(kubectl, "Running")
    pod = runner(kubectl, NAME)
    (engine,) = trial_pods(kubectl)
    assert is_ready(engine)
    assert engine["spec"]["nodeName"] == pod["spec"]["nodeName"]
    assert kubectl("exec", pod["metadata"]["name"], "--", "id", "-u").strip() == str(USER)

    over = eventually(lambda: complete(kubectl), is_over, what="the end of the ramp", timeout_s=LONGEST_S)
    tell("ramp", kubectl("logs", pod["metadata"]["name"]))
    found = benchmark(kubectl)["status"]
    tell("status", json.dumps(found, indent=1))
    judge(kubectl, pod, over, found)
    eventually(lambda: trial_pods(kubectl), lambda left: not left, what="no pod of the trial", timeout_s=START_S)

    if over["reason"] == "Found":
        follow(kubectl, found["capacity"]["requestsPerSecond"])


def judge(kubectl, pod, over, found) -> None:
    """What the runner handed back is what the status says; without a capacity, it says why."""
    (state,) = kubectl.json("get", "pod", pod["metadata"]["name"])["status"]["containerStatuses"]
    job = kubectl.json("get", "job", pod["metadata"]["labels"]["job-name"])
    report = json.loads(state["state"]["terminated"]["message"])
    assert json.loads(job["metadata"]["annotations"][REPORT_ANNOTATION]) == report
    assert [{"replicas": 1} | level for level in report["levels"]] == found["levels"]
    assert found["levels"]

    fingerprint = found["fingerprint"]
    assert fingerprint["imageDigest"].startswith("sha256:")
    assert {"--max-num-seqs=2", f"modelVolume={MODELS}"} <= set(fingerprint["arguments"])
    assert fingerprint["vllm"].startswith("0.")
    assert fingerprint["objectives"] == OBJECTIVES

    assert ("capacity" in found) == (over["reason"] == "Found")
    if over["reason"] != "Found":
        assert over["reason"] in {"Inconclusive", "OutOfTime"}
        void = {reason for level in found["levels"] for reason in level.get("voidBecause", ())}
        assert void
        assert any(reason in over["message"] for reason in void)


def follow(kubectl, capacity: float) -> None:
    """A plan for half as much again as a replica was found to serve."""
    schedule = {"timeZone": "Europe/Berlin", "base": {"requestsPerSecond": round(1.5 * capacity, 2)}}
    measured = {"requestsPerSecond": None, "benchmarkRef": {"name": NAME}}
    edit(kubectl, "chat", suspend=False, schedule=schedule, capacity=measured)
    eventually(lambda: "chat" in deployments(kubectl), what="the plan's Deployment")
    until_ready(kubectl, 2, "chat", timeout_s=START_S)
    assert status(kubectl, "chat")["capacity"]["source"] == NAME
    current = until_condition(kubectl, "chat", "CapacityCurrent", "True", "CapacityHolds")
    tell("plan", current["message"], condition(plan(kubectl, "chat"), "CapacityCurrent"))
