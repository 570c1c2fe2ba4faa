"""Plans as resolved last: parsed once per change, with the figures that follow."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from planning.loop import berlin
from servingplan.api.references import References
from servingplan.controller.resolved import ResolvedPlans, coming_midnight, highest_requirement
from servingplan.controller.store import Key
from servingplan.planning.plan import Override, Total
from support.plans import a_plan
from support.specs import config_maps, document, scheduled

KEY = Key("llm", "support-chat")
CALENDAR = scheduled(calendars=[{"name": "holidays", "configMap": {"name": "holidays"}, "treatAs": "Base"}])


def stored(generation: int = 1, uid: str = "u-1", **changes: Any) -> dict[str, Any]:
    plan = document(**changes)
    plan["metadata"] |= {"generation": generation, "uid": uid}
    return plan


def test_a_plan_is_resolved_once_while_nothing_changes() -> None:
    plans = ResolvedPlans()
    assert plans.get(KEY, stored(), {}) is plans.get(KEY, stored(), {})


def test_the_order_of_a_config_maps_keys_is_no_change() -> None:
    plans = ResolvedPlans()
    one, other = (
        {"dates": "2026-12-25", "validUntil": "2026-12-31"},
        {"validUntil": "2026-12-31", "dates": "2026-12-25"},
    )
    first = plans.get(KEY, stored(**CALENDAR), config_maps({"holidays": one}))
    assert plans.get(KEY, stored(**CALENDAR), config_maps({"holidays": other})) is first


@pytest.mark.parametrize(
    ("later", "references"),
    [
        (stored(generation=2, **CALENDAR), config_maps({"holidays": {"dates": "2026-12-25"}})),
        (stored(uid="u-2", **CALENDAR), config_maps({"holidays": {"dates": "2026-12-25"}})),
        (stored(**CALENDAR), config_maps({"holidays": {"dates": "2026-12-26"}})),
        (stored(**CALENDAR), config_maps({"holidays": None})),
    ],
    ids=["an edit", "another plan of that name", "an edited calendar", "a calendar that is gone"],
)
def test_a_plan_is_resolved_again_after(later: dict[str, Any], references: References) -> None:
    plans = ResolvedPlans()
    first = plans.get(KEY, stored(**CALENDAR), config_maps({"holidays": {"dates": "2026-12-25"}}))
    assert plans.get(KEY, later, references) is not first


def test_a_plan_that_does_not_resolve_has_all_its_problems() -> None:
    found = ResolvedPlans().get(KEY, stored(**scheduled(timeZone="Europe/Berln")), {})
    assert found.plan is None
    assert found.month is None
    assert [problem.path for problem in found.problems] == ["spec.schedule.timeZone"]


def test_the_worked_examples_month_comes_with_it() -> None:
    month = ResolvedPlans().get(KEY, stored(), {}).month
    assert month is not None
    assert (round(month.required), round(month.flat_peak)) == (2252, 3650)


def test_a_forgotten_plan_is_resolved_again() -> None:
    plans = ResolvedPlans()
    first = plans.get(KEY, stored(), {})
    plans.forget(KEY)
    assert plans.get(KEY, stored(), {}) is not first


def test_the_coming_week_is_seen_to_its_last_midnight_and_no_further() -> None:
    launch = Override(
        name="launch",
        start=datetime.fromisoformat("2026-12-09T00:00"),
        end=datetime.fromisoformat("2026-12-10T00:00"),
        level=Total(replicas=8),
    )
    plan = a_plan(overrides=(launch,))
    for at in ("2026-12-01T00:00", "2026-12-01T23:59"):
        assert coming_midnight(plan, berlin(at)) == berlin("2026-12-02T00:00")
        assert highest_requirement(plan, berlin(at)) == 5
    assert highest_requirement(plan, berlin("2026-12-02T00:00")) == 8
