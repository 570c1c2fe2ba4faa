"""Live objects as a 1.36 API server shows them, as dicts: what a test does not name is what a fresh object has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Object = dict[str, Any]

CREATED = "2026-12-01T06:48:00Z"
NAMESPACE = "llm"


def metadata(name: str, **more: Any) -> Object:
    """Metadata of an object in the tests' namespace."""
    return {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "creationTimestamp": CREATED, **more}


def condition(kind: str, status: str, **more: str) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": CREATED, **more}


# ---- pods ----


def waiting(reason: str = "ContainerCreating", message: str = "", *, name: str = "engine", **more: Any) -> Object:
    """The status of a container that does not run."""
    state = {"reason": reason} | ({"message": message} if message else {})
    status = {"name": name, "image": "registry.local/engine:1", "ready": False, "restartCount": 0}
    return {**status, "state": {"waiting": state}, **more}


def running(*, name: str = "engine", ready: bool = False, **more: Any) -> Object:
    """The status of a container that runs."""
    status = {"name": name, "image": "registry.local/engine:1", "ready": ready, "restartCount": 0}
    return {**status, "state": {"running": {"startedAt": CREATED}}, **more}


def terminated(code: int = 1, reason: str = "Error") -> Object:
    """How a container ended, for ``lastState`` or ``state``."""
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": CREATED}}


def pod(
    name: str = "chat-1",
    *,
    phase: str = "Pending",
    node: str | None = "node-1",
    conditions: Sequence[Object] = (),
    containers: Sequence[Object] = (),
    deleted: bool = False,
    **status: Any,
) -> Object:
    """A pod; on a node and otherwise without a status, unless told."""
    found: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(name)}
    if deleted:
        found["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 30}
    found["spec"] = {"containers": [{"name": "engine", "image": "registry.local/engine:1", "resources": {}}]}
    if node is not None:
        found["spec"]["nodeName"] = node
    listed = {"conditions": list(conditions), "containerStatuses": list(containers)}
    found["status"] = {"phase": phase, **{key: value for key, value in listed.items() if value}, **status}
    return found


def ready_pod(name: str = "chat-1", *, node: str = "node-1") -> Object:
    """A pod that takes requests."""
    conditions = [condition("PodScheduled", "True"), condition("Ready", "True")]
    return pod(name, phase="Running", node=node, conditions=conditions, containers=[running(ready=True)])


def unschedulable_pod(message: str, name: str = "chat-1") -> Object:
    """A pod that the scheduler found no node for."""
    conditions = [condition("PodScheduled", "False", reason="Unschedulable", message=message)]
    return pod(name, node=None, conditions=conditions)


# ---- workloads and autoscalers ----


def owns_replicas(
    manager: str,
    *,
    subresource: str = "",
    time: str | None = None,
    operation: str = "Apply",
    path: Sequence[str] = ("f:spec", "f:replicas"),
) -> Object:
    """An entry of ``managedFields`` that owns a field. The server gives entries of ``/scale`` no time."""
    fields: Object = {}
    for key in reversed(path):
        fields = {key: fields}
    entry = {"apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    more = {"subresource": subresource} if subresource else {}
    return {"manager": manager, "operation": operation, **entry, **more, **({"time": time} if time else {})}


def workload(
    name: str = "vllm",
    *,
    kind: str = "Deployment",
    replicas: int | None = 2,
    owners: Sequence[Object] = (),
    limits: Sequence[Mapping[str, str]] = (),
    labels: Mapping[str, str] | None = None,
    **status: Any,
) -> Object:
    """A Deployment or StatefulSet. limits: one container for each."""
    containers = [{"name": f"c{i}", "resources": {"limits": dict(each)}} for i, each in enumerate(limits)]
    spec: Object = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata(name, resourceVersion="7", labels=dict(labels or {}), managedFields=list(owners)),
        "spec": spec,
        "status": status,
    }


def autoscaler(
    name: str = "vllm",
    *,
    kind: str = "HorizontalPodAutoscaler",
    target: Mapping[str, str] | None = None,
    owner: str | None = None,
    **spec: Any,
) -> Object:
    """An HPA or ScaledObject of Deployment ``vllm``. owner: the ScaledObject that made it."""
    version = "autoscaling/v2" if kind == "HorizontalPodAutoscaler" else "keda.sh/v1alpha1"
    scaled = dict(target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"})
    references = [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": owner, "uid": f"uid-{owner}"}]
    more: Object = {"ownerReferences": references} if owner else {}
    found = metadata(name, resourceVersion="7", managedFields=[], **more)
    return {"apiVersion": version, "kind": kind, "metadata": found, "spec": {"scaleTargetRef": scaled, **spec}}


def node(
    name: str = "node-1",
    *,
    gpus: str = "8",
    ready: str = "True",
    unschedulable: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A node with GPUs."""
    found: Object = {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {**found, "annotations": dict(annotations or {})},
        "spec": {"unschedulable": True} if unschedulable else {},
        "status": {
            "allocatable": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": gpus},
            "conditions": [condition("MemoryPressure", "False"), condition("Ready", ready)],
        },
    }


# ---- plans and their ConfigMaps ----


def live_plan(document: Mapping[str, Any], *, created: str = CREATED, uid: str = "", generation: int = 1) -> Object:
    """A ServingPlan of `document`, as the API server keeps it."""
    given = document["metadata"]
    more = {"uid": uid or f"uid-{given['name']}", "creationTimestamp": created, "generation": generation}
    return {**document, "metadata": {**given, **more, "resourceVersion": "7"}}


class StillClock:
    """A clock that stands until a test moves it, and shows real time. described: what a demo clock says of itself."""

    def __init__(self, now: str | datetime = CREATED, described: str = "") -> None:
        self.instant = datetime.fromisoformat(now) if isinstance(now, str) else now
        self.described = described

    def now(self) -> datetime:
        return self.instant

    def seconds_until(self, instant: datetime) -> float:
        return max(0.0, (instant - self.instant).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        return instant

    def from_real(self, instant: datetime) -> datetime:
        return instant

    def describe(self) -> str:
        return self.described
