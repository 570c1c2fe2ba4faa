"""Nodes that kwok plays: they have GPUs, they come, go, and die.

Place in the flow: `LocalCluster` calls these with its ``kubectl``. `node` is pure, the rest talks to the API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from servingplan.localcluster.kubectl import Kubectl, wait_until
from servingplan.localcluster.stages import MANAGED_LABEL, MANAGED_VALUE, NODE_STOPPED

GPU = "nvidia.com/gpu"
STOPPED_VALUE = "stopped"
# A usual GPU server; what decides in here is the number of GPUs.
CPUS = "64"
MEMORY = "512Gi"
PODS = "110"
READY_TIMEOUT_S = 60.0


def node(name: str, *, gpus: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """The Node object that a kubelet with ``gpus`` GPUs would register."""
    resources = {"cpu": CPUS, "memory": MEMORY, "pods": PODS} | ({GPU: str(gpus)} if gpus else {})
    own_labels = {
        MANAGED_LABEL: MANAGED_VALUE,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own_labels | dict(labels)},
        "status": {"capacity": resources, "allocatable": resources},
    }


def add(kubectl: Kubectl, names: Sequence[str], *, gpus: int, labels: Mapping[str, str]) -> None:
    """Creates nodes and waits until pods can be scheduled on them."""
    nodes = [node(name, gpus=gpus, labels=labels) for name in names]
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    _wait_usable(kubectl, names)


def remove(kubectl: Kubectl, name: str) -> None:
    """Takes a node away with its pods, as a cloud does that ends the machine: no pod gets time to drain."""
    kubectl("delete", "node", name, "--ignore-not-found", "--wait=false")
    # The garbage collector would do the same, but it waits 40 s for the node to come back.
    kubectl(
        *("delete", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={name}"),
        *("--force", "--grace-period=0"),
    )


def stop(kubectl: Kubectl, name: str) -> None:
    """A node's kubelet falls silent: not ready, its pods neither start nor end, and are evicted in time."""
    _mark_pods(kubectl, name, "true")
    kubectl("label", "node", name, "--overwrite", f"{MANAGED_LABEL}={STOPPED_VALUE}")
    # What the node controller writes once the Lease has run out, on the node and then on its pods, without the wait.
    silence = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    _set_ready(kubectl, "node", name, status="Unknown", **silence)
    for pod in _pods(kubectl, name):
        where = f"--namespace={pod['metadata']['namespace']}"
        _set_ready(kubectl, "pod", pod["metadata"]["name"], where, status="False", reason="NodeNotReady")


def start(kubectl: Kubectl, name: str) -> None:
    """A stopped node comes back, and so do the pods that are still on it."""
    kubectl("label", "node", name, "--overwrite", f"{MANAGED_LABEL}={MANAGED_VALUE}")
    _wait_usable(kubectl, [name])
    _mark_pods(kubectl, name, None)


def _mark_pods(kubectl: Kubectl, name: str, value: str | None) -> None:
    change = f"{NODE_STOPPED}={value}" if value else f"{NODE_STOPPED}-"
    kubectl(
        *("annotate", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={name}"),
        *("--overwrite", change),
    )


def _pods(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    listed = kubectl.json("get", "pods", "--all-namespaces", f"--field-selector=spec.nodeName={name}")
    pods: list[dict[str, Any]] = listed["items"]
    return pods


def _set_ready(kubectl: Kubectl, kind: str, name: str, *options: str, **condition: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    change = {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": now, **condition}]}}
    kubectl("patch", kind, name, *options, "--subresource=status", "--type=strategic", "-p", json.dumps(change))


def _wait_usable(kubectl: Kubectl, names: Sequence[str]) -> None:
    def usable() -> bool:
        listed = kubectl.json("get", "nodes", *names)
        return all(_usable(item) for item in listed.get("items", [listed]))

    wait_until(usable, what=f"ready nodes ({', '.join(names)})", timeout_s=READY_TIMEOUT_S)


def _usable(item: Mapping[str, Any]) -> bool:
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in item.get("status", {}).get("conditions", ())
    )
    tainted = any(taint["key"].startswith("node.kubernetes.io/") for taint in item["spec"].get("taints", ()))
    return ready and not tainted
