"""The local cluster itself: what the other e2e tests, and the demo, take for granted about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from e2e.support.workloads import condition, gpu_deployment, instant, is_ready, waiting_reason
from servingplan.localcluster.build import ensure_built
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.failures import KubectlFailed, StartFailed
from servingplan.localcluster.matching import FAILS_LABEL, Failure
from servingplan.localcluster.stages import READY_AT, Span

# A timestamp of the API has whole seconds.
RESOLUTION = timedelta(seconds=1)


def pods_of(kubectl, app):
    return kubectl.json("get", "pods", f"--selector=app={app}")["items"]


def pod_phases(kubectl, job):
    return [pod["status"]["phase"] for pod in kubectl.json("get", "pods", f"--selector=job-name={job}")["items"]]


def all_ready(count):
    return lambda pods: len(pods) == count and all(is_ready(pod) for pod in pods)


def test_pods_become_ready_after_a_start_drawn_from_the_given_range(local_cluster, kubectl, gpu_nodes):
    gpu_nodes(3)
    local_cluster.set_start_time(
        selector={"app": "slow"}, pull=Span(at_least=1, at_most=2), load=Span(at_least=2, at_most=4)
    )
    kubectl.apply(gpu_deployment("slow", replicas=3))

    running = eventually(
        lambda: pods_of(kubectl, "slow"),
        lambda pods: any(pod["status"]["phase"] == "Running" and not is_ready(pod) for pod in pods),
        what="a pod that runs and is not ready yet",
    )
    assert any(not pod["status"]["containerStatuses"][0]["started"] for pod in running)

    pods = eventually(lambda: pods_of(kubectl, "slow"), all_ready(3), what="three ready pods")
    for pod in pods:
        scheduled = instant(condition(pod, "PodScheduled")["lastTransitionTime"])
        drawn = instant(pod["metadata"]["annotations"][READY_AT])
        assert timedelta(seconds=3) <= drawn - scheduled <= timedelta(seconds=6) + 2 * RESOLUTION
        assert instant(condition(pod, "Ready")["lastTransitionTime"]) >= drawn - RESOLUTION


def test_a_start_in_progress_does_not_begin_again_when_the_pod_is_labelled(local_cluster, kubectl, gpu_nodes):
    gpu_nodes(1)
    local_cluster.set_start_time(selector={"app": "labelled"}, load=Span(at_least=4, at_most=4))
    kubectl.apply(gpu_deployment("labelled", replicas=1))
    (pod,) = eventually(
        lambda: pods_of(kubectl, "labelled"),
        lambda pods: pods and READY_AT in pods[0]["metadata"].get("annotations", {}),
        what="a pod with its timetable",
    )
    for number in range(8):
        kubectl("label", "pod", pod["metadata"]["name"], "--overwrite", f"touched={number}")
        time.sleep(0.5)
    (ready,) = eventually(lambda: pods_of(kubectl, "labelled"), all_ready(1), what="the ready pod")
    drawn = instant(ready["metadata"]["annotations"][READY_AT])
    assert drawn == instant(pod["metadata"]["annotations"][READY_AT])
    assert instant(condition(ready, "Ready")["lastTransitionTime"]) - drawn < timedelta(seconds=4)


def test_a_start_time_without_selector_holds_for_pods_that_no_other_selects(local_cluster, kubectl, gpu_nodes):
    gpu_nodes(2)
    local_cluster.set_start_time(load=Span(at_least=600, at_most=600))
    local_cluster.set_start_time(selector={"app": "chosen"})
    kubectl.apply(gpu_deployment("chosen", replicas=1), gpu_deployment("other", replicas=1))
    eventually(lambda: pods_of(kubectl, "chosen"), all_ready(1), what="the selected pod is quick")
    (other,) = pods_of(kubectl, "other")
    assert not is_ready(other)


def test_pods_stay_pending_with_the_schedulers_reason_when_gpus_are_gone(kubectl, gpu_nodes):
    gpu_nodes(1, gpus=2)
    kubectl.apply(gpu_deployment("crowd", replicas=3))
    pods = eventually(
        lambda: pods_of(kubectl, "crowd"),
        lambda pods: sum(is_ready(pod) for pod in pods) == 2 and len(pods) == 3,
        what="two of three pods ready",
    )
    (left,) = (pod for pod in pods if not is_ready(pod))
    refused = eventually(
        lambda: condition(kubectl.json("get", "pod", left["metadata"]["name"]), "PodScheduled"),
        what="the scheduler's verdict",
    )
    assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
    assert "Insufficient nvidia.com/gpu" in refused["message"]
    events = kubectl.json("get", "events", "--field-selector=reason=FailedScheduling")["items"]
    assert left["metadata"]["name"] in {event["involvedObject"]["name"] for event in events}

    gpu_nodes(1)
    eventually(lambda: pods_of(kubectl, "crowd"), all_ready(3), what="the third pod on the new node")


@pytest.mark.parametrize("failure", list(Failure))
def test_a_pod_fails_as_its_label_says_and_recovers_without_it(kubectl, gpu_nodes, failure):
    gpu_nodes(1)
    kubectl.apply(gpu_deployment("broken", replicas=1, pod_labels={FAILS_LABEL: failure.value}))
    (pod,) = eventually(
        lambda: pods_of(kubectl, "broken"),
        lambda pods: pods and waiting_reason(pods[0]) == failure,
        what=f"a pod that waits with {failure}",
    )
    assert not is_ready(pod)
    kubectl("label", "pod", pod["metadata"]["name"], f"{FAILS_LABEL}-")
    eventually(lambda: pods_of(kubectl, "broken"), all_ready(1), what="the pod recovers")


def test_a_crashing_container_counts_its_restarts_and_says_how_it_ended(kubectl, gpu_nodes):
    gpu_nodes(1)
    kubectl.apply(gpu_deployment("crash", replicas=1))
    (pod,) = eventually(lambda: pods_of(kubectl, "crash"), all_ready(1), what="a healthy pod")
    kubectl("label", "pod", pod["metadata"]["name"], f"{FAILS_LABEL}={Failure.CRASH}")
    (crashed,) = eventually(
        lambda: pods_of(kubectl, "crash"), lambda pods: waiting_reason(pods[0]) == Failure.CRASH, what="the crash"
    )
    (status,) = crashed["status"]["containerStatuses"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert not is_ready(crashed)


def test_deleted_pods_terminate_for_as_long_as_was_said_but_at_most_their_grace(local_cluster, kubectl, gpu_nodes):
    gpu_nodes(2)
    local_cluster.set_termination_time(Span(at_least=600, at_most=600), selector={"app": "stubborn"})
    local_cluster.set_termination_time(Span(at_least=600, at_most=600), selector={"app": "patient"})
    kubectl.apply(gpu_deployment("stubborn", replicas=1, grace_s=2), gpu_deployment("patient", replicas=1, grace_s=900))
    for app in ("stubborn", "patient"):
        eventually(lambda app=app: pods_of(kubectl, app), all_ready(1), what=f"{app} ready")
    kubectl("scale", "deployment", "stubborn", "patient", "--replicas=0")
    eventually(lambda: pods_of(kubectl, "stubborn"), lambda pods: not pods, what="the grace period ends the pod")
    (terminating,) = pods_of(kubectl, "patient")
    assert terminating["metadata"]["deletionTimestamp"]
    assert is_ready(terminating)


def test_a_drained_node_evicts_its_pods_and_its_deployment_moves_on(kubectl, gpu_nodes):
    first, second = gpu_nodes(2)
    kubectl.apply(gpu_deployment("moving", replicas=1))
    (pod,) = eventually(lambda: pods_of(kubectl, "moving"), all_ready(1), what="a ready pod")
    left, other = (first, second) if pod["spec"]["nodeName"] == first else (second, first)
    kubectl("drain", left, "--ignore-daemonsets", "--timeout=60s")
    (moved,) = eventually(lambda: pods_of(kubectl, "moving"), all_ready(1), what="a ready pod elsewhere")
    assert moved["spec"]["nodeName"] == other


def test_a_stopped_node_is_not_ready_and_takes_its_pods_readiness_until_it_starts(local_cluster, kubectl, gpu_nodes):
    (name,) = gpu_nodes(1)
    local_cluster.set_start_time(selector={"app": "late"}, load=Span(at_least=3, at_most=3))
    kubectl.apply(gpu_deployment("on-it", replicas=1, gpus=0), gpu_deployment("late", replicas=1))
    eventually(lambda: pods_of(kubectl, "on-it"), all_ready(1), what="a ready pod")
    local_cluster.stop_node(name)
    assert condition(kubectl.json("get", "node", name), "Ready")["status"] == "Unknown"
    (unready,) = eventually(
        lambda: pods_of(kubectl, "on-it"), lambda pods: not is_ready(pods[0]), what="a pod that is not ready"
    )
    (late,) = pods_of(kubectl, "late")
    if not is_ready(late):
        time.sleep(4)
        assert not is_ready(kubectl.json("get", "pod", late["metadata"]["name"]))
    local_cluster.start_node(name)
    eventually(lambda: pods_of(kubectl, "on-it"), all_ready(1), what="the pod, or its successor, is ready again")
    eventually(lambda: pods_of(kubectl, "late"), all_ready(1), what="the starting pod is ready after all")
    assert unready["spec"]["nodeName"] == name


def test_pods_of_a_stopped_node_are_evicted_after_the_tolerated_time(local_cluster, kubectl, gpu_nodes):
    (doomed,) = gpu_nodes(1)
    kubectl.apply(gpu_deployment("survivor", replicas=1))
    eventually(lambda: pods_of(kubectl, "survivor"), all_ready(1), what="a ready pod")
    (other,) = gpu_nodes(1)
    local_cluster.stop_node(doomed)
    found = eventually(
        lambda: pods_of(kubectl, "survivor"),
        lambda pods: any(is_ready(pod) and pod["spec"]["nodeName"] != doomed for pod in pods),
        what="a successor on the other node",
    )
    assert {pod["spec"]["nodeName"] for pod in found if is_ready(pod)} - {doomed} == {other}


def test_a_removed_node_takes_its_pods_along(local_cluster, kubectl, gpu_nodes):
    (name,) = gpu_nodes(1)
    kubectl.apply(gpu_deployment("gone", replicas=1))
    eventually(lambda: pods_of(kubectl, "gone"), all_ready(1), what="a ready pod")
    local_cluster.remove_node(name)
    successors = eventually(
        lambda: pods_of(kubectl, "gone"),
        lambda pods: pods and all("nodeName" not in pod["spec"] for pod in pods),
        what="only a pending successor",
    )
    assert [pod["status"]["phase"] for pod in successors] == ["Pending"]


def test_the_audit_log_tells_who_wrote_what_with_which_answer(local_cluster, kubectl, namespace):
    before = datetime.now(UTC)
    kubectl.apply(gpu_deployment("audited", replicas=0))
    kubectl("scale", "deployment", "audited", "--replicas=1")
    with pytest.raises(KubectlFailed, match="forbidden"):
        kubectl("delete", "deployment", "audited", "--as=stranger")
    kubectl("get", "deployments")

    admin = local_cluster.audit.entries(since=before, user="local-admin")
    seen = [
        (write.verb, write.resource, write.subresource, write.name, write.code)
        for write in admin
        if write.namespace == namespace
    ]
    assert seen == [("create", "deployments", "", "audited", 201), ("patch", "deployments", "scale", "audited", 200)]
    (refused,) = local_cluster.audit.entries(since=before, user="stranger")
    assert (refused.verb, refused.name, refused.code) == ("delete", "audited", 403)
    assert local_cluster.audit.entries(since=datetime.now(UTC), user="stranger") == []


def test_a_service_account_may_do_what_its_role_says_and_no_more(cluster, kubectl, namespace):
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader")
    reader = cluster.kubectl_as(cluster.kubeconfig_for(namespace, "reader"))

    assert f"system:serviceaccount:{namespace}:reader" in reader("auth", "whoami")
    assert "kube-root-ca.crt" in reader("get", "configmaps")
    with pytest.raises(KubectlFailed, match="forbidden"):
        reader("get", "secrets")
    with pytest.raises(KubectlFailed, match="forbidden"):
        reader("create", "configmap", "own")


def test_a_cluster_of_ones_own_is_reached_by_its_context(monkeypatch, local_cluster, namespace, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(local_cluster.kubeconfig))
    own = ExternalCluster("servingplan-local", tmp_path)
    assert namespace in own.kubectl("get", "namespaces")
    account = own.kubectl_as(own.kubeconfig_for(namespace, "default"))
    assert f"system:serviceaccount:{namespace}:default" in account("auth", "whoami")


def test_an_hpa_raises_a_deployment_to_its_minimum_without_any_metrics(kubectl, gpu_nodes):
    gpu_nodes(2)
    kubectl.apply(gpu_deployment("scaled", replicas=1))
    kubectl("autoscale", "deployment", "scaled", "--min=2", "--max=3")
    ready = eventually(lambda: pods_of(kubectl, "scaled"), all_ready(2), what="the minimum is reached")
    assert len(ready) == 2


def test_owned_objects_are_collected_and_a_jobs_pods_complete(kubectl, gpu_nodes):
    gpu_nodes(1)
    kubectl("create", "job", "short", "--image=registry.local/job:1")
    kubectl("wait", "--for=condition=Complete", "job/short", "--timeout=60s")
    assert pod_phases(kubectl, "short") == ["Succeeded"]
    kubectl("delete", "job", "short")
    eventually(lambda: pod_phases(kubectl, "short"), lambda phases: not phases, what="its pods are collected")


def test_a_validating_admission_policy_refuses_with_its_message(cluster, kubectl, namespace):
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'forbidden-name'", "message": "choose another"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": namespace},
        "spec": {
            "policyName": namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        },
    }
    cluster.kubectl.apply(policy, binding)

    def refusal():
        try:
            kubectl("create", "configmap", "forbidden-name", "--dry-run=server")
        except KubectlFailed as failed:
            return failed.stderr
        return ""

    try:
        assert "choose another" in eventually(refusal, what="the policy acts")
    finally:
        cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", namespace)


# ---- a cluster's end ---------------------------------------------------------------------------

HOLDER = """
import json, sys, time
from servingplan.localcluster.cluster import LocalCluster
with LocalCluster() as cluster:
    print(json.dumps({"pids": cluster.pids, "folder": str(cluster.folder)}), flush=True)
    {then}
"""


def start_holder(tmp_path: Path, then: str) -> tuple[subprocess.Popen[str], dict]:
    """A Python process of its own that holds a cluster in a folder of its own, and what it told about it."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER.replace("{then}", then)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "runs")},
    )
    assert holder.stdout is not None
    return holder, json.loads(holder.stdout.readline())


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("then", "kill"),
    [
        pytest.param("pass", None, id="the block ends"),
        pytest.param("raise SystemExit(3)", None, id="the program exits"),
        pytest.param("time.sleep(600)", signal.SIGKILL, id="the process is killed"),
        pytest.param("time.sleep(600)", signal.SIGINT, id="the user interrupts"),
        pytest.param("time.sleep(600)", signal.SIGTERM, id="the process is ended"),
    ],
)
def test_no_process_outlives_the_one_that_started_the_cluster(local_cluster, tmp_path, then, kill):
    holder, told = start_holder(tmp_path, then)
    if kill is not None:
        assert all(alive(pid) for pid in told["pids"].values())
        holder.send_signal(kill)
    holder.communicate(timeout=60)
    eventually(
        lambda: {name for name, pid in told["pids"].items() if alive(pid)},
        lambda left: not left,
        what="all components ended",
        timeout_s=20,
    )
    folder_is_left = Path(told["folder"]).exists()
    assert folder_is_left == (kill in {signal.SIGKILL, signal.SIGTERM})


def test_a_cluster_outlives_the_thread_that_started_it(local_cluster):
    cluster = LocalCluster()
    with ThreadPoolExecutor(max_workers=1) as caller:
        caller.submit(cluster.__enter__).result()
    try:
        assert len(cluster.pids) == 5
        assert all(alive(pid) for pid in cluster.pids.values())
        assert cluster.add_nodes(1) == ["node-1"]
    finally:
        cluster.stop()


def test_a_component_that_does_not_start_is_named_with_its_last_words(local_cluster, tmp_path):
    real = ensure_built()
    script = tmp_path / "controlplane"
    fails = 'case "$*" in *kube-scheduler.yaml*) echo its last words; exit 7;; esac'
    script.write_text(f'#!/bin/sh\n{fails}\nexec {real.controlplane} "$@"\n')
    script.chmod(0o755)
    with pytest.raises(StartFailed, match=r"(?s)kube-scheduler ended with 7.*its last words"):
        LocalCluster(programs=replace(real, controlplane=script)).__enter__()


def test_the_next_cluster_removes_what_a_killed_one_left_on_disk(local_cluster, tmp_path):
    killed, told = start_holder(tmp_path, "time.sleep(600)")
    killed.kill()
    killed.communicate(timeout=60)
    assert Path(told["folder"]).exists()
    following, _ = start_holder(tmp_path, "pass")
    following.communicate(timeout=60)
    assert not Path(told["folder"]).exists()
