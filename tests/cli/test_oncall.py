"""On-call overrides without a cluster: what is written, what it does, and who owns which field."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from servingplan.cli.cluster import MANAGER
from servingplan.cli.oncall import effect, interval, is_over, override_entry
from servingplan.cli.ownership import (
    others_owning_overrides,
    others_owning_suspend,
    own_overrides,
    owned_spec,
    owner_of_override,
    with_overrides,
)
from servingplan.errors import Refused, UsageError
from servingplan.planning.plan import Override, Rate, Total
from support.plans import a_plan
from support.specs import document

BERLIN = ZoneInfo("Europe/Berlin")
QUIET = datetime(2026, 12, 1, 3, 7, 30, tzinfo=UTC)  # 04:07:30 in Berlin


def entry(start=QUIET, end=QUIET + timedelta(hours=2), taken=(), **level):
    return override_entry(start=start, end=end, zone=BERLIN, taken=taken, **({"replicas": 7, "rate": None} | level))


def test_an_override_covers_what_was_asked_to_the_minute():
    found = entry()
    assert found == {
        "name": "oncall-20261201-0407",
        "start": "2026-12-01T04:07",
        "end": "2026-12-01T06:08",
        "replicas": 7,
    }
    start, end = interval(found, BERLIN)
    assert start <= QUIET
    assert end >= QUIET + timedelta(hours=2)


def test_a_name_that_is_taken_gets_a_number():
    assert entry(taken=["oncall-20261201-0407"])["name"] == "oncall-20261201-0407-2"


def test_an_override_that_would_end_before_it_starts_is_refused():
    with pytest.raises(UsageError, match="would end"):
        entry(end=QUIET - timedelta(hours=1))


def test_two_hours_over_the_change_of_clocks_are_at_least_two_hours():
    start = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30, the first one
    begins, ends = interval(entry(start=start, end=start + timedelta(hours=2)), BERLIN)
    assert ends - begins >= timedelta(hours=2)


def test_an_override_is_over_at_its_end():
    end = interval(entry(), BERLIN)[1]
    assert not is_over(entry(), BERLIN, end - timedelta(seconds=1))
    assert is_over(entry(), BERLIN, end)


def plan_with(level: Any, *, start=(2026, 12, 1, 4, 7), end=(2026, 12, 1, 6, 8), others=()):
    ours = Override(name="oncall", start=datetime(*start), end=datetime(*end), level=level)  # noqa: DTZ001  wall times
    return a_plan(overrides=(ours, *others))


def test_a_rise_now_is_ready_a_lead_later_and_that_is_said():
    found = effect(plan_with(Total(replicas=7)), "oncall", current=2, now=QUIET)
    assert (found.asked_at, found.ready_at) == (QUIET, QUIET + timedelta(minutes=12))
    assert "12m later than asked" in found.warnings[0]
    assert "04:19" in found.warnings[0]


def test_a_rise_in_an_hour_is_asked_for_in_time_and_needs_no_warning():
    later = plan_with(Total(replicas=7), start=(2026, 12, 1, 5, 7))
    found = effect(later, "oncall", current=2, now=QUIET)
    assert found.ready_at == found.start == found.asked_at + timedelta(minutes=12)
    assert found.warnings == ()


def test_a_rise_within_the_lead_says_by_how_much_it_is_late():
    soon = plan_with(Total(replicas=7), start=(2026, 12, 1, 4, 15))
    found = effect(soon, "oncall", current=2, now=QUIET)
    assert "5m later than asked" in found.warnings[0]


def test_a_level_that_runs_already_needs_no_lead():
    found = effect(plan_with(Total(replicas=3)), "oncall", current=5, now=QUIET)
    assert found.asked_at == found.ready_at
    assert found.warnings == ()


def test_a_bound_that_limits_is_said():
    found = effect(plan_with(Rate(requests_per_second=Decimal(100))), "oncall", current=8, now=QUIET)
    assert found.replicas == 8
    assert "maxReplicas limits it to 8 of 21" in found.warnings[0]


def test_an_override_that_starts_later_wins_and_is_named():
    launch = Override(
        name="launch",
        start=datetime(2026, 12, 1, 4, 7),  # noqa: DTZ001  wall time
        end=datetime(2026, 12, 1, 9),  # noqa: DTZ001  wall time
        level=Total(replicas=6),
    )
    found = effect(
        plan_with(Total(replicas=3), start=(2026, 12, 1, 4, 6), others=(launch,)), "oncall", current=2, now=QUIET
    )
    assert "override launch counts instead" in found.warnings[0]


def test_a_suspended_plan_is_said():
    suspended = replace(plan_with(Total(replicas=2)), suspend=True)
    assert "suspended" in effect(suspended, "oncall", current=2, now=QUIET).warnings[0]


# ---- who owns what ----------------------------------------------------------------------------------------


def live(*entries: dict[str, Any], **spec: Any) -> dict[str, Any]:
    plan = document(**spec)
    plan["metadata"]["managedFields"] = list(entries)
    return plan


def managed(manager: str, spec: dict[str, Any], operation: str = "Apply", **rest: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": spec}, **rest}


def overrides_key(*names: str) -> dict[str, Any]:
    return {"f:schedule": {"f:overrides": {f'k:{{"name":"{name}"}}': {".": {}} for name in names}}}


OVERRIDES = [
    {"name": name, "start": "2026-12-01T07:00", "end": "2026-12-01T09:00", "replicas": 3}
    for name in ("launch", "oncall-1")
]
SCHEDULE = {"schedule": {**document()["spec"]["schedule"], "overrides": OVERRIDES}}


def test_a_plan_that_we_never_touched_holds_nothing_of_ours():
    assert owned_spec(live(managed("gitops", {"f:suspend": {}} | overrides_key("launch")), **SCHEDULE)) == {}


def test_what_we_own_is_repeated_with_its_live_values():
    ours = managed(MANAGER, {"f:suspend": {}} | overrides_key("oncall-1"))
    plan = live(managed("gitops", overrides_key("launch")), ours, suspend=True, **SCHEDULE)
    spec = owned_spec(plan)
    assert spec == {"suspend": True, "schedule": {"overrides": [OVERRIDES[1]]}}
    assert own_overrides(spec) == [OVERRIDES[1]]
    assert with_overrides(spec, []) == {"suspend": True}
    assert owner_of_override(plan, "launch") == "gitops"


def test_an_override_that_is_gone_is_not_repeated():
    assert owned_spec(live(managed(MANAGER, overrides_key("oncall-0")), **SCHEDULE)) == {}


def test_our_name_owning_more_than_it_writes_is_refused_before_anything_is_lost():
    with pytest.raises(Refused, match=r"spec\.capacity, spec\.schedule\.base"):
        owned_spec(live(managed(MANAGER, {"f:capacity": {}, "f:schedule": {"f:base": {}}})))


def test_other_managers_of_suspend_are_named_and_status_writers_are_not():
    plan = live(
        managed("kubectl-client-side-apply", {"f:suspend": {}}, operation="Update"),
        managed("servingplan", {"f:suspend": {}}, subresource="status"),
        managed(MANAGER, {"f:suspend": {}}),
    )
    assert others_owning_suspend(plan) == ("kubectl-client-side-apply",)


@pytest.mark.parametrize(("operation", "names"), [("Update", ("kubectl",)), ("Apply", ())])
def test_only_who_replaces_the_whole_list_of_overrides_is_a_danger(operation, names):
    plan = live(managed("kubectl", overrides_key("launch"), operation=operation), **SCHEDULE)
    assert others_owning_overrides(plan) == names
