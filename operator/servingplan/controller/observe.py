"""Observe: everything that one reconcile needs to know of the cluster, read once.

In: a plan and what the watches have seen. Out: `Seen`: the target as it is now, its replicas, who else scales it,
and why it may not be ours to scale. Reads only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from servingplan.api.references import API_VERSIONS, Content, Kind, Reference, References, content, unreadable
from servingplan.api.target import engine_read_back
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import Clock
from servingplan.controller.holding import engine_trouble
from servingplan.controller.pods import replicas, running_pods
from servingplan.controller.signals import EnginePod, following, serving_pods
from servingplan.controller.store import Autoscaler, Key, Referred, Store, scaled_object_owner, target_of
from servingplan.controller.targets import HPA_KIND, TargetView, gpus_of, kind_of
from servingplan.errors import Refused
from servingplan.planning.observation import Observation, Replica, Stage, Trouble
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.serving import RunningPod
from servingplan.rendering.situation import Accelerators
from servingplan.rendering.variant import Variant, acted_on, variant_of

Object = Mapping[str, Any]

TARGET_PODS_EVERY_S = 30.0
"""Pods of a named target are not watched: while nothing rises or falls, they are listed this often."""

UNWATCHED_EVERY_S = 60.0
"""What plans refer to and no watch has seen (a ConfigMap without the label, what is missing) is read this often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one reconcile saw. `observation`: None where there is no target to observe.

    plan: the one to act on; where `variant` is held, with the engine that runs. serving: the pods that should say how
    they are, where the plan has feedback. running: what ready pods run, and on what, where that was measured.
    """

    plan: Plan
    view: TargetView
    observation: Observation | None
    trouble: Trouble | None
    autoscaler: str | None
    accelerators: Accelerators | None
    serving: tuple[EnginePod, ...] = ()
    variant: Variant | None = None
    running: tuple[RunningPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPods:
    """The pods of a target, those of them that serve, and the accelerators that one of them takes."""

    replicas: tuple[Replica, ...] = ()
    serving: tuple[EnginePod, ...] = ()
    running: tuple[RunningPod, ...] = ()
    gpu_resource: str | None = None
    gpus: int | None = None

    def complete(self, view: TargetView) -> TargetView:
        """The view, with what the target itself does not tell: who is ready, and GPUs per replica."""
        ready = sum(replica.stage is Stage.READY for replica in self.replicas)
        if view.gpus is None:
            view = replace(view, gpu_resource=self.gpu_resource, gpus=self.gpus)
        return replace(
            view,
            ready=ready if view.ready is None else view.ready,
            available=ready if view.available is None else view.available,
        )


NO_PODS = TargetPods()


class Observer:
    """Reads the cluster for one plan at a time."""

    def __init__(self, *, client: KubernetesClient, store: Store, clock: Clock, installation: str) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._installation = installation
        self._target_pods: dict[Key, tuple[float, TargetPods]] = {}
        self._unwatched: dict[Referred, tuple[float, Content | None]] = {}

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a plan's pods: it is gone, or they change now."""
        self._target_pods.pop(key, None)

    async def references(self, key: Key, wanted: frozenset[Reference]) -> References:
        """The contents of what a plan refers to; None where it is missing."""
        return {reference: await self._content((key.namespace, reference)) for reference in sorted(wanted)}

    def watches_all(self, key: Key, wanted: frozenset[Reference]) -> bool:
        """True where all that the plan refers to is watched, so that changes come by themselves."""
        return all((key.namespace, reference) in self._store.contents for reference in wanted)

    async def _content(self, where: Referred) -> Content | None:
        watched = self._store.contents.get(where)
        if watched is not None:
            return watched
        read_at, known = self._unwatched.get(where, (None, None))
        if read_at is not None and time.monotonic() - read_at < UNWATCHED_EVERY_S:
            return known
        namespace, reference = where
        kind = reference.kind
        ref = ObjectRef(api_version=API_VERSIONS[kind], kind=kind, name=reference.name, namespace=namespace)
        known = await self._read(kind, ref)
        self._unwatched[where] = (time.monotonic(), known)
        return known

    async def _read(self, kind: Kind, ref: ObjectRef) -> Content | None:
        try:
            found = await self._client.find(ref)
        except Refused:
            if (stands_for_it := unreadable(kind)) is None:
                raise
            return stands_for_it
        return None if found is None else content(kind, found)

    async def observe(self, key: Key, plan: Plan, document: Object) -> Seen:
        """The target of a plan as it is now."""
        ref = target_of(document)
        view = await kind_of(ref).read(self._client, ref)
        found = variant_of(plan, view.live, engine_read_back)
        plan = acted_on(plan, found)
        trouble = next(self._troubles(key, plan, document, view), None)
        observation, pods = None, NO_PODS
        if trouble is None:
            pods = await self._pods(key, plan, view)
            view = pods.complete(view)
            observation = Observation(
                current=view.current,
                ready=view.ready or 0,
                available=view.available or 0,
                replicas=pods.replicas,
                maximum=view.maximum,
                trouble=view.trouble if view.live is not None else None,
            )
        return Seen(
            plan=_with_gpus(plan, view),
            view=view,
            observation=observation,
            trouble=trouble,
            autoscaler=self._other_autoscaler(plan, ref),
            accelerators=self._accelerators(plan, view),
            serving=pods.serving,
            variant=found,
            running=pods.running,
        )

    async def _pods(self, key: Key, plan: Plan, view: TargetView) -> TargetPods:
        if view.live is None or not view.selector:
            return NO_PODS
        listed_at, known = self._target_pods.get(key, (None, NO_PODS))
        drains = any(replica.draining is not None for replica in known.replicas)
        settled = plan.engine is None and view.ready == view.current and not drains
        if settled and listed_at is not None and time.monotonic() - listed_at < TARGET_PODS_EVERY_S:
            return known
        pods = await self._client.list("v1", "Pod", view.ref.namespace, label_selector=view.selector)
        named = (gpus_of(pod["spec"]) for pod in pods.items)
        resource, gpus = next((each for each in named if each != (None, None)), (None, None))
        followed = following(plan)
        found = TargetPods(
            replicas=replicas(pods.items, self._clock, is_down=self._store.is_down),
            serving=() if followed is None else serving_pods(pods.items, followed, self._clock),
            running=() if plan.measured is None else running_pods(pods.items, self._store.hardware_of),
            gpu_resource=resource,
            gpus=gpus,
        )
        self._target_pods[key] = (time.monotonic(), found)
        return found

    # ---- whose target it is ----

    def _troubles(self, key: Key, plan: Plan, document: Object, view: TargetView) -> Iterator[Trouble]:
        """Why the target is not this plan's to scale, the most telling first."""
        holder = self._store.holder(key)
        if holder != key:
            message = f"plan {holder.name} is older and holds {view.ref}; delete one of the two plans"
            yield Trouble(reason=Reason.TARGET_CLAIMED, message=message)
        if plan.engine is not None:
            if view.live is not None:
                uid = document["metadata"]["uid"]
                found = engine_trouble(view.live, view.ref, plan, uid=uid, installation=self._installation)
                if found is not None:
                    yield found
        elif view.live is None or (view.trouble and view.trouble.reason is Reason.TARGET_NOT_SCALABLE):
            trouble = view.trouble or Trouble(reason=Reason.TARGET_NOT_FOUND, message=f"{view.ref} is missing")
            message = f"{trouble.message}. Create it, or correct spec.targetRef in a new plan."
            yield Trouble(reason=trouble.reason, message=message)
        owner = scaled_object_owner(view.live) if view.live is not None and view.ref.kind == HPA_KIND else None
        if owner is not None:
            message = (
                f"{view.ref} is made by ScaledObject {owner}, which sets it again; "
                f"point spec.targetRef of a new plan at ScaledObject {owner}"
            )
            yield Trouble(reason=Reason.OWNED_BY_SCALED_OBJECT, message=message)

    def _other_autoscaler(self, plan: Plan, ref: ObjectRef) -> str | None:
        """The autoscaler of a workload that the plan names or owns; none in floor mode, where it is the target."""
        if plan.target_ref is not None and plan.target_ref.is_floor:
            return None
        found = self._store.autoscaler_of(ref)
        return None if found is None else _shown(found)

    def _accelerators(self, plan: Plan, view: TargetView) -> Accelerators | None:
        resource = plan.engine.accelerator_resource if plan.engine is not None else view.gpu_resource
        if resource is None or not self._store.nodes:
            return None
        nodes = self._store.nodes.values()
        return Accelerators(
            allocatable=sum(node.allocatable.get(resource, 0) for node in nodes),
            elastic=any(node.elastic for node in nodes),
        )


def _with_gpus(plan: Plan, view: TargetView) -> Plan:
    """A named target's pods tell how many GPUs a replica takes, where the plan does not."""
    if plan.gpus_per_replica is not None or view.gpus is None:
        return plan
    return replace(plan, gpus_per_replica=view.gpus)


def _shown(autoscaler: Autoscaler) -> str:
    if autoscaler.owner is not None:
        return f"ScaledObject {autoscaler.ref.namespace}/{autoscaler.owner}"
    return str(autoscaler.ref)
