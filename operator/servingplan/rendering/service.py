"""The Service in front of an owned engine.

In: a plan with an `Engine`. Out: the Service as JSON. It selects only pods that serve: a pod that drains has
lost that label and keeps its ReplicaSet.
"""

from __future__ import annotations

from collections.abc import Mapping

from servingplan.planning.plan import Plan
from servingplan.planning.target import Engine
from servingplan.rendering.deployment import owned_engine
from servingplan.rendering.metadata import (
    DEFAULT_INSTALLATION,
    Manifest,
    Owner,
    object_metadata,
    sealed,
    serving_selector,
)
from servingplan.rendering.probes import PORT_NAME


def service(plan: Plan, owner: Owner | None, installation: str = DEFAULT_INSTALLATION) -> Manifest:
    """The plan's Service. Raises ValueError where the plan has no engine."""
    metadata = object_metadata(plan, owner, installation)
    return sealed(service_of(owned_engine(plan), metadata, serving_selector(plan.name)))


def service_of(engine: Engine, metadata: Manifest, selects: Mapping[str, str]) -> Manifest:
    """A Service for the engine's pods that carry those labels."""
    # The target is the port's name: while an edit of the port rolls out, each pod is met at its own.
    port = {
        "name": PORT_NAME,
        "port": engine.port,
        "protocol": "TCP",
        "targetPort": PORT_NAME,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [port], "selector": dict(selects), "type": "ClusterIP"},
    }
