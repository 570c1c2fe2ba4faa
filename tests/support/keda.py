"""ScaledObjects for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from servingplan.migrating.scaled_object import ScaledObject, scaled_object

YEAR = (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 12, 1, tzinfo=UTC))


def a_cron(start: str, end: str, replicas: int | str = 5, zone: str = "Europe/Berlin") -> dict[str, Any]:
    """A trigger of type cron."""
    metadata = {"timezone": zone, "start": start, "end": end, "desiredReplicas": str(replicas)}
    return {"type": "cron", "metadata": metadata}


WORKING_DAY = a_cron("0 8 * * 1-5", "0 20 * * 1-5")


def a_manifest(*triggers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A ScaledObject as a manifest: two replicas outside of windows, at most eight."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "vllm", "namespace": "llm"},
        "spec": {
            "scaleTargetRef": {"name": "vllm"},
            "minReplicaCount": 2,
            "maxReplicaCount": 8,
            "triggers": list(triggers or [WORKING_DAY]),
            **spec,
        },
    }


def a_scaled_object(*triggers: dict[str, Any], **spec: Any) -> ScaledObject:
    """The same as values; what KEDA refuses in it is left out."""
    return scaled_object(a_manifest(*triggers, **spec), "llm", "vllm")[0]
