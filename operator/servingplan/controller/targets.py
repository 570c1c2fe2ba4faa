"""The kinds of target, and how each one's replicas are read and written.

In: the client and a reference. Out: a `TargetView`, what the target holds and who owns it; and the one write that
sets its replicas. Which value to write is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from servingplan.clients.answers import KindNotServed
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.field_owners import REPLICAS, Entry, entries
from servingplan.errors import NotFound
from servingplan.planning.observation import Trouble
from servingplan.planning.reasons import Reason
from servingplan.rendering.situation import Rollout

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """What a target holds now. `live`: None where it does not exist.

    current: its replicas, or an autoscaler's minimum. maximum: an autoscaler's own bound. ready, available: None
    where only its pods can tell. selector: the label selector of its pods. owners: who owns the field. gpus: per
    replica, None where its template names none.
    """

    ref: ObjectRef
    live: Object | None
    current: int | None = None
    maximum: int | None = None
    ready: int | None = 0
    available: int | None = 0
    selector: str = ""
    owners: Sequence[Entry] = ()
    trouble: Trouble | None = None
    rollout: Rollout = field(default_factory=Rollout)
    gpu_resource: str | None = None
    gpus: int | None = None

    @property
    def resource_version(self) -> str:
        """The state of the object that this view shows."""
        return str(self.live["metadata"]["resourceVersion"]) if self.live else ""


class TargetKind(Protocol):
    """How one kind of target is read and written."""

    @property
    def applied(self) -> bool:
        """True where a write is a server-side apply, so that an equal value still gains ownership."""

    @property
    def subresource(self) -> str:
        """Where the field is written, as ``managedFields`` names it; empty for the object itself."""

    async def read(self, client: KubernetesClient, ref: ObjectRef) -> TargetView:
        """What the target holds now; a view without `live` where it does not exist."""

    async def write(self, client: KubernetesClient, view: TargetView, replicas: int, *, force: bool) -> str:
        """Set the replicas, only in the state that the view shows. The new resourceVersion, where it is known."""


class Workload:
    """A Deployment or StatefulSet: server-side apply on ``/scale``."""

    applied = True
    subresource = "scale"

    async def read(self, client: KubernetesClient, ref: ObjectRef) -> TargetView:
        """Read the workload; its own status counts its replicas."""
        try:
            live = await client.get(ref)
        except NotFound as missing:
            return _missing(ref, missing)
        return workload_view(ref, live)

    async def write(self, client: KubernetesClient, view: TargetView, replicas: int, *, force: bool) -> str:
        """Apply on ``/scale``."""
        scale = await client.apply_scale(
            view.ref, replicas=replicas, resource_version=view.resource_version, force=force
        )
        return str(scale["metadata"]["resourceVersion"])


class ScalableResource:
    """Any other kind with ``/scale``: merge patch, because an apply on a custom resource's ``/scale`` answers 500."""

    applied = False
    subresource = "scale"

    async def read(self, client: KubernetesClient, ref: ObjectRef) -> TargetView:
        """Read the object and its Scale."""
        try:
            live = await client.get(ref)
        except NotFound as missing:
            return _missing(ref, missing)
        try:
            scale = await client.get_scale(ref)
        except KindNotServed as refusal:
            trouble = Trouble(reason=Reason.TARGET_NOT_SCALABLE, message=str(refusal))
            return TargetView(ref=ref, live=live, trouble=trouble)
        status = live.get("status", {})
        return TargetView(
            ref=ref,
            live=live,
            current=scale.get("spec", {}).get("replicas", 0),
            ready=status.get("readyReplicas"),
            available=status.get("availableReplicas", status.get("readyReplicas")),
            selector=scale.get("status", {}).get("selector", ""),
            owners=entries(live, REPLICAS),
        )

    async def write(self, client: KubernetesClient, view: TargetView, replicas: int, *, force: bool) -> str:
        """Patch ``/scale``; a patch takes the field whether forced or not."""
        del force
        scale = await client.merge_patch_scale(view.ref, replicas=replicas, resource_version=view.resource_version)
        return str(scale["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerFloor:
    """An HPA or ScaledObject: a patch of its minimum alone. Readiness is that of what it scales."""

    minimum_field: str
    maximum_field: str
    default_minimum: int
    default_maximum: int
    applied: bool = False
    subresource: str = ""

    async def read(self, client: KubernetesClient, ref: ObjectRef) -> TargetView:
        """Read the autoscaler, and the workload that it scales."""
        try:
            live = await client.get(ref)
        except NotFound as missing:
            return _missing(ref, missing)
        spec = live.get("spec", {})
        scaled = await self._scaled(client, ref, spec.get("scaleTargetRef", {}))
        return TargetView(
            ref=ref,
            live=live,
            current=spec.get(self.minimum_field, self.default_minimum),
            maximum=spec.get(self.maximum_field, self.default_maximum),
            ready=scaled.ready,
            available=scaled.available,
            selector=scaled.selector,
            owners=entries(live, ("f:spec", f"f:{self.minimum_field}")),
            trouble=scaled.trouble,
            gpu_resource=scaled.gpu_resource,
            gpus=scaled.gpus,
        )

    async def write(self, client: KubernetesClient, view: TargetView, replicas: int, *, force: bool) -> str:
        """Patch the minimum alone."""
        del force
        body = {"spec": {self.minimum_field: replicas}}
        live = await client.merge_patch(view.ref, body, resource_version=view.resource_version)
        return str(live["metadata"]["resourceVersion"])

    async def _scaled(self, client: KubernetesClient, ref: ObjectRef, scaled: Object) -> TargetView:
        target = ObjectRef(
            api_version=scaled.get("apiVersion") or "apps/v1",
            kind=scaled.get("kind") or "Deployment",
            name=scaled.get("name", ""),
            namespace=ref.namespace,
        )
        return await kind_of(target).read(client, target)


WORKLOAD = Workload()
SCALABLE = ScalableResource()
HPA = AutoscalerFloor(minimum_field="minReplicas", maximum_field="maxReplicas", default_minimum=1, default_maximum=1)
SCALED_OBJECT = AutoscalerFloor(
    minimum_field="minReplicaCount", maximum_field="maxReplicaCount", default_minimum=0, default_maximum=100
)
"""KEDA's own defaults where a ScaledObject states no bounds."""


HPA_KIND = "HorizontalPodAutoscaler"

WATCHED = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("autoscaling", HPA_KIND),
        ("keda.sh", "ScaledObject"),
    }
)


def is_watched(ref: ObjectRef) -> bool:
    """True where changes of the target come by themselves; any other kind has to be looked at."""
    return (ref.api_version.rpartition("/")[0], ref.kind) in WATCHED


def kind_of(ref: ObjectRef) -> TargetKind:
    """How a target is read and written."""
    group = ref.api_version.rpartition("/")[0]
    if (group, ref.kind) in {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet")}:
        return WORKLOAD
    if (group, ref.kind) == ("autoscaling", HPA_KIND):
        return HPA
    if (group, ref.kind) == ("keda.sh", "ScaledObject"):
        return SCALED_OBJECT
    return SCALABLE


def workload_view(ref: ObjectRef, live: Object) -> TargetView:
    """A live Deployment or StatefulSet as a view."""
    spec, status = live["spec"], live.get("status", {})
    resource, gpus = gpus_of(spec["template"].get("spec", {}))
    return TargetView(
        ref=ref,
        live=live,
        current=spec.get("replicas", 1),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        selector=_selector(spec.get("selector", {})),
        owners=entries(live),
        trouble=_refused_pods(status),
        rollout=_rollout(status),
        gpu_resource=resource,
        gpus=gpus,
    )


def _missing(ref: ObjectRef, error: NotFound) -> TargetView:
    """The object, or its kind, is missing: the server's own words tell which."""
    return TargetView(ref=ref, live=None, trouble=Trouble(reason=Reason.TARGET_NOT_FOUND, message=str(error)))


def _selector(selector: Object) -> str:
    """A LabelSelector as the query string that a list takes."""
    parts = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    for expression in selector.get("matchExpressions", ()):
        key, values = expression["key"], ",".join(sorted(expression.get("values", ())))
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[expression["operator"]]
        )
    return ",".join(parts)


def _refused_pods(status: Object) -> Trouble | None:
    """What the API server says where it refuses the pods themselves, as a quota does."""
    for condition in status.get("conditions", ()):
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            message = condition.get("message", "")
            quota = "exceeded quota" in message
            return Trouble(reason=Reason.QUOTA_REFUSED if quota else Reason.APPLY_REFUSED, message=message)
    return None


def _rollout(status: Object) -> Rollout:
    conditions = {c["type"]: c for c in status.get("conditions", ())}
    progressing = conditions.get("Progressing", {})
    late = progressing.get("reason") == "ProgressDeadlineExceeded"
    return Rollout(
        rolling=status.get("replicas", 0) > status.get("updatedReplicas", 0),
        stalled=progressing.get("message") if late else None,
    )


ACCELERATOR = re.compile(r"gpu|(^|[./])(mig-|tpu|gaudi|neuron|ascend)", re.IGNORECASE)
"""The names of extended resources that are accelerators: GPUs, slices of one (``nvidia.com/mig-1g.10gb``), and what
other makers call theirs. Network and file devices are extended resources too."""


def gpus_of(pod: Object) -> tuple[str | None, int | None]:
    """The accelerator that a pod's spec names and how many it takes; None where it names none.

    Counted as its resource counts: a slice is one.
    """
    totals: dict[str, int] = {}
    for container in pod.get("containers", ()):
        for resource, amount in container.get("resources", {}).get("limits", {}).items():
            if "/" in resource and ACCELERATOR.search(resource) and str(amount).isdigit():
                totals[resource] = totals.get(resource, 0) + int(amount)
    return next(iter(sorted(totals.items())), (None, None))
