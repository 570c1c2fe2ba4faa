"""The capacity that a plan acts with: measured, current, or held at what was used before.

In: a plan as it resolved, what was seen, what its status remembers. Out: the plan to decide with, and the condition
about its capacity. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from servingplan.controller.observe import Seen
from servingplan.planning.plan import Plan
from servingplan.planning.signals import Heard
from servingplan.planning.sizing import in_use
from servingplan.rendering.capacity import capacity_from_wire
from servingplan.rendering.currency import TYPE, Case, capacity_current
from servingplan.rendering.running import is_edited, is_settled
from servingplan.rendering.situation import Condition, Status
from servingplan.rendering.stated import condition_of


def with_capacity(
    plan: Plan, seen: Seen, heard: Heard | None, status: Mapping[str, Any]
) -> tuple[Plan, Condition | None]:
    """The plan with the capacity in use, and the condition; None where nothing of the capacity can be compared."""
    previous = condition_of(status, TYPE)
    condition = capacity_current(Case(plan=plan, running=seen.running, heard=heard, previous=previous))
    if plan.measured is None or condition is None:
        return plan, condition
    before = capacity_from_wire(status)
    current = condition.status is not Status.FALSE and not _rolls(plan, seen)
    used = in_use(plan.capacity, before, current=current)
    return replace(plan, capacity=used), condition


def _rolls(plan: Plan, seen: Seen) -> bool:
    """Whether pods of an older template still serve: a result is of the engine that the plan states now."""
    live = seen.view.live
    if plan.engine is None or live is None:
        return False
    return is_edited(live, plan.engine) or not is_settled(live) or seen.view.rollout.rolling
