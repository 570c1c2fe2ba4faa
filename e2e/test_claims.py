"""Whose target it is: two plans on one, names that somebody else has, targets that come later or cannot be scaled.

All tests share one operator at ten o'clock of a working day, when five replicas are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from e2e.support.kinds import GROUP, hpa, more_kinds, scaled_object
from e2e.support.operator import Installation, demo_clock
from e2e.support.shared import Run, shared_run
from e2e.support.workloads import gpu_deployment
from servingplan.api.resolve import resolve
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.failures import KubectlFailed
from servingplan.rendering.deployment import deployment
from servingplan.rendering.metadata import ADOPT_ANNOTATION, INSTALLATION_LABEL, PLAN_LABEL
from support.specs import document, targeting


@pytest.fixture(scope="module")
def run(
    cluster: LocalCluster | ExternalCluster, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """The operator, with GPUs for everything."""
    if not isinstance(cluster, LocalCluster):
        pytest.skip("needs simulated pods and the audit log, and SERVINGPLAN_E2E_CONTEXT names a real cluster")
    with ExitStack() as stack:
        nodes = cluster.add_nodes(6, gpus=8)
        stack.callback(lambda: [cluster.remove_node(node) for node in nodes])
        stack.enter_context(more_kinds(cluster, installation))
        clock = demo_clock("2026-12-01T10:00:00+01:00", 1)
        yield stack.enter_context(shared_run(cluster, installation, tmp_path_factory.mktemp("claims"), clock))


def applied(run: Run, *manifests: Mapping[str, Any]) -> None:
    """Applies as soon as the admission policy knows the installation's new targets."""

    def tried() -> bool:
        try:
            run.kubectl.apply(*manifests)
        except KubectlFailed:
            return False
        return True

    eventually(tried, what="an admission policy that lets the plan through")


def plan(run: Run, name: str, **changes: Any) -> dict[str, Any]:
    return document(name, run.namespace, **changes)


def an_engine_s(run: Run, name: str, *, installation: str) -> dict[str, Any]:
    """The Deployment that an installation renders for a plan of that name, with two replicas."""
    return deployment(resolve(plan(run, name), {}), None, 2, installation)


def next_second() -> None:
    """Ages count in whole seconds: what is created after this is younger than what was before."""
    time.sleep(1.1)


# ---- two plans ----


def test_the_older_of_two_plans_holds_the_target_and_the_other_takes_over_when_it_goes(run: Run) -> None:
    run.kubectl.apply(gpu_deployment("shared", replicas=2, gpus=0))
    applied(run, plan(run, "older", **targeting(name="shared")))
    next_second()
    run.kubectl.apply(plan(run, "younger", **targeting(name="shared"), reserve={"replicas": 2}))
    run.until_replicas("shared", 5)
    claimed = run.until("younger", "TargetResolved", "False", "TargetClaimed")
    assert "plan older is older and holds Deployment" in claimed["message"]
    assert run.until("older", "TargetResolved", "True")["reason"] == "TargetFound"
    run.kubectl("delete", "servingplan", "older")
    run.until("younger", "TargetResolved", "True", timeout_s=20)
    run.until_replicas("shared", 6)
    assert run.until("younger", "ReplicasOwned", "True")["reason"] == "SoleWriter"


def test_an_engine_and_a_plan_that_names_its_deployment_do_not_both_scale_it(run: Run) -> None:
    applied(run, plan(run, "owner"))
    run.until_replicas("owner", 5)
    next_second()
    run.kubectl.apply(plan(run, "guest", **targeting(name="owner"), reserve={"replicas": 3}))
    claimed = run.until("guest", "TargetResolved", "False", "TargetClaimed")
    assert "plan owner is older" in claimed["message"]
    assert run.replicas("owner") == 5
    assert run.until("owner", "Ready", "True")["reason"] == "AsPlanned"


# ---- names ----


def untouched(run: Run, kind: str, name: str) -> bool:
    """No request of the operator, not even one that was refused, was about that object."""
    return not [write for write in run.writes(name) if write.resource == kind]


def test_a_stranger_s_deployment_is_not_touched_even_when_it_is_given_to_us_with_another_selector(run: Run) -> None:
    run.kubectl.apply(gpu_deployment("taken", replicas=2, gpus=0))
    applied(run, plan(run, "taken"))
    taken = run.until("taken", "TargetResolved", "False", "NameTaken")
    assert f"annotate it with {ADOPT_ANNOTATION}=taken if its selector is {PLAN_LABEL}=taken" in taken["message"]
    run.kubectl("annotate", "deployment/taken", f"{ADOPT_ANNOTATION}=taken")
    # The annotation and the edit come by one after the other: once the edit was seen, so was the annotation.
    run.kubectl("patch", "servingplan/taken", "--type=merge", '--patch={"spec": {"suspend": true}}')
    eventually(
        lambda: run.plan("taken")["status"]["observedGeneration"], lambda seen: seen == 2, what="a look at the edit"
    )
    assert run.until("taken", "TargetResolved", "False")["reason"] == "NameTaken"
    assert untouched(run, "deployments", "taken")
    assert untouched(run, "services", "taken")
    assert run.replicas("taken") == 2


def test_a_deployment_that_is_given_to_us_with_our_selector_is_taken_over_and_rolled(run: Run) -> None:
    strangers = gpu_deployment("given", replicas=2)
    labels = {PLAN_LABEL: "given"}
    strangers["spec"]["selector"] = {"matchLabels": labels}
    strangers["spec"]["template"]["metadata"]["labels"] = labels
    run.kubectl.apply(strangers)
    applied(run, plan(run, "given"))
    run.until("given", "TargetResolved", "False", "NameTaken")
    assert untouched(run, "deployments", "given")
    run.kubectl("annotate", "deployment/given", f"{ADOPT_ANNOTATION}=given")
    run.until("given", "TargetResolved", "True")
    run.until("given", "Ready", "True", "AsPlanned")
    live = run.kubectl.json("get", "deployment", "given")
    (container,) = live["spec"]["template"]["spec"]["containers"]
    assert (live["spec"]["replicas"], container["image"]) == (5, run.plan("given")["spec"]["engine"]["image"])
    assert live["metadata"]["labels"][INSTALLATION_LABEL] == "default"


def test_a_deployment_whose_engine_has_another_container_is_refused_untouched_until_it_is_renamed(run: Run) -> None:
    strangers = gpu_deployment("renamed", replicas=2)
    labels = {PLAN_LABEL: "renamed"}
    strangers["metadata"]["annotations"] = {ADOPT_ANNOTATION: "renamed"}
    strangers["spec"]["selector"] = {"matchLabels": labels}
    strangers["spec"]["template"]["metadata"]["labels"] = labels
    strangers["spec"]["template"]["spec"]["containers"][0]["name"] = "vllm"
    run.kubectl.apply(strangers)
    applied(run, plan(run, "renamed"))
    refused = run.until("renamed", "TargetResolved", "False", "NameTaken")
    assert "its pods would run vllm beside the plan's container engine" in refused["message"]
    assert untouched(run, "deployments", "renamed")
    assert run.replicas("renamed") == 2
    strangers["spec"]["template"]["spec"]["containers"][0]["name"] = "engine"
    run.kubectl.apply(strangers)
    run.until("renamed", "Ready", "True", "AsPlanned")
    live = run.kubectl.json("get", "deployment", "renamed")
    assert [container["name"] for container in live["spec"]["template"]["spec"]["containers"]] == ["engine"]


def test_a_deployment_of_another_installation_is_left_to_it_until_it_is_given_to_us_and_then_not_restarted(
    run: Run,
) -> None:
    run.kubectl.apply(an_engine_s(run, "moved", installation="blue"))
    applied(run, plan(run, "moved"))
    run.until("moved", "TargetResolved", "False", "NameTaken")
    assert untouched(run, "deployments", "moved")
    pods = {pod["metadata"]["uid"] for pod in _pods(run, "moved")}
    run.kubectl("annotate", "deployment/moved", f"{ADOPT_ANNOTATION}=moved")
    run.until("moved", "Ready", "True", "AsPlanned")
    assert pods < {pod["metadata"]["uid"] for pod in _pods(run, "moved")}
    assert len(run.kubectl.json("get", "replicasets", f"--selector={PLAN_LABEL}=moved")["items"]) == 1
    assert run.kubectl.json("get", "deployment", "moved")["metadata"]["labels"][INSTALLATION_LABEL] == "default"


def _pods(run: Run, name: str) -> list[Any]:
    found: list[Any] = run.kubectl.json("get", "pods", f"--selector={PLAN_LABEL}={name}")["items"]
    return found


def test_a_stranger_s_service_is_not_touched_and_the_engine_runs_all_the_same(run: Run) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "fronted"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "web", "port": 80}]},
    }
    run.kubectl.apply(deepcopy(service))
    applied(run, plan(run, "fronted"))
    found = run.until("fronted", "Ready", "False", "NameTaken")
    assert f"Service {run.namespace}/fronted exists and is not this plan's" in found["message"]
    eventually(
        lambda: run.plan("fronted")["status"].get("readyReplicas"), lambda ready: ready == 5, what="a running engine"
    )
    assert untouched(run, "services", "fronted")
    assert run.kubectl.json("get", "service", "fronted")["spec"]["selector"] == {"app": "web"}


# ---- targets that are not there, or not to be scaled ----


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_target_that_comes_later_than_its_plan_is_found_within_seconds(run: Run, kind: str) -> None:
    name = f"later-{kind.lower()}"
    applied(run, plan(run, name, **targeting(kind, name=name)))
    missing = run.until(name, "TargetResolved", "False", "TargetNotFound")
    assert f"{kind} {run.namespace}/{name}" in missing["message"]
    assert "Create it, or correct spec.targetRef" in missing["message"]
    workload = gpu_deployment(name, replicas=1, gpus=0)
    workload["kind"] = kind
    workload["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    run.kubectl.apply(workload)
    run.until(name, "TargetResolved", "True", timeout_s=20)
    run.until_replicas(name, 5, kind=kind.lower())


def test_a_kind_without_scale_is_no_target(run: Run) -> None:
    box = {"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": {"name": "box"}, "spec": {"replicas": 1}}
    run.kubectl.apply(box)
    applied(run, plan(run, "boxed", **targeting("Box", f"{GROUP}/v1", "box")))
    found = run.until("boxed", "TargetResolved", "False", "TargetNotScalable")
    assert f"kind Box of {GROUP}/v1 has no /scale" in found["message"]


def test_an_autoscaler_that_a_scaled_object_made_is_refused_and_the_scaled_object_named(run: Run) -> None:
    run.kubectl.apply(gpu_deployment("keda", replicas=1, gpus=0), scaled_object("keda", "keda"))
    made = hpa("keda-hpa-keda", "keda", minimum=1, maximum=8)
    owner = run.kubectl.json("get", "scaledobject", "keda")
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    made["metadata"]["ownerReferences"] = [reference]
    run.kubectl.apply(made)
    # The version of the API that the plan speaks does not matter.
    applied(run, plan(run, "keda", **targeting("HorizontalPodAutoscaler", "autoscaling/v1", "keda-hpa-keda")))
    found = run.until("keda", "TargetResolved", "False", "OwnedByScaledObject")
    assert "is made by ScaledObject keda" in found["message"]
    assert "point spec.targetRef of a new plan at ScaledObject keda" in found["message"]
    assert untouched(run, "horizontalpodautoscalers", "keda-hpa-keda")


def test_the_gpus_of_a_replica_are_read_from_the_target_s_pods(run: Run) -> None:
    run.kubectl.apply(gpu_deployment("two-gpus", replicas=1, gpus=2))
    applied(run, plan(run, "two-gpus", **targeting(name="two-gpus")))
    run.until("two-gpus", "Ready", "True")
    assert run.plan("two-gpus")["status"]["gpuHours"]["monthFlat"] == 730 * 5 * 2
    found = run.until("two-gpus", "GPUCapacitySufficient", "True")
    assert "the coming week asks for 10" in found["message"]
