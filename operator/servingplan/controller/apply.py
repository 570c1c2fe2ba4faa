"""Apply: the only place that writes to targets and owned objects.

In: a plan, what was seen, and the verdict on replicas. Out: the objects as rendered and the replicas as decided.
Nothing is sent that the cluster holds already, and everything is sent against the state that was seen. A stop after
any of the writes leaves a state from which the next reconcile goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.field_owners import has_main_entry, only_main_entry
from servingplan.controller.holding import is_ours, name_taken
from servingplan.controller.targets import TargetView, kind_of, workload_view
from servingplan.planning.observation import Trouble
from servingplan.planning.ownership import Verdict
from servingplan.planning.plan import Plan
from servingplan.rendering.deployment import deployment
from servingplan.rendering.metadata import RENDERED_ANNOTATION, TEMPLATE_ANNOTATION, Manifest, Owner
from servingplan.rendering.objects import contained, keep_running_template, remember_variant, render

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of the objects. held: an older template stays. trouble: why one of them was not written."""

    held: bool
    trouble: Trouble | None


class Applier:
    """Writes for one plan at a time."""

    def __init__(self, *, client: KubernetesClient, installation: str) -> None:
        self._client = client
        self._installation = installation
        self._verified: dict[ObjectRef, str] = {}

    def verify_anew(self) -> None:
        """Look at every Service and disruption budget again: nothing watches them, and somebody may have edited one."""
        self._verified.clear()

    def forget(self, namespace: str, name: str) -> None:
        """Drop what is remembered of a plan that is gone."""
        for ref in [ref for ref in self._verified if (ref.namespace, ref.name) == (namespace, name)]:
            del self._verified[ref]

    async def create_engine(self, plan: Plan, owner: Owner, replicas: int) -> TargetView:
        """Create the Deployment together with its replicas.

        From here on the main apply owns the field; it drops it only after ``/scale`` has taken it.
        """
        created = await self._client.apply(deployment(plan, owner, replicas, self._installation))
        return workload_view(ObjectRef.of(created), created)

    async def write_replicas(self, view: TargetView, verdict: Verdict) -> TargetView:
        """Set the replicas that the verdict names, and look again; nothing where it names none."""
        if verdict.write is None:
            return view
        await kind_of(view.ref).write(self._client, view, verdict.write, force=verdict.force)
        return await self.look_again(view)

    async def look_again(self, view: TargetView) -> TargetView:
        """The target as it is now."""
        return await kind_of(view.ref).read(self._client, view.ref)

    async def apply_objects(self, plan: Plan, owner: Owner, view: TargetView, *, keep: bool = False) -> Applied:
        """Bring Deployment, Service and disruption budget to what is rendered. keep: not the Deployment.

        The Deployment first: it is the one that was just looked at, and found to be ours.
        """
        *others, main = render(plan, owner, self._installation)
        held = False if keep else await self._apply_deployment(main, view)
        troubles = [await self._apply_beside(plan, owner, manifest) for manifest in others]
        return Applied(held=held, trouble=next((trouble for trouble in troubles if trouble is not None), None))

    async def _apply_beside(self, plan: Plan, owner: Owner, manifest: Manifest) -> Trouble | None:
        """Apply a Service or disruption budget; the trouble where somebody else has one of that name.

        Neither changes by itself: one that was seen as it is rendered is not looked at again until `verify_anew`.
        """
        ref, selector = ObjectRef.of(manifest), manifest["spec"]["selector"]
        rendered = str(manifest["metadata"]["annotations"][RENDERED_ANNOTATION])
        if self._verified.get(ref) == rendered:
            return None
        live = await self._client.find(ref)
        if live is not None and not is_ours(
            live, plan=plan.name, uid=owner.uid, installation=self._installation, selector=selector
        ):
            return name_taken(ref, plan=plan.name, selector=selector)
        if live is None or not contained(manifest, live):
            await self._client.apply(_against(manifest, live), force=True)
        self._verified[ref] = rendered
        return None

    async def _apply_deployment(self, rendered: Manifest, view: TargetView) -> bool:
        if view.live is None:
            return False
        manager = self._client.field_manager
        wanted = remember_variant(keep_running_template(rendered, view.live, manager), view.live)
        held = _template(wanted) != _template(rendered)
        if only_main_entry(view.owners, manager):
            return held  # without `replicas` this apply would drop the field; it goes out once /scale has taken it
        if has_main_entry(view.owners, manager) or not contained(wanted, view.live):
            await self._client.apply(_against(wanted, view.live), force=True)
        return held


def _template(manifest: Manifest) -> str:
    return str(manifest["metadata"]["annotations"][TEMPLATE_ANNOTATION])


def _against(manifest: Manifest, live: Object | None) -> Manifest:
    """The manifest, to be applied only to the state that was seen."""
    if live is None:
        return manifest
    metadata = {**manifest["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    return {**manifest, "metadata": metadata}
