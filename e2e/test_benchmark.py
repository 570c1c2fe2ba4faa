"""A CapacityBenchmark in a cluster: its pool, its Job, its result, and that nothing runs when it is over.

No container runs here: a test writes into the Job's pod what the kubelet would, with the report of a real ramp.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.support import runners
from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.runners import end_runner, write_pod_status
from e2e.support.workloads import condition
from servingplan.benchmarking.report import report
from servingplan.localcluster.audit import Write
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.kubectl import Kubectl
from support.benches import a_found_ramp
from support.evidence import RUNNER, benchmark_document
from support.specs import document, scheduled

NAME = "qwen3-l40s"
NIGHT = "2026-12-01T01:00:00+01:00"

Object = Mapping[str, Any]


@pytest.fixture
def held(local_cluster):
    """Pods of Jobs run until a test ends them."""
    local_cluster.hold_jobs()
    return local_cluster


@pytest.fixture
def operate(run_operator) -> Callable[..., Any]:
    """Starts an operator at night."""

    def start(*options: str, image: str = RUNNER, factor: int = 1, at: str = NIGHT) -> Any:
        return run_operator(f"--runner-image={image}", *options, clock=demo_clock(at, factor))

    return start


@pytest.fixture
def written(local_cluster, installation, namespace) -> Callable[[datetime], list[Write]]:
    """The operator's writes in the test's namespace since a real instant, the Lease left out."""
    user = f"system:serviceaccount:{installation.home}:operator-servingplan"

    def since(instant: datetime) -> list[Write]:
        entries = local_cluster.audit.entries(since=instant, user=user)
        return [entry for entry in entries if entry.namespace == namespace and entry.resource != "leases"]

    return since


def plan(namespace: str, **changes: Any) -> dict[str, Any]:
    """A plan that leaves the cluster alone: what is counted here is the benchmark's."""
    return document(namespace=namespace, suspend=True, **changes)


def benchmark(kubectl: Kubectl) -> Object:
    found: Object = kubectl.json("get", "capacitybenchmark", NAME)
    return found


def until_complete(kubectl: Kubectl, status: str, *reasons: str, generation: int = 1, timeout_s: float = 60) -> Object:
    """Waits until `Complete` is so for a generation, and returns the condition."""

    def holds(found: Object) -> bool:
        return (found.get("status"), found.get("observedGeneration")) == (status, generation) and (
            not reasons or found["reason"] in reasons
        )

    return eventually(
        lambda: condition(benchmark(kubectl), "Complete") or {},
        holds,
        what=f"Complete {status} {reasons} of generation {generation}",
        timeout_s=timeout_s,
    )


def trial_pods(kubectl: Kubectl) -> list[Object]:
    found: list[Object] = kubectl.json("get", "pods", f"--selector=servingplan.dev/trial={NAME}")["items"]
    return found


def jobs(kubectl: Kubectl) -> dict[str, Object]:
    found = kubectl.json("get", "jobs", f"--selector=servingplan.dev/evidence={NAME}")["items"]
    return {job["metadata"]["name"]: job for job in found}


def runner(kubectl: Kubectl, *, size: int = 1, but: Collection[str] = ()) -> Object:
    """The pod of the Job of a pool size, once it runs. but: UIDs of others."""
    return runners.runner(kubectl, NAME, piece=size, but=but)


def nothing_runs(kubectl: Kubectl) -> None:
    eventually(lambda: trial_pods(kubectl), lambda pods: not pods, what="no pod of the trial pool")
    eventually(
        lambda: [job["status"].get("active", 0) for job in jobs(kubectl).values()],
        lambda active: not any(active),
        what="no Job with a pod",
    )


def test_a_benchmark_runs_in_a_pool_of_its_own_that_is_gone_when_the_capacity_is_known(
    held, gpu_nodes, kubectl, namespace, operate, written
):
    nodes = gpu_nodes(
        1, labels={"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/cuda.driver-version.full": "570.86"}
    )
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace))
    operate()
    pod = runner(kubectl)
    assert until_complete(kubectl, "False")["reason"] == "Running"
    (engine,) = trial_pods(kubectl)
    assert engine["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert engine["spec"]["nodeName"] in nodes
    assert "servingplan.dev/plan" not in engine["metadata"]["labels"] | pod["metadata"]["labels"]
    service = kubectl.json("get", "service", f"{NAME}-trial")
    assert service["spec"]["selector"].items() <= engine["metadata"]["labels"].items()
    assert f"--url=http://{NAME}-trial:8000" in pod["spec"]["containers"][0]["args"]

    digest = "registry.local/vllm/vllm-openai@sha256:" + "ab" * 32
    states = [{**each, "imageID": digest} for each in engine["status"]["containerStatuses"]]
    write_pod_status(kubectl, engine, {"containerStatuses": states})
    end_runner(kubectl, pod, report(a_found_ramp()))
    found = until_complete(kubectl, "True", "Found")
    assert found["message"] == "one replica holds 5 requests/s at the objectives, and does not hold 5.12"
    nothing_runs(kubectl)

    status = benchmark(kubectl)["status"]
    assert status["capacity"] == {
        "requestsPerSecond": 5,
        "failingRequestsPerSecond": 5.12,
        "perPoolSize": [{"replicas": 1, "requestsPerSecond": 5, "failingRequestsPerSecond": 5.12}],
    }
    level = status["levels"][1]
    assert (level["replicas"], level["rate"], level["verdict"], level["because"]) == (1, 5.12, "Fail", "Misses")
    assert (level["runs"], level["void"], level["voidBecause"]) == (3, 1, ["WarmCache"])
    assert status["atCapacity"]["inFlightMean"] == 30
    fingerprint = status["fingerprint"]
    assert (fingerprint["product"], fingerprint["driver"]) == ("NVIDIA-L40S", "570.86")
    assert (fingerprint["imageDigest"], fingerprint["vllm"]) == (digest, "0.32.0")
    assert fingerprint["objectives"]["ttft"] == {"p95": "1s500ms"}
    assert {"startedAt", "finishedAt"} <= set(status)

    until_quiet(written)
    quiet_since = datetime.now(UTC)
    kubectl("label", "capacitybenchmark", NAME, "team=support")
    time.sleep(8)
    assert written(quiet_since) == []


def until_quiet(written: Callable[[datetime], list[Write]]) -> None:
    eventually(
        lambda: written(datetime.now(UTC) - timedelta(seconds=4)), lambda writes: not writes, what="no more writes"
    )


def test_what_a_benchmark_writes_is_counted_and_an_edited_spec_measures_anew_beside_what_is_known(
    held, gpu_nodes, kubectl, namespace, operate, written
):
    gpu_nodes(2)
    began = datetime.now(UTC)
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace))
    operate()
    first = runner(kubectl)
    end_runner(kubectl, first, report(a_found_ramp()))
    until_complete(kubectl, "True", "Found")
    until_quiet(written)
    counted = [f"{write.resource}/{write.subresource}".rstrip("/") for write in written(began) if write.code < 400]
    budget = {
        "deployments": 1, "services": 1, "deployments/scale": 1, "jobs": 2, "capacitybenchmarks/status": 4,
        "servingplans/status": 2, "configmaps": 2, "events": 8,
    }  # fmt: skip
    assert set(counted) <= set(budget)
    assert {name: number for name in budget if (number := counted.count(name)) > budget[name]} == {}

    kubectl.apply(benchmark_document(NAME, namespace, cv=1.5, poolSizes=[1, 2]))
    anew = runner(kubectl, but={first["metadata"]["uid"]})
    assert benchmark(kubectl)["status"]["capacity"]["requestsPerSecond"] == 5
    end_runner(kubectl, anew, report(a_found_ramp(4.0)))
    second = runner(kubectl, size=2)
    assert {"--replicas=2", "--start=5.6"} <= set(second["spec"]["containers"][0]["args"])
    assert len(trial_pods(kubectl)) == 2
    end_runner(kubectl, second, report(a_found_ramp(3.5, replicas=2)))
    until_complete(kubectl, "True", "Found", generation=2)
    points = benchmark(kubectl)["status"]["capacity"]["perPoolSize"]
    assert [(point["replicas"], point["requestsPerSecond"]) for point in points] == [(1, 4), (2, 3.5)]
    nothing_runs(kubectl)


def test_a_suspended_benchmark_gives_its_accelerators_back_and_goes_on_with_the_same_job(
    held, gpu_nodes, kubectl, namespace, operate
):
    gpu_nodes(1)
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace))
    operate()
    before = runner(kubectl)
    kubectl.apply(benchmark_document(NAME, namespace, suspend=True))
    until_complete(kubectl, "False", "Suspended", generation=2)
    nothing_runs(kubectl)
    kubectl.apply(benchmark_document(NAME, namespace, suspend=False))
    until_complete(kubectl, "False", "Running", generation=3)
    runner(kubectl, but={before["metadata"]["uid"]})
    assert list(jobs(kubectl)) == [before["metadata"]["labels"]["job-name"]]


def test_a_benchmark_keeps_to_quiet_hours_and_gives_way_before_the_next_rise(
    held, gpu_nodes, kubectl, namespace, operate
):
    gpu_nodes(1)
    night = [{"name": "report", "start": "2026-12-01T02:00", "end": "2026-12-01T02:30", "requestsPerSecond": 9}]
    kubectl.apply(plan(namespace, **scheduled(windows=None, overrides=night)))
    kubectl.apply(benchmark_document(NAME, namespace, quietHoursOf={"name": "support-chat"}))
    # The lead is 12 minutes and the handover 2: at 01:46 it gives way, at 02:30 it goes on.
    operate(factor=60, at="2026-12-01T01:10:00+01:00")
    before = runner(kubectl)
    message = until_complete(kubectl, "False", "WaitingForQuietHours")["message"]
    assert message == "ServingPlan support-chat is busy, or about to be, until Tue 1 Dec 02:30 CET"
    nothing_runs(kubectl)
    runner(kubectl, but={before["metadata"]["uid"]})
    until_complete(kubectl, "False", "Running")
    assert len(jobs(kubectl)) == 1


def test_a_runner_that_fails_says_why_and_leaves_nothing_running(held, gpu_nodes, kubectl, namespace, operate):
    gpu_nodes(1)
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace))
    operate()
    pod = runner(kubectl)
    words = {"exitCode": 3, "reason": "Error", "message": "http://qwen3-l40s-trial:8000 cannot be reached"}
    again = [
        {**each, "restartCount": 1, "lastState": {"terminated": words}} for each in pod["status"]["containerStatuses"]
    ]
    write_pod_status(kubectl, pod, {"containerStatuses": again})
    (job,) = jobs(kubectl)
    kubectl("patch", "job", job, "--type=merge", '--patch={"spec": {"activeDeadlineSeconds": 1}}')
    message = until_complete(kubectl, "False", "RunnerFailed")["message"]
    assert message.startswith(f"Job {job} failed: Job was active longer than specified deadline")
    nothing_runs(kubectl)


def test_a_deleted_benchmark_takes_all_that_runs_for_it_along(held, gpu_nodes, kubectl, namespace, operate):
    gpu_nodes(1)
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace))
    operate()
    runner(kubectl)
    assert "finalizers" not in benchmark(kubectl)["metadata"]
    kubectl("delete", "capacitybenchmark", NAME)
    kinds = "deployments,services,jobs,pods"
    eventually(lambda: kubectl.json("get", kinds)["items"], lambda left: not left, what="nothing of the benchmark left")


def test_what_cannot_be_measured_says_so_with_every_problem_and_begins_when_they_are_gone(
    held, gpu_nodes, kubectl, namespace, operate
):
    gpu_nodes(1)
    kubectl.apply(benchmark_document(NAME, namespace))
    operate(image="")
    until_complete(kubectl, "False", "Invalid")
    found = condition(benchmark(kubectl), "Valid")
    assert found["status"] == "False"
    assert "ServingPlan 'support-chat' does not exist in this namespace" in found["message"]
    assert "evidence.runnerImage" in found["message"]
    kubectl.apply(plan(namespace), benchmark_document(NAME, namespace, runner={"image": RUNNER}))
    runner(kubectl)
    assert condition(benchmark(kubectl), "Valid")["status"] == "True"


def test_an_author_gets_no_more_by_a_benchmark_than_by_hand(installation, kubectl, namespace):
    author = f"--as=system:serviceaccount:{namespace}:default"

    def may(name: str, resource: str) -> None:
        kubectl("create", "role", name, "--verb=create", f"--resource={resource}")
        kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={namespace}:default")

    def said() -> str:
        try:
            return kubectl(
                "create", "--dry-run=server", author, "-f", "-", stdin=json.dumps(benchmark_document(NAME, namespace))
            )
        except KubectlFailed as refusal:
            return str(refusal)

    may("benchmarks", "capacitybenchmarks.servingplan.dev")
    eventually(said, lambda words: "you may not create jobs.batch in namespace" in words, what="a refusal for Jobs")
    may("jobs", "jobs.batch")
    eventually(said, lambda words: "you may not create deployments.apps in" in words, what="a refusal for Deployments")
    may("deployments", "deployments.apps")
    eventually(said, lambda words: f"{NAME} created" in words, what="nothing to refuse")
