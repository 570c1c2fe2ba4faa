"""All objects of a plan.

In: a plan and its owner. Out: what to apply, in order. Whether the cluster has it already says ``comparison``,
and whether the running pod template stays, ``running``.
"""

from __future__ import annotations

from servingplan.planning.plan import Plan
from servingplan.rendering.comparison import contained, template_hash
from servingplan.rendering.deployment import deployment
from servingplan.rendering.disruption import disruption_budget
from servingplan.rendering.metadata import Manifest, Owner
from servingplan.rendering.running import keep_running_template, remember_variant
from servingplan.rendering.service import service

__all__ = ["contained", "keep_running_template", "remember_variant", "render", "template_hash"]


def render(plan: Plan, owner: Owner | None, installation: str) -> tuple[Manifest, ...]:
    """The plan's objects in the order to apply them, without ``spec.replicas``; none for a named target.

    `owner`: None where there is no cluster, and so no UID to refer to.
    """
    if plan.engine is None:
        return ()
    return (
        service(plan, owner, installation),
        disruption_budget(plan, owner, installation),
        deployment(plan, owner, None, installation),
    )
