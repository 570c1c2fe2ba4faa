"""Kinds that a cluster of its own does not serve: a scalable resource of a user's, and as much of KEDA's as is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client, config

from e2e.support.operator import Installation
from e2e.support.writers import MERGE, every
from servingplan.localcluster.cluster import LocalCluster
from support.charts import CHART, run_helm

GROUP = "e2e.servingplan.dev"
INTEGER = {"type": "integer"}


def _definition(
    group: str, version: str, plural: str, kind: str, properties: Mapping[str, Any], **subresources: Any
) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, **subresources},
                }
            ],
        },
    }


POOLS = _definition(
    GROUP,
    "v1",
    "pools",
    "Pool",
    {
        "spec": {"type": "object", "properties": {"replicas": INTEGER}},
        "status": {"type": "object", "properties": {"replicas": INTEGER, "selector": {"type": "string"}}},
    },
    scale={
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)
BOXES = _definition(GROUP, "v1", "boxes", "Box", {"spec": {"type": "object", "properties": {"replicas": INTEGER}}})
"""A kind without ``/scale``."""

SCALED_OBJECTS = _definition(
    "keda.sh",
    "v1alpha1",
    "scaledobjects",
    "ScaledObject",
    {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
)


def pool(name: str, *, replicas: int) -> dict[str, Any]:
    """A scalable resource whose pods are those of a Deployment of its name."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Pool", "metadata": {"name": name}, "spec": {"replicas": replicas}}


def hpa(name: str, target: str, *, minimum: int, maximum: int) -> dict[str, Any]:
    """An HPA that scales a Deployment by a metric that nobody measures."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": minimum,
            "maxReplicas": maximum,
        },
    }


def scaled_object(name: str, target: str, **spec: Any) -> dict[str, Any]:
    """A ScaledObject of KEDA."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": target}, **spec},
    }


@contextmanager
def more_kinds(cluster: LocalCluster, installation: Installation) -> Iterator[None]:
    """Until the end of the block the cluster serves these kinds, and the chart lets plans name pools and boxes."""
    definitions = (POOLS, BOXES, SCALED_OBJECTS)
    names = [f"crd/{definition['metadata']['name']}" for definition in definitions]
    cluster.kubectl.apply(*definitions)
    cluster.kubectl("wait", "--for=condition=Established", *names)
    extra = [
        {"apiGroup": GROUP, "kind": kind, "resource": plural} for kind, plural in (("Pool", "pools"), ("Box", "boxes"))
    ]
    _upgrade(cluster, installation, f"--set-json=extraScaleTargets={json.dumps(extra)}")
    try:
        yield
    finally:
        _upgrade(cluster, installation)
        cluster.kubectl("delete", "--wait=false", *names)


def _upgrade(cluster: LocalCluster, installation: Installation, *options: str) -> None:
    where = (f"--namespace={installation.home}", f"--kubeconfig={cluster.kubeconfig}")
    run_helm("upgrade", "operator", str(CHART), "--take-ownership", "--set=replicas=0", *options, *where)


@contextmanager
def pool_controller(kubeconfig: Path, namespace: str, name: str) -> Iterator[None]:
    """Plays the controller of a pool: its Deployment gets the pool's replicas, its status the Deployment's."""
    api = config.new_client_from_config(str(kubeconfig))
    apps, custom = client.AppsV1Api(api), client.CustomObjectsApi(api)
    where = {"group": GROUP, "version": "v1", "namespace": namespace, "plural": "pools", "name": name}

    def follow() -> None:
        wanted = custom.get_namespaced_custom_object(**where)
        deployment = apps.read_namespaced_deployment(name, namespace)
        if deployment.spec.replicas != wanted["spec"]["replicas"]:
            body = {"spec": {"replicas": wanted["spec"]["replicas"]}}
            apps.patch_namespaced_deployment_scale(name, namespace, body, _content_type=MERGE)
        status = {"replicas": deployment.status.replicas or 0, "selector": f"app={name}"}
        if wanted.get("status") != status:
            custom.patch_namespaced_custom_object_status(**where, body={"status": status}, _content_type=MERGE)

    with every(0.2, follow):
        yield
