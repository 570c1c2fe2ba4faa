"""Live objects as a 1.36 API server shows them, as dicts: what a test does not name is what a fresh object has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from servingplan.clients.kubernetes import ObjectList
from servingplan.clients.references import ObjectRef
from servingplan.errors import Conflict, NotFound

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
    """A clock that stands, for what only translates instants: it shows real time."""

    def __init__(self, now: str = "2026-12-01T07:00:00Z") -> None:
        self._now = datetime.fromisoformat(now)

    def now(self) -> datetime:
        return self._now

    def seconds_until(self, instant: datetime) -> float:
        return max(0.0, (instant - self._now).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        return instant

    def from_real(self, instant: datetime) -> datetime:
        return instant

    def describe(self) -> str:
        return ""


class Server:
    """A small API server for one reconcile: serves objects by reference and notes every write, in order.

    A write that sets replicas or a minimum is seen by the next read, as owned by its manager alone; an applied object
    is served as it was applied. conflicts: so many forced applies meet another's write. Nothing else of a server is
    played: what a real one does is tested on a real one.
    """

    field_manager = "servingplan"

    def __init__(self, *objects: Object, pods: Sequence[Object] = ()) -> None:
        self.objects = {ObjectRef.of(each): each for each in objects}
        self.pods = list(pods)
        self.scales: dict[ObjectRef, Object | Exception] = {}
        self.writes: list[tuple[str, str, Any]] = []
        self.refuse: Exception | None = None
        self.conflicts = 0
        self.lists = 0

    async def get(self, ref: ObjectRef) -> Object:
        if ref not in self.objects:
            raise NotFound(f"read of {ref}: it does not exist")
        return self.objects[ref]

    async def find(self, ref: ObjectRef) -> Object | None:
        return self.objects.get(ref)

    async def list(self, api_version: str, kind: str, namespace: str = "", *, label_selector: str = "") -> ObjectList:
        self.lists += 1
        return ObjectList(items=tuple(self.pods), resource_version="9")

    async def get_scale(self, ref: ObjectRef) -> Object:
        found = self.scales[ref]
        if isinstance(found, Exception):
            raise found
        return found

    async def apply(self, manifest: Mapping[str, Any], *, force: bool = False) -> Object:
        ref = ObjectRef.of(manifest)
        if self.conflicts and force:
            self.conflicts -= 1
            raise Conflict(f"apply of {ref}: it changed in between")
        self._note("apply forced" if force else "apply", ref, manifest.get("spec", {}).get("replicas"))
        owners = [owns_replicas(self.field_manager, time=CREATED)] if "replicas" in manifest.get("spec", {}) else []
        before = self.objects.get(ref, {"metadata": {"managedFields": owners}, "spec": {}})
        kept = {key: before["metadata"].get(key) for key in ("managedFields",)}
        given = {**metadata(ref.name), **manifest["metadata"], **kept, "resourceVersion": "8"}
        self.objects[ref] = {**manifest, "metadata": given, "spec": {**before["spec"], **manifest["spec"]}}
        return self.objects[ref]

    async def apply_scale(self, ref: ObjectRef, *, replicas: int, resource_version: str, force: bool = False) -> Object:
        self._note("scale forced" if force else "scale", ref, replicas)
        return self._set(ref, "replicas", replicas, owns_replicas(self.field_manager, subresource="scale"))

    async def merge_patch_scale(self, ref: ObjectRef, *, replicas: int, resource_version: str) -> Object:
        self._note("patch scale", ref, replicas)
        return self._set(ref, "replicas", replicas, owns_replicas(self.field_manager, subresource="scale"))

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any], *, resource_version: str) -> Object:
        self._note("patch", ref, body)
        ((field, value),) = body["spec"].items()
        return self._set(
            ref, field, value, owns_replicas(self.field_manager, time=CREATED, path=("f:spec", f"f:{field}"))
        )

    def _set(self, ref: ObjectRef, field: str, value: int, owner: Object) -> Object:
        live = self.objects[ref]
        found = {**live["metadata"], "managedFields": [owner], "resourceVersion": "8"}
        self.objects[ref] = {**live, "metadata": found, "spec": {**live["spec"], field: value}}
        return self.objects[ref]

    def _note(self, verb: str, ref: ObjectRef, what: Any) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.writes.append((verb, ref.kind, what))
