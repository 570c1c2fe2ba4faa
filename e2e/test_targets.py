"""What a plan may name as its target, from a Deployment to the minimum of an autoscaler, through a ramp and a fall.

The morning runs once, 120-fold, for targets of every kind; each test looks at what one of them was set to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.support.eventually import eventually
from e2e.support.external import ExternalCluster
from e2e.support.kinds import hpa, more_kinds, pool, pool_controller, scaled_object
from e2e.support.operator import Installation, demo_clock, sleep_until
from e2e.support.shared import Run, shared_run
from e2e.support.workloads import condition, gpu_deployment
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.failures import KubectlFailed
from servingplan.localcluster.stages import Span
from support.specs import WORKING_DAY, document, scheduled, targeting

FACTOR = 120
MINUTE = 60 / FACTOR
SHORT_DAY = scheduled(windows=[{**WORKING_DAY, "end": "08:30"}])

TARGETS = {
    "deployment": ("deployment", "apps/v1", "Deployment"),
    "statefulset": ("statefulset", "apps/v1", "StatefulSet"),
    "pool": ("pool", "e2e.servingplan.dev/v1", "Pool"),
    "hpa": ("hpa", "autoscaling/v2", "HorizontalPodAutoscaler"),
    "scaledobject": ("scaledobject", "keda.sh/v1alpha1", "ScaledObject"),
}
"""Plan and target of one name: the resource as kubectl calls it, apiVersion and kind."""


@dataclass(frozen=True, kw_only=True)
class Morning:
    """The targets and plans before the ramp, at its start, and after the fall."""

    run: Run
    before: dict[str, dict[str, Any]]
    at_ramp: dict[str, dict[str, Any]]
    after: dict[str, dict[str, Any]]
    hpa_as_applied: dict[str, Any]


@pytest.fixture(scope="module")
def morning(
    cluster: LocalCluster | ExternalCluster, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Morning]:
    """From 07:10 to the end of a fall that begins at 08:30; pods take 3 to 6 of the 12 minutes of lead."""
    if not isinstance(cluster, LocalCluster):
        pytest.skip("needs simulated pods and the audit log, and SERVINGPLAN_E2E_CONTEXT names a real cluster")
    with ExitStack() as stack:
        nodes = cluster.add_nodes(4, gpus=8)
        stack.callback(lambda: [cluster.remove_node(node) for node in nodes])
        stack.callback(cluster.reset_times)
        cluster.set_start_time(load=Span(at_least=3 * MINUTE, at_most=6 * MINUTE))
        stack.enter_context(more_kinds(cluster, installation))
        clock = demo_clock("2026-12-01T07:10:00+01:00", FACTOR)
        run = stack.enter_context(shared_run(cluster, installation, tmp_path_factory.mktemp("morning"), clock))
        run.kubectl.apply(*_workloads())
        stack.enter_context(pool_controller(cluster.kubeconfig, run.namespace, "pool"))
        hpa_as_applied = run.kubectl.json("get", "hpa", "hpa")["spec"]
        eventually(lambda: _applied(run), what="an admission policy that knows the installation's new targets")
        for name in TARGETS:
            run.until(name, "TargetResolved", "True")
        before = _look(run)
        sleep_until(clock, "2026-12-01T08:00:00+01:00")
        at_ramp = _look(run)
        sleep_until(clock, "2026-12-01T08:42:00+01:00")
        yield Morning(run=run, before=before, at_ramp=at_ramp, after=_look(run), hpa_as_applied=hpa_as_applied)


def _applied(run: Run) -> bool:
    try:
        run.kubectl.apply(*_plans(run.namespace))
    except KubectlFailed:
        return False
    return True


def _workloads() -> list[dict[str, Any]]:
    """Two replicas of everything; the pool's and the autoscalers' pods are those of Deployments."""
    stateful = gpu_deployment("statefulset", replicas=2)
    stateful["kind"] = "StatefulSet"
    stateful["spec"] |= {"serviceName": "statefulset", "podManagementPolicy": "Parallel"}
    return [
        *(gpu_deployment(name, replicas=2) for name in ("deployment", "pool", "under-hpa", "under-scaledobject")),
        stateful,
        pool("pool", replicas=2),
        hpa("hpa", "under-hpa", minimum=2, maximum=4),
        scaled_object("scaledobject", "under-scaledobject", minReplicaCount=2, cooldownPeriod=60),
    ]


def _plans(namespace: str) -> list[dict[str, Any]]:
    return [
        document(name, namespace, **targeting(kind, api_version, name), **SHORT_DAY)
        for name, (_, api_version, kind) in TARGETS.items()
    ]


def _look(run: Run) -> dict[str, dict[str, Any]]:
    """Target, plan and Deployment of each, as they are now."""
    found = {}
    for name, (resource, _, _) in TARGETS.items():
        target = run.kubectl.json("get", resource, name)
        found[name] = {"target": target, "plan": run.plan(name)}
    return found


FIELDS = {
    "deployment": "replicas",
    "statefulset": "replicas",
    "pool": "replicas",
    "hpa": "minReplicas",
    "scaledobject": "minReplicaCount",
}
RAISED = {"deployment": 5, "statefulset": 5, "pool": 5, "hpa": 4, "scaledobject": 5}
"""The HPA's own maximum is 4."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_raised_before_the_ramp_and_falls_after_the_window(morning: Morning, name: str) -> None:
    seen = [each[name]["target"]["spec"][FIELDS[name]] for each in (morning.before, morning.at_ramp, morning.after)]
    assert seen == [2, RAISED[name], 2], morning.run.operator.log


@pytest.mark.parametrize("name", ["deployment", "statefulset", "pool"])
def test_the_replicas_of_a_target_are_ready_at_the_ramp(morning: Morning, name: str) -> None:
    """Those of the pool are counted by its pods: its status does not tell who is ready."""
    plan = morning.at_ramp[name]["plan"]
    assert plan["status"]["readyReplicas"] == 5
    found = condition(plan, "ReadyByNextRamp")
    assert found is not None
    assert found["status"] == "True"


def test_a_target_that_has_what_is_asked_gets_no_write_and_one_per_change_later(morning: Morning) -> None:
    writes = [write for write in morning.run.writes("pool", resource="pools") if write.code == 200]
    assert [write.subresource for write in writes] == ["scale"] * 4, "one rise, and three steps down"


def test_an_autoscaler_is_raised_half_a_minute_earlier(morning: Morning) -> None:
    starts = {name: morning.before[name]["plan"]["status"]["nextChange"]["time"] for name in ("deployment", "hpa")}
    assert starts == {"deployment": "2026-12-01T06:48:00Z", "hpa": "2026-12-01T06:47:30Z"}


def test_an_autoscaler_keeps_everything_but_its_minimum(morning: Morning) -> None:
    now = morning.after["hpa"]["target"]["spec"]
    assert {**now, "minReplicas": None} == {**morning.hpa_as_applied, "minReplicas": None}
    assert {write.resource for write in morning.run.writes("hpa")} == {"horizontalpodautoscalers", "servingplans"}
    assert morning.run.writes("under-hpa") == []


def test_an_autoscaler_s_own_maximum_limits_and_that_is_said(morning: Morning) -> None:
    found = condition(morning.at_ramp["hpa"]["plan"], "ScalingLimited")
    assert found is not None
    assert (found["status"], found["reason"]) == ("True", "MaxReplicas")
    assert f"4 is the maximum of HorizontalPodAutoscaler {morning.run.namespace}/hpa" in found["message"]


def test_the_autoscaler_s_own_controller_raises_what_it_scales(morning: Morning) -> None:
    assert morning.run.replicas("under-hpa") == 4


def test_a_floor_is_held_by_nobody_else(morning: Morning) -> None:
    for name in ("hpa", "scaledobject"):
        found = condition(morning.after[name]["plan"], "ReplicasOwned")
        assert found is not None
        assert (found["status"], found["reason"]) == ("True", "FloorHeld")


def test_a_deleted_plan_leaves_the_last_minimum(morning: Morning) -> None:
    morning.run.kubectl("delete", "servingplan", "hpa")
    morning.run.kubectl("delete", "servingplan", "scaledobject")
    assert morning.run.kubectl.json("get", "hpa", "hpa")["spec"]["minReplicas"] == 2
    assert morning.run.kubectl.json("get", "scaledobject", "scaledobject")["spec"]["minReplicaCount"] == 2
