"""Names, labels, annotations and owners: how an object says which plan it belongs to.

In: a plan and its owner. Out: the ``metadata`` of every rendered object, and the words that the rest of the
package looks for on live ones. Must not know what the objects are for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any

from servingplan.planning.plan import Plan
from servingplan.planning.target import DeletionPolicy

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""

PLAN_LABEL = "servingplan.dev/plan"
"""The plan's name, on everything rendered for it; the whole selector of the ReplicaSets."""

SERVING_LABEL = "servingplan.dev/serving"
"""``"true"`` on a pod that takes requests. Only the Service selects it: a pod that loses it drains, and still
belongs to its ReplicaSet."""

DRAINING_ANNOTATION = "servingplan.dev/draining-since"
"""On a pod that lost the label above: the instant at which it began to drain."""

DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' own: of equally ready pods, a ReplicaSet removes the one with the lowest first."""

FIRST_TO_GO = str(-(2**31))
"""The lowest deletion cost that there is: no cost of a user's own lies below it."""

INSTALLATION_LABEL = "servingplan.dev/installation"
"""Which installation of the operator rendered the object."""

CONFIG_LABEL = "servingplan.dev/config"
"""``"true"`` on a ConfigMap whose changes act within seconds."""

ADOPT_ANNOTATION = "servingplan.dev/adopt-by"
"""On an object that somebody else made: the plan that may take it over."""

ENGINE_ANNOTATION = "servingplan.dev/engine"
"""Hash of ``spec.engine``: tells an edit by the user from an operator that renders differently."""

TEMPLATE_ANNOTATION = "servingplan.dev/template"
"""Hash of the pod template as we applied it: tells what others changed from what a new operator renders."""

VARIANT_ANNOTATION = "servingplan.dev/variant"
"""Digest of the engine that the pod template runs, as evidence names it."""

VARIANT_BEFORE_ANNOTATION = "servingplan.dev/variant-before"
"""Digest of the engine that ran until the last change of it: the way back is always free."""

STATED_ANNOTATION = "servingplan.dev/variant-spec"
"""``spec.engine``, as JSON, that the pod template was rendered from: what runs, whatever the plan says since."""

RENDERED_ANNOTATION = "servingplan.dev/rendered"
"""Hash of the rendered object: what was taken out of it is a difference too, which containment cannot see."""

DEFAULT_INSTALLATION = "default"
"""The name of an installation that was given none."""

TRIAL_LABEL = "servingplan.dev/trial"
"""The name of the evidence that a trial pool runs for, on all of the pool; its pods carry no plan's label, so that no
plan counts them."""

EVIDENCE_LABEL = "servingplan.dev/evidence"
"""The name of the evidence, on its Jobs and their pods."""

EVIDENCE_KIND_LABEL = "servingplan.dev/evidence-kind"
"""Its kind, on both of these and on the trial pool."""

WORK_ANNOTATION = "servingplan.dev/work"
"""On a trial pool's Deployment: the work that it was rendered for."""

IDENTITY_ANNOTATION = "servingplan.dev/identity"
"""On the same: the identity of its engine, as JSON."""

REPORT_ANNOTATION = "servingplan.dev/report"
"""On a finished Job: what its container handed back, which is lost with the pod otherwise."""

MEASURED_ANNOTATION = "servingplan.dev/measured"
"""On the same: what the engine's pods and nodes said of themselves then, as JSON."""

MANAGER = "servingplan"
"""Who manages what is rendered: the value of the recommended label, and the stem of field managers."""

_HASH_DIGITS = 16
"""64 bits: two of a user's engines never meet by chance, and the hash still fits a path and a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object that the garbage collector follows: the ServingPlan, or the evidence that something runs for."""

    uid: str
    api_version: str
    kind: str
    name: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Owner:
        """A live object as an owner."""
        return cls(
            uid=document["metadata"]["uid"],
            api_version=document["apiVersion"],
            kind=document["kind"],
            name=document["metadata"]["name"],
        )


def field_manager(installation: str = DEFAULT_INSTALLATION) -> str:
    """The server-side apply manager; two installations must see each other, so each has its own."""
    return MANAGER if installation == DEFAULT_INSTALLATION else f"{MANAGER}-{installation}"


def stable_hash(value: Any) -> str:
    """16 hex digits of the SHA-256 of a value: equal for equal content, whatever order its mappings have."""
    return stable_digest(value)[:_HASH_DIGITS]


def stable_digest(value: Any) -> str:
    """All 64 hex digits of it, for what is compared with records that others keep."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLabels:
    """How pods of an engine are told from others. instance: what they belong to, in dashboards.

    selector: what their ReplicaSet selects. serving: what their Service selects.
    """

    instance: str
    selector: Mapping[str, str]
    serving: Mapping[str, str]


def plan_pods(plan_name: str) -> PodLabels:
    """The pods of a plan."""
    return PodLabels(instance=plan_name, selector=selector(plan_name), serving=serving_selector(plan_name))


def selector(plan_name: str) -> dict[str, str]:
    """What a ReplicaSet and the disruption budget select: every pod of the plan, draining ones too."""
    return {PLAN_LABEL: plan_name}


def serving_selector(plan_name: str) -> dict[str, str]:
    """What the Service selects: the pods of the plan that take requests."""
    return {PLAN_LABEL: plan_name, SERVING_LABEL: "true"}


def recommended_labels(plan_name: str) -> dict[str, str]:
    """The labels that Kubernetes' own tools and dashboards group by."""
    return {
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/instance": plan_name,
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/name": "vllm",
    }


def object_metadata(plan: Plan, owner: Owner | None, installation: str) -> Manifest:
    """The metadata of an object named like the plan.

    Without an owner (offline there is no UID), and where a deleted plan retains its engine, the labels alone
    tell where the object belongs.
    """
    metadata: Manifest = {
        "name": plan.name,
        "namespace": plan.namespace,
        "labels": recommended_labels(plan.name) | {INSTALLATION_LABEL: installation} | selector(plan.name),
    }
    if owner is not None and not _retained(plan):
        metadata["ownerReferences"] = [owner_reference(owner)]
    return metadata


def sealed(manifest: Manifest) -> Manifest:
    """The object with the hash of itself, so that any change of the rendering shows on the live object."""
    metadata = manifest["metadata"]
    annotations = {k: v for k, v in metadata.get("annotations", {}).items() if k != RENDERED_ANNOTATION}
    unsealed = manifest | {"metadata": metadata | {"annotations": annotations}}
    annotations = annotations | {RENDERED_ANNOTATION: stable_hash(unsealed)}
    return manifest | {"metadata": metadata | {"annotations": annotations}}


def _retained(plan: Plan) -> bool:
    return plan.engine is not None and plan.engine.deletion_policy is DeletionPolicy.RETAIN


def owner_reference(owner: Owner) -> Manifest:
    """The owner as the one that controls the object: it goes when its owner goes."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _plain(value: Any) -> Any:
    """JSON of any value of the plan: dataclasses by field, what JSON does not know by its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # 0.9 and 0.90 are one number, however it was written.
    return format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)
