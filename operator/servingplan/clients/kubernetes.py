"""The operator's Kubernetes client: reads, server-side apply, ``/scale`` and ``/status``.

In: references and objects as plain dicts. Out: live objects as plain dicts. It decides nothing and keeps
nothing but the server's list of kinds. Every write passes the gate; every error is a ClusterError whose
sentence names the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from servingplan.clients.answers import KindNotServed
from servingplan.clients.discovery import ApiResource, Discovery
from servingplan.clients.gate import MutationGate, OpenGate
from servingplan.clients.references import ObjectRef
from servingplan.clients.transport import MUTATION_TIMEOUT_S, READ_TIMEOUT_S, ReadRetry, Request, Transport
from servingplan.errors import NotFound

APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"

PAGE_SIZE = 500
"""Objects per page of a list: what client-go's pager uses, so that the server's cache serves it."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    """A complete list. resource_version: that of the list, from which a watch would go on."""

    items: tuple[Object, ...]
    resource_version: str


class KubernetesClient:
    """Talks to one API server under one field manager.

    field_manager: carries the installation's name, so that two installations see each other.
    gate: asked before every write; the default lets everything through.
    """

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        server: str,
        field_manager: str,
        gate: MutationGate | None = None,
        user_agent: str = "servingplan",
        mutation_timeout_s: float = MUTATION_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
        read_retry: ReadRetry | None = None,
    ) -> None:
        self.field_manager = field_manager
        self._transport = Transport(
            session=session,
            server=server,
            gate=gate or OpenGate(),
            user_agent=user_agent,
            mutation_timeout_s=mutation_timeout_s,
            read_timeout_s=read_timeout_s,
            read_retry=read_retry,
        )
        self._discovery = Discovery(self._transport)

    async def resolve(self, api_version: str, kind: str) -> ApiResource:
        """Find how the server serves a kind (plural, namespaced, has_scale). Raises KindNotServed."""
        return await self._discovery.resolve(api_version, kind)

    # ---- reads ----

    async def get(self, ref: ObjectRef) -> Object:
        """Read the live object. Raises NotFound, Refused, Unreachable."""
        return await self._read(ref, "")

    async def find(self, ref: ObjectRef) -> Object | None:
        """Read the live object; None where it does not exist. Raises Refused, Unreachable."""
        try:
            return await self.get(ref)
        except NotFound:
            return None

    async def list(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
    ) -> ObjectList:
        """Read all objects of a kind, in one namespace or (empty) in all; complete, or an error.

        Each item carries apiVersion and kind, which the server leaves out in lists. Raises Conflict where the
        list outlived the server's history between two pages: begin again.
        """
        resource = await self.resolve(api_version, kind)
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {"limit": str(page_size)} | {key: value for key, value in selectors.items() if value}
        what = f"list of {kind}" + (f" in {namespace}" if namespace else "")
        items: list[Object] = []
        while True:
            request = Request(method="GET", path=resource.path(namespace=namespace), what=what, query=query)
            page = await self._send(resource, request)
            items += [{**item, "apiVersion": api_version, "kind": kind} for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return ObjectList(items=tuple(items), resource_version=str(metadata.get("resourceVersion", "")))
            query = {**query, "continue": str(metadata["continue"])}

    async def get_scale(self, ref: ObjectRef) -> Object:
        """Read the object's Scale: ``spec.replicas``, ``status.selector``, the object's own resourceVersion.

        Raises NotFound where the object does not exist, KindNotServed where its kind has no ``/scale``.
        """
        return await self._read(ref, "scale")

    # ---- writes ----

    async def apply(
        self,
        manifest: Mapping[str, Any],
        *,
        force: bool = False,
        manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Apply on the server's side and return the live object.

        With ``metadata.resourceVersion`` in the manifest it applies only to that state of the object. Raises
        ApplyConflict (with ``managers``) where others own fields of it, Conflict where it changed in between.
        """
        query = self._apply_query(force=force, manager=manager)
        if dry_run:
            query["dryRun"] = "All"
        patch = _Patch(verb="apply of", body=manifest, content_type=APPLY_PATCH, query=query)
        return await self._patch(ObjectRef.of(manifest), patch)

    async def apply_status(
        self, manifest: Mapping[str, Any], *, force: bool = True, manager: str | None = None
    ) -> Object:
        """Apply ``status`` alone of a manifest, on ``/status``, and return the live object.

        Forced by default: nobody else has a right to the operator's status. A ``metadata.resourceVersion`` in
        the manifest is honoured.
        """
        metadata = manifest["metadata"]
        body = {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            "metadata": {k: metadata[k] for k in ("name", "namespace", "resourceVersion") if k in metadata},
            "status": manifest["status"],
        }
        query = self._apply_query(force=force, manager=manager)
        patch = _Patch(verb="apply of the status of", body=body, content_type=APPLY_PATCH, query=query)
        return await self._patch(ObjectRef.of(manifest), patch, "status")

    async def apply_scale(
        self,
        ref: ObjectRef,
        *,
        replicas: int,
        resource_version: str,
        force: bool = False,
        manager: str | None = None,
    ) -> Object:
        """Apply ``replicas`` on ``/scale`` against a known state of the object, and return the Scale.

        For built-in kinds; custom resources need `merge_patch_scale`. Raises ApplyConflict (with
        ``managers``) where another manager owns ``spec.replicas``, Conflict where the object changed.
        """
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": ref.name, "namespace": ref.namespace, "resourceVersion": resource_version},
            "spec": {"replicas": replicas},
        }
        query = self._apply_query(force=force, manager=manager)
        patch = _Patch(verb=f"scale to {replicas} of", body=body, content_type=APPLY_PATCH, query=query)
        return await self._patch(ref, patch, "scale")

    async def merge_patch_scale(
        self, ref: ObjectRef, *, replicas: int, resource_version: str, manager: str | None = None
    ) -> Object:
        """Merge-patch ``replicas`` on ``/scale``, for custom resources (an apply answers 500 there).

        Returns the Scale. A patch that leaves the value unchanged gains no ownership of the field.
        """
        body = {"metadata": {"resourceVersion": resource_version}, "spec": {"replicas": replicas}}
        query = {"fieldManager": manager or self.field_manager}
        patch = _Patch(verb=f"scale to {replicas} of", body=body, content_type=MERGE_PATCH, query=query)
        return await self._patch(ref, patch, "scale")

    async def merge_patch(
        self,
        ref: ObjectRef,
        body: Mapping[str, Any],
        *,
        resource_version: str | None = None,
        manager: str | None = None,
    ) -> Object:
        """Merge-patch and return the live object; only the state of ``resource_version``, where given."""
        if resource_version is not None:
            body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": resource_version}}
        query = {"fieldManager": manager or self.field_manager}
        return await self._patch(ref, _Patch(verb="patch of", body=body, content_type=MERGE_PATCH, query=query))

    async def create(self, manifest: Mapping[str, Any], *, manager: str | None = None) -> Object:
        """Create and return the live object; raises Conflict where one of that name exists."""
        return await self._send_whole("POST", manifest, manager)

    async def replace(self, manifest: Mapping[str, Any], *, manager: str | None = None) -> Object:
        """Replace the object of ``metadata.resourceVersion``; raises Conflict where it changed in between."""
        return await self._send_whole("PUT", manifest, manager)

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete; only that very object where ``uid`` or ``resource_version`` is given (else Conflict).

        propagation: ``Foreground``, ``Background`` or ``Orphan``; None for the default. Raises NotFound.
        """
        resource = await self.resolve(ref.api_version, ref.kind)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {key: value for key, value in preconditions.items() if value is not None},
        }
        if propagation is not None:
            body["propagationPolicy"] = propagation
        path = resource.path(namespace=ref.namespace, name=ref.name)
        await self._send(resource, Request(method="DELETE", path=path, what=f"delete of {ref}", body=body))

    # ---- the way to the transport ----

    def _apply_query(self, *, force: bool, manager: str | None) -> dict[str, str]:
        query = {"fieldManager": manager or self.field_manager}
        return {**query, "force": "true"} if force else query

    async def _subresource(self, ref: ObjectRef, subresource: str) -> ApiResource:
        resource = await self.resolve(ref.api_version, ref.kind)
        if subresource and subresource not in resource.subresources:
            raise KindNotServed(f"{ref}: kind {ref.kind} of {ref.api_version} has no /{subresource}")
        return resource

    async def _read(self, ref: ObjectRef, subresource: str) -> Object:
        resource = await self._subresource(ref, subresource)
        path = resource.path(namespace=ref.namespace, name=ref.name, subresource=subresource)
        what = f"read of the {subresource} of {ref}" if subresource else f"read of {ref}"
        return await self._send(resource, Request(method="GET", path=path, what=what))

    async def _patch(self, ref: ObjectRef, patch: _Patch, subresource: str = "") -> Object:
        resource = await self._subresource(ref, subresource)
        request = Request(
            method="PATCH",
            path=resource.path(namespace=ref.namespace, name=ref.name, subresource=subresource),
            what=f"{patch.verb} {ref}",
            query=patch.query,
            body=patch.body,
            content_type=patch.content_type,
        )
        return await self._send(resource, request)

    async def _send_whole(self, method: str, manifest: Mapping[str, Any], manager: str | None) -> Object:
        ref = ObjectRef.of(manifest)
        resource = await self.resolve(ref.api_version, ref.kind)
        request = Request(
            method=method,
            path=resource.path(namespace=ref.namespace, name=ref.name if method == "PUT" else ""),
            what=f"{'update' if method == 'PUT' else 'create'} of {ref}",
            query={"fieldManager": manager or self.field_manager},
            body=manifest,
        )
        return await self._send(resource, request)

    async def _send(self, resource: ApiResource, request: Request) -> Object:
        try:
            if request.method == "GET":
                return await self._transport.read(request)
            return await self._transport.write(request)
        except KindNotServed:
            self._discovery.forget(resource.api_version)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patch:
    """What a PATCH sends. verb: how errors begin, up to the object's name."""

    verb: str
    body: Mapping[str, Any]
    content_type: str
    query: Mapping[str, str]
