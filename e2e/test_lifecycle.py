"""The life of a plan beside its schedule: edits, rolling updates, node drains, suspension, repair, deletion."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import (
    OPERATOR_AGENT,
    deployments,
    edit,
    events,
    plan,
    pods,
    replica_sets,
    status,
    uids,
    until_condition,
    until_observed,
    until_ready,
    until_status,
)
from servingplan.localcluster.kubectl import Kubectl
from servingplan.localcluster.stages import Span
from support.specs import ENGINE, config_map, document, scheduled

NOON = "2026-12-01T12:00:00+01:00"
"""A Tuesday: five replicas, and no change for hours."""

RELIST_S = 5


@pytest.fixture
def at_noon(run_operator):
    """Starts an operator whose day stands still at noon, for what a test does."""
    return lambda *options: run_operator(*options, clock=demo_clock(NOON, 1))


def names(kubectl: Kubectl, kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in kubectl.json("get", kind)["items"]}


# ---- deletion ----


def test_a_deleted_plan_takes_its_objects_along_or_leaves_them_as_it_says(gpu_nodes, kubectl, namespace, at_noon):
    gpu_nodes(3, gpus=5)
    retained = document("retained", namespace, engine={**ENGINE, "deletionPolicy": "Retain"})
    orphaned = document("orphaned", namespace)
    kubectl.apply(document("deleted", namespace), retained, orphaned)
    at_noon()
    until_ready(kubectl, 5, "deleted", "retained", "orphaned")
    kept = {name: (uids(pods(kubectl, name)), replica_sets(kubectl, name)) for name in ("retained", "orphaned")}
    kubectl("delete", "servingplan", "deleted", "retained")
    kubectl("delete", "servingplan", "orphaned", "--cascade=orphan")
    for kind in ("deployments", "services", "poddisruptionbudgets"):
        left = eventually(lambda kind=kind: names(kubectl, kind), {"retained", "orphaned"}.__eq__, what=f"{kind} left")
        assert "deleted" not in left
    eventually(lambda: pods(kubectl, "deleted"), lambda found: not found, what="no pods of the deleted plan")
    assert not [d for d in deployments(kubectl).values() if "ownerReferences" in d["metadata"]]

    kubectl.apply(retained, orphaned)
    for name, (old_pods, old_sets) in kept.items():
        until_condition(kubectl, name, "Ready", "True", "AsPlanned")
        assert uids(pods(kubectl, name)) == old_pods
        assert replica_sets(kubectl, name) == old_sets
    owner = eventually(
        lambda: deployments(kubectl)["orphaned"]["metadata"].get("ownerReferences"), what="the owner of what was kept"
    )
    assert owner[0]["uid"] == plan(kubectl, "orphaned")["metadata"]["uid"]
    assert "ownerReferences" not in deployments(kubectl)["retained"]["metadata"]


# ---- edits ----


@pytest.mark.parametrize(("reserve", "replicas"), [(0, 4), (1, 5)], ids=["a spare GPU", "a reserve of 1"])
def test_only_an_edit_of_the_engine_rolls_and_it_keeps_the_need_ready(
    gpu_nodes, local_cluster, kubectl, namespace, at_noon, reserve, replicas
):
    gpu_nodes(5)
    kubectl.apply(document(namespace=namespace, reserve={"replicas": reserve}))
    at_noon()
    until_ready(kubectl, replicas, "support-chat")
    before = uids(pods(kubectl)), replica_sets(kubectl)
    edit(
        kubectl,
        workload={"tokens": {"output": {"p99": 1200}}, "objectives": {"tpot": {"p95": "80ms"}}},
        leadTime={"declared": "15m"},
        scaleDown={"every": "3m"},
        bounds={"maxReplicas": 7},
    )
    until_observed(kubectl)
    until_condition(kubectl, "support-chat", "Ready", "True", "AsPlanned")
    assert (uids(pods(kubectl)), replica_sets(kubectl)) == before

    local_cluster.set_start_time(load=Span(at_least=1, at_most=1.5))
    template = deployments(kubectl)["support-chat"]["spec"]["template"]
    edit(kubectl, engine={"maxNumSeqs": 64})
    seen = watch_roll(kubectl, template)
    assert min(available for available, _ in seen) >= 4
    assert max(total for _, total in seen) <= 5
    assert len(replica_sets(kubectl)) == 2
    assert not uids(pods(kubectl)) & before[0]
    until_condition(kubectl, "support-chat", "Ready", "True", "AsPlanned")


def watch_roll(kubectl: Kubectl, old_template: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Available and existing replicas, looked at until the Deployment has its newest template everywhere."""
    seen = []

    def rolled(deployment: Mapping[str, Any]) -> bool:
        spec, found = deployment["spec"], deployment["status"]
        seen.append((found.get("availableReplicas", 0), found["replicas"]))
        counts = {found.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
        observed = found["observedGeneration"] == deployment["metadata"]["generation"]
        return observed and spec["template"] != old_template and counts == {spec["replicas"]}

    eventually(lambda: deployments(kubectl)["support-chat"], rolled, what="the rolled out engine")
    return seen


def test_an_edit_of_a_calendar_acts_within_seconds(gpu_nodes, kubectl, namespace, at_noon):
    gpu_nodes(5)
    holidays = config_map("holidays", {"dates": "2026-12-25\n"}, namespace)
    holidays["metadata"]["labels"] = {"servingplan.dev/config": "true"}
    calendar = {"name": "holidays", "configMap": {"name": "holidays"}, "treatAs": "Base"}
    kubectl.apply(holidays, document(namespace=namespace, **scheduled(calendars=[calendar])))
    at_noon()
    until_ready(kubectl, 5, "support-chat")
    kubectl.apply({**holidays, "data": {"dates": "2026-12-01\n2026-12-25\n"}})
    replicas = eventually(
        lambda: deployments(kubectl)["support-chat"]["spec"]["replicas"],
        lambda count: count < 5,
        what="the first step down on what is a holiday now",
        timeout_s=5,
    )
    assert replicas == 4
    found = until_status(
        kubectl, until=lambda found: found["window"] != "working-day", what="another level", timeout_s=5
    )
    assert found["window"] == "base"


# ---- nodes ----


def test_a_node_drain_takes_one_replica_at_a_time(gpu_nodes, local_cluster, kubectl, namespace, at_noon):
    first, *_ = gpu_nodes(1, gpus=2)
    kubectl.apply(document(namespace=namespace))
    at_noon()
    eventually(lambda: on_node(kubectl, first), lambda found: len(found) == 2, what="two replicas on the first node")
    gpu_nodes(5)
    until_ready(kubectl, 5, "support-chat")
    until_condition(kubectl, "support-chat", "ReserveIntact", "False", "NodeConcentration")
    local_cluster.set_start_time(load=Span(at_least=2, at_most=2.5))
    seen = []
    with ThreadPoolExecutor(max_workers=1) as pool:
        drain = pool.submit(
            kubectl, "drain", first, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s", timeout_s=90
        )
        while not drain.done():
            seen.append(deployments(kubectl)["support-chat"]["status"].get("availableReplicas", 0))
    assert "evicted" in drain.result()
    assert not on_node(kubectl, first)
    assert min(seen) == 4
    until_ready(kubectl, 5, "support-chat")
    until_condition(kubectl, "support-chat", "ReserveIntact", "True", "ReserveReady")


def on_node(kubectl: Kubectl, node: str) -> list[Mapping[str, Any]]:
    return [pod for pod in pods(kubectl) if pod["spec"].get("nodeName") == node]


# ---- suspension and repair ----


def test_a_suspended_plan_writes_status_ledger_and_events_alone_and_shows_what_it_would_do(
    gpu_nodes, local_cluster, kubectl, namespace, at_noon
):
    gpu_nodes(5)
    kubectl.apply(document("new", namespace, suspend=True), document("running", namespace))
    at_noon(f"--relist-seconds={RELIST_S}")
    until_ready(kubectl, 5, "running")
    new = until_condition(kubectl, "new", "Ready", "True", "Suspended")
    assert "suspended" in new["message"]
    assert status(kubectl, "new")["desiredReplicas"] == 5
    assert status(kubectl, "new")["decision"][-1] == {
        "name": "desired",
        "value": "5",
        "reason": "Suspended",
        "message": "suspended: 5 would be set, nothing is written",
    }
    edit(kubectl, "running", suspend=True)
    until_condition(kubectl, "running", "Ready", "True", "Suspended")
    count = len(written(local_cluster, namespace))
    kubectl("scale", "deployment", "running", "--replicas=1")
    for name in ("new", "running"):
        edit(kubectl, name, leadTime={"declared": "11m"})
        until_observed(kubectl, name)
    assert deployments(kubectl)["running"]["spec"]["replicas"] == 1
    assert set(deployments(kubectl)) == {"running"}
    since = written(local_cluster, namespace)[count:]
    assert {what for what, _ in since} <= {"servingplans/status", "configmaps/", "events/"}
    assert ("servingplans/status", "running") in since
    edit(kubectl, "running", suspend=False)
    until_ready(kubectl, 5, "running")


def written(cluster, namespace: str) -> list[tuple[str, str]]:
    return [
        (f"{write.resource}/{write.subresource}", write.name)
        for write in cluster.audit.entries()
        if write.namespace == namespace and write.user_agent.startswith(OPERATOR_AGENT)
    ]


def test_what_a_person_changes_in_owned_objects_is_put_right(gpu_nodes, kubectl, namespace, at_noon):
    gpu_nodes(5)
    kubectl.apply(document(namespace=namespace))
    at_noon(f"--relist-seconds={RELIST_S}")
    until_ready(kubectl, 5, "support-chat")
    until_condition(kubectl, "support-chat", "Ready", "True", "AsPlanned")
    service = kubectl.json("get", "service", "support-chat")["spec"]["selector"]
    other = {"spec": {"selector": {"servingplan.dev/serving": "false"}}}
    kubectl("patch", "service", "support-chat", "--type=merge", "-p", json.dumps(other))
    kubectl("delete", "poddisruptionbudget", "support-chat")
    kubectl("set", "image", "deployment/support-chat", "engine=registry.local/other:1")
    eventually(
        lambda: deployments(kubectl)["support-chat"]["spec"]["template"]["spec"]["containers"][0]["image"],
        ENGINE["image"].__eq__,
        what="the plan's own image",
    )
    eventually(
        lambda: kubectl.json("get", "service", "support-chat")["spec"]["selector"],
        service.__eq__,
        what="the Service's own selector",
    )
    budgets = eventually(lambda: names(kubectl, "poddisruptionbudgets"), what="a disruption budget")
    assert budgets == {"support-chat"}
    until_ready(kubectl, 5, "support-chat")
    assert until_condition(kubectl, "support-chat", "Ready", "True")["reason"] == "AsPlanned"


# ---- kubectl ----


def test_kubectl_waits_for_shows_describes_and_compares_a_plan(gpu_nodes, kubectl, namespace, at_noon):
    gpu_nodes(5)
    applied = document(namespace=namespace)
    kubectl.apply(applied)
    at_noon()
    kubectl("wait", "--for=condition=Ready", "splan/support-chat", "--timeout=60s", timeout_s=90)
    until_status(kubectl, until=lambda found: found["readyReplicas"] == 5, what="five ready replicas")
    _, row = kubectl("get", "splan").splitlines()
    cells = row.split()
    assert " ".join(cells[:-1]) == "support-chat working-day 5 5 2 at Tue 20:00 CET True AsPlanned"
    assert kubectl("get", "splan", "-o", "wide").splitlines()[1].split()[-3:] == ["5", "1", "12m"]
    eventually(lambda: events(kubectl), what="an event about the plan")
    described = kubectl("describe", "splan", "support-chat")
    for words in ("at least the 5 required now are ready", "within 1 to 8", "window working-day asks for 18/s"):
        assert words in described
    assert compared(kubectl, applied) == (0, "")
    code, difference = compared(kubectl, document(namespace=namespace, bounds={"minReplicas": 1, "maxReplicas": 9}))
    assert code == 1
    assert "+    maxReplicas: 9" in difference


def compared(kubectl: Kubectl, manifest: Mapping[str, Any]) -> tuple[int, str]:
    """The exit code and the output of `kubectl diff`."""
    command = (str(kubectl.program), *kubectl.options, "diff", "-f", "-")
    done = subprocess.run(command, input=json.dumps(manifest), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout
