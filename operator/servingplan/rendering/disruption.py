"""The PodDisruptionBudget: how many replicas a node drain may take at once.

In: a plan with an `Engine`. Out: the PodDisruptionBudget as JSON.
"""

from __future__ import annotations

from servingplan.planning.plan import Plan
from servingplan.rendering.deployment import owned_engine
from servingplan.rendering.metadata import (
    DEFAULT_INSTALLATION,
    Manifest,
    Owner,
    object_metadata,
    sealed,
    selector,
)


def disruption_budget(plan: Plan, owner: Owner | None, installation: str = DEFAULT_INSTALLATION) -> Manifest:
    """The plan's PodDisruptionBudget. Raises ValueError where the plan has no engine."""
    owned_engine(plan)
    return sealed(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": object_metadata(plan, owner, installation),
            "spec": {
                # At least one: a budget of none would keep nodes from ever being drained.
                "maxUnavailable": max(1, plan.reserve.smallest),
                "selector": {"matchLabels": selector(plan.name)},
                # A replica that is not ready serves nobody; it must not hold up a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }
    )
