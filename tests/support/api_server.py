"""A small API server in memory, with the answers of the real one that decide.

What changed meanwhile gets a 409, what is missing a 404, and a write that changes nothing keeps its resourceVersion.

It implements what the controller calls of `KubernetesClient`, for plans, ConfigMaps, workloads and what is rendered.
Whom a field belongs to is kept for ``spec.replicas`` alone, as the rules on second writers read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from servingplan.clients.kubernetes import ObjectList
from servingplan.clients.references import ObjectRef
from servingplan.errors import ClusterError, Conflict, NotFound
from servingplan.rendering.metadata import field_manager

Object = dict[str, Any]

FIELD_MANAGER = field_manager()


class ApiServer:
    """Objects by reference; `writes` lists every write that was let through, `errors` what a verb answers instead."""

    def __init__(self) -> None:
        self.field_manager = FIELD_MANAGER
        self.objects: dict[ObjectRef, Object] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.errors: dict[str, list[ClusterError]] = {}
        self._version = 0

    # ---- what a test does to it ----

    def put(self, manifest: Mapping[str, Any], **metadata: Any) -> Object:
        """Create or replace an object, as somebody else would; an edit of a spec is a new generation."""
        ref, old = ObjectRef.of(manifest), self.objects.get(ObjectRef.of(manifest))
        new = deepcopy(dict(manifest))
        was = old["metadata"] if old else {"generation": 0, "uid": f"uid-{ref.kind}-{ref.name}"}
        edited = old is None or old.get("spec") != new.get("spec")
        new["metadata"] = {
            "creationTimestamp": "2026-11-01T00:00:00Z",
            **was,
            **new["metadata"],
            "generation": was.get("generation", 0) + edited,
            **metadata,
        }
        if old and "status" in old:
            new.setdefault("status", old["status"])
        return self._keep(ref, new)

    def refuse(self, verb: str, *errors: ClusterError) -> None:
        """Answer the coming calls of a verb (``apply_scale``) with errors, one after the other."""
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

    async def list(self, api_version: str, kind: str, namespace: str = "", *, label_selector: str = "") -> ObjectList:
        """All objects of a kind; selectors select everything."""
        self._answer("list", f"{kind} in {namespace} with {label_selector}")
        items = tuple(
            deepcopy(live)
            for ref, live in sorted(self.objects.items())
            if (ref.api_version, ref.kind) == (api_version, kind) and namespace in ("", ref.namespace)
        )
        return ObjectList(items=items, resource_version=str(self._version))

    async def apply(self, manifest: Mapping[str, Any], *, force: bool = False) -> Object:
        """Server-side apply; `force` makes no difference, as nothing but replicas has an owner here."""
        del force
        ref = ObjectRef.of(manifest)
        self._write("apply", str(ref))
        old = self.objects.get(ref)
        self._expect(manifest["metadata"].get("resourceVersion"), old, ref)
        live = _merged(old or {}, manifest)
        live["metadata"].setdefault("uid", f"uid-{ref.kind}-{ref.name}")
        live["metadata"].setdefault("creationTimestamp", "2026-11-01T00:00:00Z")
        if ref.kind == "Deployment":
            _own(live, FIELD_MANAGER, "", holds="replicas" in manifest["spec"])
        return self._keep(ref, live)

    async def apply_scale(self, ref: ObjectRef, *, replicas: int, resource_version: str, force: bool = False) -> Object:
        """Apply on ``/scale``."""
        del force
        self._write("apply_scale", f"{ref} to {replicas}")
        self._expect(resource_version, self.objects.get(ref), ref)
        live = deepcopy(self.objects[ref])
        live["spec"]["replicas"] = replicas
        _own(live, FIELD_MANAGER, "scale", holds=True)
        return self._keep(ref, live)

    async def apply_status(self, manifest: Mapping[str, Any]) -> Object:
        """Apply on ``/status``: the whole of it is ours."""
        ref = ObjectRef.of(manifest)
        self._write("apply_status", str(ref))
        if ref not in self.objects:
            raise NotFound(f"apply of the status of {ref}: it does not exist")
        self._expect(manifest["metadata"].get("resourceVersion"), self.objects[ref], ref)
        return self._keep(ref, {**deepcopy(self.objects[ref]), "status": deepcopy(dict(manifest["status"]))})

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> Object:
        """Merge-patch: null removes."""
        self._write("merge_patch", str(ref))
        if ref not in self.objects:
            raise NotFound(f"patch of {ref}: it does not exist")
        return self._keep(ref, _without_nulls(_merged(self.objects[ref], body)))

    # ---- inside ----

    def _answer(self, verb: str, what: str) -> None:
        self.reads.append(f"{verb} {what}")
        self._fail(verb)

    def _write(self, verb: str, what: str) -> None:
        self._fail(verb)
        self.writes.append(f"{verb} {what}")

    def _fail(self, verb: str) -> None:
        if self.errors.get(verb):
            raise self.errors[verb].pop(0)

    def _expect(self, version: str | None, live: Mapping[str, Any] | None, ref: ObjectRef) -> None:
        if version is not None and (live is None or live["metadata"]["resourceVersion"] != version):
            self.writes.pop()
            raise Conflict(f"{ref}: it changed in between")

    def _keep(self, ref: ObjectRef, live: Object) -> Object:
        old = self.objects.get(ref)
        version = old["metadata"]["resourceVersion"] if old else None
        live["metadata"]["resourceVersion"] = version
        if live != old:
            self._version += 1
            live["metadata"]["resourceVersion"] = str(self._version)
        self.objects[ref] = live
        return deepcopy(live)


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


def _own(live: Object, manager: str, subresource: str, *, holds: bool) -> None:
    """Note who owns ``spec.replicas``; the server gives entries of ``/scale`` no time."""
    entries = [
        entry
        for entry in live["metadata"].get("managedFields", ())
        if (entry["manager"], entry.get("subresource", "")) != (manager, subresource)
    ]
    entry: Object = {"manager": manager, "operation": "Apply", "fieldsV1": {}}
    if holds:
        entry["fieldsV1"] = {"f:spec": {"f:replicas": {}}}
    if subresource:
        entry["subresource"] = subresource
    live["metadata"]["managedFields"] = [*entries, entry]
