"""The Deployment of an owned engine.

In: a plan with an `Engine`. Out: the Deployment as JSON. The pod template comes from ``spec.engine`` (and the
plan's name) alone; how many replicas there are and how they are renewed lies outside it.
"""

from __future__ import annotations

import math
from datetime import timedelta

from servingplan.planning.plan import Plan, Reserve
from servingplan.planning.target import Engine
from servingplan.rendering import engine as vllm
from servingplan.rendering import probes, volumes
from servingplan.rendering.comparison import template_hash
from servingplan.rendering.identity import identity
from servingplan.rendering.merge import merged
from servingplan.rendering.metadata import (
    DEFAULT_INSTALLATION,
    ENGINE_ANNOTATION,
    STATED_ANNOTATION,
    TEMPLATE_ANNOTATION,
    VARIANT_ANNOTATION,
    Manifest,
    Owner,
    PodLabels,
    object_metadata,
    plan_pods,
    recommended_labels,
    sealed,
    selector,
)

PROGRESS_MARGIN = timedelta(minutes=5)
"""Scheduling and pulling, beyond the start timeout, before a Deployment counts as stuck."""

_REVISIONS_KEPT = 3
"""Enough to go back to the last engine that worked; each is a ReplicaSet that the caches of others hold."""


def deployment(
    plan: Plan, owner: Owner | None, replicas: int | None, installation: str = DEFAULT_INSTALLATION
) -> Manifest:
    """The plan's Deployment; without `replicas`, the field is absent and its owner is not us.

    Raises ValueError where the plan has no engine.
    """
    engine = owned_engine(plan)
    spec: Manifest = {
        "progressDeadlineSeconds": progress_deadline_s(engine),
        "revisionHistoryLimit": _REVISIONS_KEPT,
        "selector": {"matchLabels": selector(plan.name)},
        "strategy": strategy(plan.reserve),
        "template": pod_template(plan_pods(plan.name), engine),
    }
    annotations = {
        ENGINE_ANNOTATION: vllm.engine_hash(engine),
        STATED_ANNOTATION: engine.stated,
        TEMPLATE_ANNOTATION: template_hash({"spec": spec}),
        VARIANT_ANNOTATION: identity(engine).digest,
    }
    metadata = object_metadata(plan, owner, installation) | {"annotations": annotations}
    result = sealed({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    return result if replicas is None else result | {"spec": spec | {"replicas": replicas}}


def progress_deadline_s(engine: Engine) -> int:
    """Seconds without progress after which a Deployment of the engine counts as stuck."""
    return math.ceil((engine.start_timeout + PROGRESS_MARGIN).total_seconds())


def owned_engine(plan: Plan) -> Engine:
    """The plan's engine. Raises ValueError where it names a target instead: nothing is rendered then."""
    if plan.engine is None:
        raise ValueError(f"plan {plan.key} has no engine; only a plan with spec.engine is rendered")
    return plan.engine


def strategy(reserve: Reserve) -> Manifest:
    """How replicas are renewed: within the reserve, or, without one, with a spare GPU first."""
    spare = reserve.smallest
    surge, unavailable = (0, spare) if spare >= 1 else (1, 0)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def pod_template(pods: PodLabels, engine: Engine) -> Manifest:
    """The pod template: ours, with the plan's own laid over it; the labels that select pods stay ours."""
    rendered: Manifest = {
        "metadata": {"labels": recommended_labels(pods.instance)},
        "spec": _pod_spec(pods, engine),
    }
    protected = {"metadata": {"labels": pods.serving}}
    return merged(merged(rendered, engine.pod_template), protected)


def _pod_spec(pods: PodLabels, engine: Engine) -> Manifest:
    return {
        # An engine needs no Kubernetes API, and vLLM runs code that comes with models.
        "automountServiceAccountToken": False,
        "containers": [_engine_container(engine)],
        # A Service named vllm would set VLLM_PORT to a URL, and vLLM would refuse to start.
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": math.ceil(probes.grace(engine).total_seconds()),
        # What GPU nodes are usually tainted with; it lets a pod onto such a node and forces it nowhere.
        "tolerations": [{"effect": "NoSchedule", "key": key, "operator": "Exists"} for key in _taints(engine)],
        "topologySpreadConstraints": [
            {
                "labelSelector": {"matchLabels": dict(pods.selector)},
                # Each revision is spread by itself, or a rolling update would be pushed onto full nodes.
                "matchLabelKeys": ["pod-template-hash"],
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
        "volumes": volumes.volumes(engine),
    }


def _taints(engine: Engine) -> list[str]:
    """The keys of those taints; a node whose GPUs are sliced has mostly kept that of whole ones."""
    vendor, _, device = engine.accelerator_resource.partition("/")
    return [engine.accelerator_resource, *([f"{vendor}/gpu"] if device.startswith("mig-") else [])]


def _engine_container(engine: Engine) -> Manifest:
    return {
        "name": vllm.ENGINE_CONTAINER,
        "image": engine.image,
        "args": vllm.arguments(engine),
        "env": vllm.environment(engine),
        "lifecycle": probes.lifecycle(),
        "livenessProbe": probes.liveness_probe(),
        "ports": [{"name": probes.PORT_NAME, "containerPort": engine.port, "protocol": "TCP"}],
        "readinessProbe": probes.readiness_probe(),
        "resources": _resources(engine),
        # The image runs as root and reads model files of any owner, so capabilities and user stay its own.
        "securityContext": {"allowPrivilegeEscalation": False},
        "startupProbe": probes.startup_probe(engine),
        "volumeMounts": volumes.volume_mounts(engine),
    }


def _resources(engine: Engine) -> Manifest:
    """The plan's resources with the accelerators of one replica; Kubernetes takes their request from it."""
    return merged(engine.resources, {"limits": {engine.accelerator_resource: str(engine.parallelism.gpus)}})
