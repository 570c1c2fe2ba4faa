"""Workloads that tests apply, as dicts, and what tests read from pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from servingplan.localcluster.nodes import GPU


def gpu_deployment(
    name: str, *, replicas: int, gpus: int = 1, pod_labels: Mapping[str, str] | None = None, grace_s: int = 30
) -> dict[str, Any]:
    """A Deployment whose pods have the label ``app: NAME`` and need ``gpus`` GPUs each."""
    labels = {"app": name}
    container = {
        "name": "engine",
        "image": "registry.local/engine:1",
        "resources": {"limits": {GPU: str(gpus)}} if gpus else {},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | dict(pod_labels or {})},
                "spec": {"terminationGracePeriodSeconds": grace_s, "containers": [container]},
            },
        },
    }


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's condition Ready is True."""
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"


def condition(thing: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """A condition of any object by its type; None when there is none yet."""
    return next((each for each in thing.get("status", {}).get("conditions", ()) if each["type"] == kind), None)


def waiting_reason(pod: Mapping[str, Any]) -> str | None:
    """Why the first container waits, as in ``ImagePullBackOff``; None when it does not wait."""
    for status in pod.get("status", {}).get("containerStatuses", ()):
        reason: str | None = status.get("state", {}).get("waiting", {}).get("reason")
        return reason
    return None


def instant(text: str) -> datetime:
    """A timestamp of the API, aware."""
    return datetime.fromisoformat(text)
