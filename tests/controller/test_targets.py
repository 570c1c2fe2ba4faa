"""Every kind of target as a view: replicas or minimum, bounds, readiness, selector, owners, GPUs; and its one write."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.clients.answers import KindNotServed
from servingplan.clients.references import ObjectRef
from servingplan.controller.targets import TargetView, is_watched, kind_of
from servingplan.planning.observation import Trouble
from servingplan.planning.reasons import Reason
from servingplan.rendering.situation import Rollout
from support.api_server import ApiServer
from support.live import autoscaler, condition, owns_replicas, workload

DEPLOYMENT = ObjectRef(api_version="apps/v1", kind="Deployment", name="vllm", namespace="llm")
POOL = ObjectRef(api_version="example.org/v1", kind="Pool", name="vllm", namespace="llm")
HPA = ObjectRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="vllm", namespace="llm")
SCALED_OBJECT = ObjectRef(api_version="keda.sh/v1alpha1", kind="ScaledObject", name="vllm", namespace="llm")


async def view_of(ref: ObjectRef, server: ApiServer) -> TargetView:
    return await kind_of(ref).read(server, ref)  # type: ignore[arg-type]


async def written(ref: ObjectRef, server: ApiServer, replicas: int, *, force: bool = False) -> list[Any]:
    view = await view_of(ref, server)
    await kind_of(ref).write(server, view, replicas, force=force)  # type: ignore[arg-type]
    return server.writes


# ---- Deployments and StatefulSets ----


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_a_workload_s_own_status_counts_its_replicas(kind: str) -> None:
    ref = ObjectRef(api_version="apps/v1", kind=kind, name="vllm", namespace="llm")
    live = workload(kind=kind, replicas=5, readyReplicas=3, availableReplicas=2)
    view = await view_of(ref, ApiServer(live))
    assert (view.current, view.ready, view.available, view.maximum) == (5, 3, 2, None)
    assert (view.selector, view.resource_version) == ("app=vllm", "7")


async def test_a_fresh_workload_has_one_replica_and_none_ready() -> None:
    view = await view_of(DEPLOYMENT, ApiServer(workload(replicas=None)))
    assert (view.current, view.ready, view.available, view.owners) == (1, 0, 0, ())


@pytest.mark.parametrize(("force", "verb"), [(False, "apply_scale"), (True, "apply_scale forced")])
async def test_a_workload_is_written_by_an_apply_on_scale(force: bool, verb: str) -> None:
    assert await written(DEPLOYMENT, ApiServer(workload()), 5, force=force) == [(verb, "Deployment", 5)]


SELECTORS = {
    "labels, in order": ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    "expressions": (
        {
            "matchLabels": {"app": "vllm"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["z", "a"]},
                {"key": "track", "operator": "NotIn", "values": ["canary"]},
                {"key": "gpu", "operator": "Exists"},
                {"key": "spot", "operator": "DoesNotExist"},
            ],
        },
        "app=vllm,tier in (a,z),track notin (canary),gpu,!spot",
    ),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize(("selector", "text"), SELECTORS.values(), ids=SELECTORS)
async def test_a_selector_is_a_query(selector: dict[str, Any], text: str) -> None:
    live = workload()
    live["spec"]["selector"] = selector
    assert (await view_of(DEPLOYMENT, ApiServer(live))).selector == text


GPUS = {
    "none": ([{"memory": "1Gi"}], None, None),
    "one container": ([{"nvidia.com/gpu": "2", "cpu": "4"}], "nvidia.com/gpu", 2),
    "two containers together": ([{"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}], "nvidia.com/gpu", 3),
    "another vendor's": ([{"amd.com/gpu": "1"}], "amd.com/gpu", 1),
    "slices of one": ([{"nvidia.com/mig-1g.10gb": "2"}], "nvidia.com/mig-1g.10gb", 2),
    "no graphics processor": ([{"habana.ai/gaudi": "8"}], "habana.ai/gaudi", 8),
    "a network device and no accelerator": ([{"rdma/output-tpu": "1", "migrate.io/slots": "3"}], None, None),
    "a container without limits": ([{}, {"nvidia.com/gpu": "1"}], "nvidia.com/gpu", 1),
}


@pytest.mark.parametrize(("limits", "resource", "gpus"), GPUS.values(), ids=GPUS)
async def test_the_template_tells_how_many_gpus_a_replica_takes(limits: Any, resource: Any, gpus: Any) -> None:
    view = await view_of(DEPLOYMENT, ApiServer(workload(limits=limits)))
    assert (view.gpu_resource, view.gpus) == (resource, gpus)


QUOTA = 'pods "vllm-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1'
WEBHOOK = 'admission webhook "images.example.org" denied the request: no digest'
LATE = 'ReplicaSet "vllm-1" has timed out progressing.'

STATUS = {
    "a quota": (
        {"conditions": [condition("ReplicaFailure", "True", reason="FailedCreate", message=QUOTA)]},
        Trouble(reason=Reason.QUOTA_REFUSED, message=QUOTA),
        Rollout(),
    ),
    "an admission policy": (
        {"conditions": [condition("ReplicaFailure", "True", reason="FailedCreate", message=WEBHOOK)]},
        Trouble(reason=Reason.APPLY_REFUSED, message=WEBHOOK),
        Rollout(),
    ),
    "refused no more": ({"conditions": [condition("ReplicaFailure", "False")]}, None, Rollout()),
    "pods of an older template": ({"replicas": 5, "updatedReplicas": 2}, None, Rollout(rolling=True)),
    "all of one template": ({"replicas": 5, "updatedReplicas": 5}, None, Rollout()),
    "no progress": (
        {"conditions": [condition("Progressing", "False", reason="ProgressDeadlineExceeded", message=LATE)]},
        None,
        Rollout(stalled=LATE),
    ),
    "progress": (
        {"conditions": [condition("Progressing", "True", reason="ReplicaSetUpdated", message="on it")]},
        None,
        Rollout(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("status", "trouble", "rollout"), STATUS.values(), ids=STATUS)
async def test_a_workload_s_status_tells_of_refusals_and_of_a_rollout(
    status: dict[str, Any], trouble: Trouble | None, rollout: Rollout
) -> None:
    live = workload()
    live["status"] = status
    view = await view_of(DEPLOYMENT, ApiServer(live))
    assert (view.trouble, view.rollout) == (trouble, rollout)


# ---- anything with /scale ----


def a_pool(status: dict[str, Any], scale: dict[str, Any]) -> ApiServer:
    live = {**workload(), "apiVersion": "example.org/v1", "kind": "Pool", "status": status}
    server = ApiServer(live)
    server.scales[POOL] = scale
    return server


async def test_a_custom_resource_is_read_through_its_scale() -> None:
    status = {"readyReplicas": 2, "availableReplicas": 1}
    view = await view_of(POOL, a_pool(status, {"spec": {"replicas": 3}, "status": {"replicas": 3, "selector": "a=b"}}))
    assert (view.current, view.ready, view.available, view.selector) == (3, 2, 1, "a=b")


async def test_who_is_ready_of_a_custom_resource_that_does_not_say_only_its_pods_can_tell() -> None:
    view = await view_of(POOL, a_pool({}, {"spec": {"replicas": 3}, "status": {"replicas": 3, "selector": "a=b"}}))
    assert (view.ready, view.available) == (None, None)


async def test_a_custom_resource_whose_replicas_were_never_set_has_none() -> None:
    view = await view_of(POOL, a_pool({}, {"spec": {}, "status": {"replicas": 0}}))
    assert (view.current, view.selector) == (0, "")


@pytest.mark.parametrize("force", [False, True])
async def test_a_custom_resource_is_patched(force: bool) -> None:
    server = a_pool({}, {"spec": {"replicas": 3}, "status": {}})
    assert await written(POOL, server, 5, force=force) == [("merge_patch_scale", "Pool", 5)]


async def test_a_kind_without_scale_is_no_target() -> None:
    server = a_pool({}, {})
    server.scales[POOL] = KindNotServed("Pool llm/vllm: kind Pool of example.org/v1 has no /scale")
    view = await view_of(POOL, server)
    assert view.trouble is not None
    assert (view.trouble.reason, view.current) == (Reason.TARGET_NOT_SCALABLE, None)


# ---- the minimum of an autoscaler ----

BOUNDS = {
    "an HPA with both bounds": (HPA, {"minReplicas": 2, "maxReplicas": 8}, 2, 8),
    "an HPA without a minimum has one": (HPA, {"maxReplicas": 8}, 1, 8),
    "a ScaledObject with both bounds": (SCALED_OBJECT, {"minReplicaCount": 3, "maxReplicaCount": 9}, 3, 9),
    "a ScaledObject without bounds has KEDA's": (SCALED_OBJECT, {}, 0, 100),
}


@pytest.mark.parametrize(("ref", "spec", "minimum", "maximum"), BOUNDS.values(), ids=BOUNDS)
async def test_an_autoscaler_is_seen_by_its_bounds_and_by_the_pods_of_what_it_scales(
    ref: ObjectRef, spec: dict[str, int], minimum: int, maximum: int
) -> None:
    scaled = workload(replicas=6, readyReplicas=4, availableReplicas=4, limits=[{"nvidia.com/gpu": "2"}])
    view = await view_of(ref, ApiServer(autoscaler(kind=ref.kind, **spec), scaled))
    assert (view.current, view.maximum) == (minimum, maximum)
    assert (view.ready, view.available, view.selector, view.gpus) == (4, 4, "app=vllm", 2)


async def test_a_scaled_object_that_names_no_kind_scales_a_deployment() -> None:
    live = autoscaler(kind="ScaledObject", target={"name": "vllm"})
    assert (await view_of(SCALED_OBJECT, ApiServer(live, workload(readyReplicas=2)))).ready == 2


async def test_an_autoscaler_whose_workload_is_missing_is_there_and_says_so() -> None:
    view = await view_of(HPA, ApiServer(autoscaler(maxReplicas=8)))
    assert (view.current, view.ready, view.live is not None) == (1, 0, True)
    assert view.trouble == Trouble(
        reason=Reason.TARGET_NOT_FOUND, message="read of Deployment llm/vllm: it does not exist"
    )


async def test_the_owners_of_an_autoscaler_are_those_of_its_minimum() -> None:
    live = autoscaler(minReplicas=2, maxReplicas=8)
    live["metadata"]["managedFields"] = [
        owns_replicas("kubectl", path=("f:spec", "f:minReplicas"), time="2026-12-01T07:00:00Z"),
        owns_replicas("gitops", path=("f:spec", "f:maxReplicas"), time="2026-12-01T07:00:00Z"),
    ]
    view = await view_of(HPA, ApiServer(live, workload()))
    assert [owner.manager for owner in view.owners] == ["kubectl"]


MINIMA = {
    "HPA": (HPA, {"spec": {"minReplicas": 4}}),
    "ScaledObject": (SCALED_OBJECT, {"spec": {"minReplicaCount": 4}}),
}


@pytest.mark.parametrize(("ref", "body"), MINIMA.values(), ids=MINIMA)
async def test_nothing_but_the_minimum_of_an_autoscaler_is_patched(ref: ObjectRef, body: dict[str, Any]) -> None:
    server = ApiServer(autoscaler(kind=ref.kind), workload())
    assert await written(ref, server, 4) == [("merge_patch", ref.kind, body)]


# ---- which kind, and whether it is there ----

WATCHED = {
    "Deployment": (DEPLOYMENT, True, True, "scale"),
    "StatefulSet": (ObjectRef(api_version="apps/v1", kind="StatefulSet", name="x"), True, True, "scale"),
    "ReplicaSet": (ObjectRef(api_version="apps/v1", kind="ReplicaSet", name="x"), False, True, "scale"),
    "Pool": (POOL, False, False, "scale"),
    "another group's": (ObjectRef(api_version="a.org/v1", kind="Deployment", name="x"), False, False, "scale"),
    "HPA": (HPA, True, False, ""),
    "HPA of an older version": (
        ObjectRef(api_version="autoscaling/v1", kind="HorizontalPodAutoscaler", name="x"), True, False, "",
    ),
    "ScaledObject": (SCALED_OBJECT, True, False, ""),
}  # fmt: skip


@pytest.mark.parametrize(("ref", "watched", "applied", "subresource"), WATCHED.values(), ids=WATCHED)
def test_a_kind_is_watched_and_written_in_its_way(
    ref: ObjectRef, watched: bool, applied: bool, subresource: str
) -> None:
    kind = kind_of(ref)
    assert (is_watched(ref), kind.applied, kind.subresource) == (watched, applied, subresource)


@pytest.mark.parametrize("ref", [DEPLOYMENT, POOL, HPA, SCALED_OBJECT], ids=str)
async def test_a_target_that_is_missing_is_said_in_the_server_s_words(ref: ObjectRef) -> None:
    view = await view_of(ref, ApiServer())
    assert (view.live, view.current, view.resource_version) == (None, None, "")
    assert view.trouble == Trouble(reason=Reason.TARGET_NOT_FOUND, message=f"read of {ref}: it does not exist")
