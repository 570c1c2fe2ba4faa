"""A small API server in memory, with the answers of the real one that decide.

What changed meanwhile gets a 409, what is missing a 404, and a write that changes nothing keeps its resourceVersion.

It implements what the controller calls of `KubernetesClient`, for plans, ConfigMaps, workloads, autoscalers and what is
rendered. Whom a field belongs to is kept for replicas and minimums alone, as the rules on second writers read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from servingplan.clients.kubernetes import ObjectList
from servingplan.clients.references import ObjectRef
from servingplan.controller.field_owners import REPLICAS
from servingplan.errors import ClusterError, Conflict, NotFound
from servingplan.rendering.metadata import field_manager
from support.live import owns_replicas

Object = dict[str, Any]

FIELD_MANAGER = field_manager()
FORCED = " forced"
CREATED = "2026-11-01T00:00:00Z"


MINIMUMS = ("minReplicas", "minReplicaCount")


class ApiServer:
    """Objects by reference, those given as they are.

    writes: every write that was let through: the verb, ``forced`` with it, the kind, and the replicas or the patch.
    errors: what a verb answers instead. scales: what ``/scale`` of a custom resource shows.
    """

    def __init__(self, *objects: Object) -> None:
        self.field_manager = FIELD_MANAGER
        self.objects: dict[ObjectRef, Object] = {ObjectRef.of(each): deepcopy(each) for each in objects}
        self.scales: dict[ObjectRef, Object | ClusterError] = {}
        self.writes: list[tuple[str, str, Any]] = []
        self.reads: list[str] = []
        self.errors: dict[str, list[ClusterError]] = {}
        self._version = 100

    # ---- what a test does to it ----

    def put(self, manifest: Mapping[str, Any], **metadata: Any) -> Object:
        """Create or replace an object, as somebody else would; an edit of a spec is a new generation."""
        ref, old = ObjectRef.of(manifest), self.objects.get(ObjectRef.of(manifest))
        new = deepcopy(dict(manifest))
        was = old["metadata"] if old else {"generation": 0, "uid": f"uid-{ref.kind}-{ref.name}"}
        edited = old is None or old.get("spec") != new.get("spec")
        new["metadata"] = {
            "creationTimestamp": CREATED,
            **was,
            **new["metadata"],
            "generation": was.get("generation", 0) + edited,
            **metadata,
        }
        if old and "status" in old:
            new.setdefault("status", old["status"])
        return self._keep(ref, new)

    def refuse(self, verb: str, *errors: ClusterError) -> None:
        """Answer the coming calls of a verb (``apply_scale``, ``get ConfigMap``) with errors, one after the other."""
        self.errors.setdefault(verb, []).extend(errors)

    def make_ready(self, ref: ObjectRef, ready: int | None = None) -> None:
        """As a Deployment's own controller: count its replicas as ready."""
        live = deepcopy(self.objects[ref])
        count = live["spec"]["replicas"] if ready is None else ready
        live["status"] = {
            "replicas": live["spec"]["replicas"], "updatedReplicas": live["spec"]["replicas"],
            "readyReplicas": count, "availableReplicas": count,
        }  # fmt: skip
        self._keep(ref, live)

    # ---- what the controller calls ----

    async def resolve(self, api_version: str, kind: str) -> None:
        """Every kind is served."""
        self._answer("resolve", f"{api_version} {kind}")

    async def get(self, ref: ObjectRef) -> Object:
        """Read."""
        self._fail(f"get {ref.kind}")
        self._answer("get", str(ref))
        if ref not in self.objects:
            raise NotFound(f"read of {ref}: it does not exist")
        return deepcopy(self.objects[ref])

    async def find(self, ref: ObjectRef) -> Object | None:
        """Read, None where it does not exist."""
        try:
            return await self.get(ref)
        except NotFound:
            return None

    async def get_scale(self, ref: ObjectRef) -> Object:
        """The Scale of a custom resource."""
        self._answer("get_scale", str(ref))
        found = self.scales[ref]
        if isinstance(found, ClusterError):
            raise found
        return deepcopy(found)

    async def list(self, api_version: str, kind: str, namespace: str = "", *, label_selector: str = "") -> ObjectList:
        """All objects of a kind; selectors select everything."""
        self._answer("list", f"{kind} in {namespace} with {label_selector}")
        items = tuple(
            deepcopy(live)
            for ref, live in sorted(self.objects.items())
            if (ref.api_version, ref.kind) == (api_version, kind) and namespace in ("", ref.namespace)
        )
        return ObjectList(items=items, resource_version=str(self._version))

    async def create(self, manifest: Mapping[str, Any]) -> Object:
        """Create. Raises Conflict where there is one."""
        ref = ObjectRef.of(manifest)
        if ref in self.objects:
            raise Conflict(f"create of {ref}: it exists")
        self._write("create", ref, None, None, None)
        return self._keep(ref, deepcopy(dict(manifest)))

    async def apply(self, manifest: Mapping[str, Any], *, force: bool = False) -> Object:
        """Server-side apply; `force` makes no difference, as nothing but replicas has an owner here."""
        ref, replicas = ObjectRef.of(manifest), manifest.get("spec", {}).get("replicas")
        old = self.objects.get(ref)
        self._write(_forced("apply", force), ref, replicas, old, manifest["metadata"].get("resourceVersion"))
        live = _merged(old or {}, manifest)
        live["metadata"].setdefault("uid", f"uid-{ref.kind}-{ref.name}")
        live["metadata"].setdefault("creationTimestamp", CREATED)
        if ref.kind == "Deployment":
            _own(live, "", REPLICAS if replicas is not None else None)
        return self._keep(ref, live)

    async def apply_scale(self, ref: ObjectRef, *, replicas: int, resource_version: str, force: bool = False) -> Object:
        """Apply on ``/scale``."""
        old = self.objects.get(ref)
        self._write(_forced("apply_scale", force), ref, replicas, old, resource_version)
        return self._set(ref, REPLICAS, replicas, "scale")

    async def merge_patch_scale(self, ref: ObjectRef, *, replicas: int, resource_version: str) -> Object:
        """Merge patch on ``/scale``."""
        self._write("merge_patch_scale", ref, replicas, self.objects.get(ref), resource_version)
        return self._set(ref, REPLICAS, replicas, "scale")

    async def apply_status(self, manifest: Mapping[str, Any]) -> Object:
        """Apply on ``/status``: the whole of it is ours."""
        ref = ObjectRef.of(manifest)
        self._fail("apply_status")
        if ref not in self.objects:
            raise NotFound(f"apply of the status of {ref}: it does not exist")
        old = self.objects[ref]
        self._write("apply_status", ref, None, old, manifest["metadata"].get("resourceVersion"))
        return self._keep(ref, {**deepcopy(old), "status": deepcopy(dict(manifest["status"]))})

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any], *, resource_version: str = "") -> Object:
        """Merge-patch: null removes."""
        self._fail("merge_patch")
        if ref not in self.objects:
            raise NotFound(f"patch of {ref}: it does not exist")
        self._write("merge_patch", ref, body, self.objects[ref], resource_version or None)
        for field, value in body.get("spec", {}).items():
            if field in MINIMUMS:
                return self._set(ref, ("f:spec", f"f:{field}"), value, "")
        return self._keep(ref, _without_nulls(_merged(self.objects[ref], body)))

    # ---- inside ----

    def _answer(self, verb: str, what: str) -> None:
        self.reads.append(f"{verb} {what}")
        self._fail(verb)

    def _write(self, verb: str, ref: ObjectRef, what: Any, live: Mapping[str, Any] | None, version: str | None) -> None:
        """Let a write through, and note it. Raises what the verb is to answer; Conflict at another version."""
        self._fail(verb.removesuffix(FORCED))
        if version is not None and (live is None or live["metadata"]["resourceVersion"] != version):
            raise Conflict(f"{ref}: it changed in between")
        self.writes.append((verb, ref.kind, what))

    def _fail(self, verb: str) -> None:
        if self.errors.get(verb):
            raise self.errors[verb].pop(0)

    def _set(self, ref: ObjectRef, path: Sequence[str], value: int, subresource: str) -> Object:
        """Set a field of the spec: other values of it lose their owners, and an equal one is owned together."""
        live = deepcopy(self.objects[ref])
        field = path[-1].removeprefix("f:")
        if live["spec"].get(field) != value:
            _disown(live, path)
        live["spec"][field] = value
        _own(live, subresource, path)
        return self._keep(ref, live)

    def _keep(self, ref: ObjectRef, live: Object) -> Object:
        old = self.objects.get(ref)
        version = old["metadata"].get("resourceVersion") if old else None
        live["metadata"]["resourceVersion"] = version
        if live != old:
            self._version += 1
            live["metadata"]["resourceVersion"] = str(self._version)
        self.objects[ref] = live
        return deepcopy(live)


def _forced(verb: str, force: bool) -> str:
    return verb + FORCED if force else verb


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
    """What is applied over what is there; lists are replaced."""
    merged = deepcopy(dict(old))
    for key, value in new.items():
        if isinstance(value, Mapping):
            merged[key] = _merged(merged.get(key) or {}, value)
        else:
            merged[key] = deepcopy(value)
    return merged


def _without_nulls(value: Object) -> Object:
    return {
        key: _without_nulls(child) if isinstance(child, dict) else child
        for key, child in value.items()
        if child is not None
    }


def _own(live: Object, subresource: str, path: Sequence[str] | None) -> None:
    """Note that we own a field, or, with None, nothing of what is kept here; entries of ``/scale`` have no time."""
    others = [
        entry
        for entry in live["metadata"].get("managedFields", ())
        if (entry["manager"], entry.get("subresource", "")) != (FIELD_MANAGER, subresource)
    ]
    time = None if subresource else live["metadata"]["creationTimestamp"]
    ours = owns_replicas(FIELD_MANAGER, subresource=subresource, time=time, path=path or ())
    live["metadata"]["managedFields"] = [*others, ours]


def _disown(live: Object, path: Sequence[str]) -> None:
    """Take a field from everybody: what else they own is not kept here."""
    live["metadata"]["managedFields"] = [
        entry for entry in live["metadata"].get("managedFields", ()) if not _owns(entry, path)
    ]


def _owns(entry: Object, path: Sequence[str]) -> bool:
    fields: Any = entry["fieldsV1"]
    for key in path:
        fields = fields.get(key) if fields is not None else None
    return fields is not None
