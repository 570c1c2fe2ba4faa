"""Plans as the cluster shows them, in words."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.cli.live import live_plan
from support.specs import document, scheduled


def shown(*conditions: tuple[str, str, str], **status: Any):
    wire = [{"type": t, "status": s, "reason": r, "message": f"{t} is {s}"} for t, s, r in conditions]
    return live_plan({**document(), "status": {**status, "conditions": wire}})


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        (("Ready", "True", "AsPlanned"), "Ready"),
        (("Ready", "True", "Suspended"), "Ready: Suspended"),
        (("Ready", "False", "BelowRequired"), "not ready: BelowRequired"),
        (("Ready", "Unknown", "GenerationNotApplied"), "unknown: GenerationNotApplied"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_plans_state_is_its_ready_condition_in_words(condition, state):
    assert shown(condition).state == state


def test_conditions_that_are_good_when_false_are_not_listed_then():
    plan = shown(
        ("ScalingLimited", "False", "WithinBounds"),
        ("Stalled", "True", "Invalid"),
        ("ReserveIntact", "Unknown", "ReserveMissing"),
        ("PlanValid", "True", "Resolved"),
    )
    assert [condition.type for condition in plan.not_good] == ["Stalled", "ReserveIntact"]


def test_a_plan_without_status_is_shown_too():
    plan = live_plan(document())
    assert (plan.state, plan.desired, plan.upcoming) == ("not seen by an operator", None, None)


def test_an_unknown_zone_is_shown_in_utc():
    assert live_plan(document(**scheduled(timeZone="Europe/Atlantis"))).zone.key == "UTC"
