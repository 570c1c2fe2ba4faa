"""What the watches have seen, trimmed to what decides, and which plans each object concerns.

In: watch events and relists, as plain dicts. Out: lookups for one reconcile, and the keys of the plans that an
object concerns. It does no I/O and starts no work itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from servingplan.api.references import Content, Kind, Reference, content, referenced
from servingplan.clients.references import ObjectRef
from servingplan.rendering.metadata import PLAN_LABEL
from servingplan.rendering.serving import Hardware, hardware_of

Object = Mapping[str, Any]
T = TypeVar("T")
M = TypeVar("M")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Which plan."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node's accelerators, by resource name, where it takes pods. elastic: an autoscaler made it.

    ready: its kubelet is heard, so that its pods can be. hardware: what it says of its accelerators.
    """

    allocatable: Mapping[str, int]
    elastic: bool
    ready: bool = True
    hardware: Hardware = field(default_factory=Hardware)


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """An HPA or ScaledObject: what it scales, and the ScaledObject that owns it, if any."""

    ref: ObjectRef
    target: ObjectRef
    owner: str | None


KEPT_METADATA = ("namespace", "name", "uid", "generation", "creationTimestamp", "deletionTimestamp")

ELASTIC_MARKS = ("karpenter.sh/nodepool", "cluster-autoscaler.kubernetes.io/", "eks.amazonaws.com/nodegroup")
"""Labels and annotations that an autoscaler leaves on the nodes that it adds."""


Referred = tuple[str, Reference]
"""An object that a plan refers to, with its namespace."""

TargetId = tuple[str, str, str, str]
"""Group, kind, namespace, name: an object, whatever version its API group is spoken in."""


class Store:
    """Plans, what they refer to, nodes and autoscalers, as last seen.

    Every Deployment of the cluster comes by here: which plans one concerns is a look-up, not a search.
    """

    def __init__(self) -> None:
        self.plans: dict[Key, Object] = {}
        self._by_target: dict[TargetId, set[Key]] = {}
        self._by_reference: dict[Referred, set[Key]] = {}
        self.contents: dict[Referred, Content] = {}
        self.nodes: dict[str, Node] = {}
        self.autoscalers: dict[ObjectRef, Autoscaler] = {}
        self._by_scaled: dict[TargetId, set[ObjectRef]] = {}

    # ---- what came in ----

    def put_plan(self, plan: Object) -> Key:
        """Remember a plan as it is now."""
        key = key_of(plan)
        self.drop_plan(key)
        self.plans[key] = _trimmed(plan)
        self._by_target.setdefault(_identity(target_of(plan)), set()).add(key)
        for reference in referenced(plan):
            self._by_reference.setdefault((key.namespace, reference), set()).add(key)
        return key

    def drop_plan(self, key: Key) -> None:
        """Forget a plan, if it is known."""
        plan = self.plans.pop(key, None)
        if plan is None:
            return
        _discard(self._by_target, _identity(target_of(plan)), key)
        for reference in referenced(plan):
            _discard(self._by_reference, (key.namespace, reference), key)

    def put_content(self, kind: Kind, live: Object) -> frozenset[Key]:
        """Remember what decides of an object that plans may refer to; those that do, where it changed."""
        where, new = _referred(kind, live), content(kind, live)
        changed = self.contents.get(where) != new
        self.contents[where] = new
        return self.plans_referring(where) if changed else frozenset()

    def drop_content(self, kind: Kind, live: Object) -> frozenset[Key]:
        """Forget an object that plans may refer to; those that do."""
        where = _referred(kind, live)
        self.contents.pop(where, None)
        return self.plans_referring(where)

    def put_node(self, node: Object) -> bool:
        """Remember a node; True where its accelerators changed."""
        name, new = node["metadata"]["name"], _node(node)
        changed = self.nodes.get(name) != new
        self.nodes[name] = new
        return changed

    def put_autoscaler(self, autoscaler: Object) -> frozenset[Key]:
        """Remember an HPA or ScaledObject; the plans that it concerns."""
        ref = ObjectRef.of(autoscaler)
        before = self.drop_autoscaler(ref)
        seen = Autoscaler(ref=ref, target=_scaled(autoscaler), owner=scaled_object_owner(autoscaler))
        self.autoscalers[ref] = seen
        self._by_scaled.setdefault(_identity(seen.target), set()).add(ref)
        return before | self.plans_targeting(ref) | self.plans_targeting(seen.target)

    def drop_autoscaler(self, ref: ObjectRef) -> frozenset[Key]:
        """Forget an HPA or ScaledObject; the plans that it concerned."""
        seen = self.autoscalers.pop(ref, None)
        if seen is None:
            return self.plans_targeting(ref)
        _discard(self._by_scaled, _identity(seen.target), ref)
        return self.plans_targeting(ref) | self.plans_targeting(seen.target)

    def replace(
        self,
        plans: Iterable[Object],
        contents: Mapping[Kind, Iterable[Object]],
        autoscalers: Iterable[Object],
        nodes: Iterable[Object],
    ) -> None:
        """Forget everything and remember complete lists instead."""
        for key in list(self.plans):
            self.drop_plan(key)
        for known in (self.contents, self.autoscalers, self._by_scaled, self.nodes):
            known.clear()
        for plan in plans:
            self.put_plan(plan)
        for kind, objects in contents.items():
            for live in objects:
                self.put_content(kind, live)
        for autoscaler in autoscalers:
            self.put_autoscaler(autoscaler)
        for node in nodes:
            self.put_node(node)

    # ---- which plans ----

    def rivals(self, key: Key) -> frozenset[Key]:
        """The other plans that name the same target as a plan that is known."""
        plan = self.plans.get(key)
        return frozenset() if plan is None else self.plans_targeting(target_of(plan)) - {key}

    def plans_referring(self, where: Referred) -> frozenset[Key]:
        """The plans that refer to an object."""
        return frozenset(self._by_reference.get(where, ()))

    def plans_targeting(self, ref: ObjectRef) -> frozenset[Key]:
        """The plans whose target is that object; the apiVersion's version does not matter."""
        return frozenset(self._by_target.get(_identity(ref), ()))

    def concerned(self, live: Object) -> frozenset[Key]:
        """The plans that a workload or pod concerns: by its label, as their target, or as what their target scales."""
        metadata = live["metadata"]
        label = metadata.get("labels", {}).get(PLAN_LABEL)
        labelled = frozenset({Key(metadata["namespace"], label)} if label else ()) & self.plans.keys()
        if live.get("kind") == "Pod":
            return labelled
        ref = ObjectRef.of(live)
        through = (self.plans_targeting(scaler) for scaler in self._by_scaled.get(_identity(ref), ()))
        return labelled.union(self.plans_targeting(ref), *through)

    def holder(self, key: Key) -> Key:
        """The plan that holds the target of `key`: the oldest of all that name it (creation, then UID).

        A plan that is not known, as one that was deleted this very moment, has no rivals.
        """
        rivals = self.rivals(key)
        return min(rivals | {key}, key=lambda rival: _age(self.plans[rival])) if rivals else key

    def is_down(self, node: str) -> bool:
        """True where a node is known not to be ready."""
        known = self.nodes.get(node)
        return known is not None and not known.ready

    def hardware_of(self, node: str) -> Hardware | None:
        """What a node says of its accelerators; None where it is not known."""
        known = self.nodes.get(node)
        return None if known is None else known.hardware

    def autoscaler_of(self, target: ObjectRef) -> Autoscaler | None:
        """The HPA or ScaledObject that scales a workload; a ScaledObject rather than the HPA that it made."""
        found = [self.autoscalers[ref] for ref in self._by_scaled.get(_identity(target), ())]
        return min(found, key=lambda a: (a.ref.kind != "ScaledObject", a.ref), default=None)


def key_of(plan: Object) -> Key:
    """The key of a ServingPlan."""
    return Key(plan["metadata"]["namespace"], plan["metadata"]["name"])


def _trimmed(plan: Object) -> Object:
    """What the store looks at: who the plan is, and what it refers to. Thousands of plans are kept."""
    metadata, spec = plan["metadata"], plan.get("spec", {})
    return {
        "metadata": {name: metadata[name] for name in KEPT_METADATA if name in metadata},
        "spec": {name: spec[name] for name in ("targetRef", "schedule", "capacity", "acceptance") if name in spec},
    }


def target_of(plan: Object) -> ObjectRef:
    """The object whose replicas a plan sets: its target, or the Deployment of its engine."""
    spec, key = plan.get("spec", {}), key_of(plan)
    if "targetRef" in spec:
        ref = spec["targetRef"]
        return ObjectRef(api_version=ref["apiVersion"], kind=ref["kind"], name=ref["name"], namespace=key.namespace)
    return ObjectRef(api_version="apps/v1", kind="Deployment", name=key.name, namespace=key.namespace)


def _referred(kind: Kind, live: Object) -> Referred:
    metadata = live["metadata"]
    return (metadata["namespace"], Reference(kind, metadata["name"]))


def _identity(ref: ObjectRef) -> TargetId:
    return (ref.api_version.rpartition("/")[0], ref.kind, ref.namespace, ref.name)


def _discard(index: dict[T, set[M]], at: T, member: M) -> None:
    """Take a member out of an index, and the entry with its last member."""
    members = index.get(at, set())
    members.discard(member)
    if not members:
        index.pop(at, None)


def _age(plan: Object) -> tuple[str, str]:
    return (plan["metadata"]["creationTimestamp"], plan["metadata"]["uid"])


def _scaled(autoscaler: Object) -> ObjectRef:
    """What an autoscaler scales; a ScaledObject's target is a Deployment unless it says otherwise."""
    ref = autoscaler.get("spec", {}).get("scaleTargetRef", {})
    return ObjectRef(
        api_version=ref.get("apiVersion") or "apps/v1",
        kind=ref.get("kind") or "Deployment",
        name=ref.get("name", ""),
        namespace=autoscaler["metadata"]["namespace"],
    )


def scaled_object_owner(autoscaler: Object) -> str | None:
    """The ScaledObject that made an HPA, if any."""
    owners: Iterable[Object] = autoscaler["metadata"].get("ownerReferences", ())
    return next((owner["name"] for owner in owners if owner["kind"] == "ScaledObject"), None)


def _node(node: Object) -> Node:
    """A node's accelerators: none where it is cordoned or not ready."""
    metadata, status = node["metadata"], node.get("status", {})
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
    usable = ready and not node.get("spec", {}).get("unschedulable", False)
    marks = [*metadata.get("labels", {}), *metadata.get("annotations", {})]
    return Node(
        allocatable={
            resource: int(amount)
            for resource, amount in status.get("allocatable", {}).items()
            if usable and "/" in resource and str(amount).isdigit()
        },
        elastic=any(mark.startswith(ELASTIC_MARKS) for mark in marks),
        ready=ready,
        hardware=hardware_of(metadata.get("labels", {})),
    )
