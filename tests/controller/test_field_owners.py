"""Who owns the replicas, read from ``managedFields`` as a real API server recorded them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from servingplan.controller.field_owners import Entry, entries, field_owners, has_main_entry, only_main_entry
from servingplan.planning.ownership import FieldOwner
from support.live import StillClock, autoscaler, owns_replicas, workload
from support.served import served_deployment

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
STAMP = "2026-12-01T12:00:00Z"

MAIN = owns_replicas("servingplan", time=STAMP)
SCALE = owns_replicas("servingplan", subresource="scale")
KUBECTL_SCALE = owns_replicas("kubectl", subresource="scale", operation="Update")
GITOPS = owns_replicas("gitops", time=STAMP)
TEMPLATE_ONLY = owns_replicas("helm", time=STAMP, path=("f:spec", "f:template"))
STATUS = owns_replicas("kube-controller-manager", subresource="status", time=STAMP, path=("f:status", "f:replicas"))


def found(*owners: dict[str, object]) -> tuple[Entry, ...]:
    return entries(workload(owners=owners))


def test_only_entries_that_own_the_field_count() -> None:
    assert found(TEMPLATE_ONLY, STATUS, GITOPS) == (Entry(manager="gitops", subresource="", time=NOON),)


def test_an_object_without_managed_fields_has_no_owners() -> None:
    live = workload()
    del live["metadata"]["managedFields"]
    assert entries(live) == ()


def test_a_recorded_deployment_is_owned_by_whoever_created_it() -> None:
    """Applied by the operator with its replicas; the controller's entry is about status alone."""
    _, live = served_deployment("worked-example")
    owned = {entry.manager for entry in entries(live)}
    assert owned <= {"servingplan"}
    assert entries(live, ("f:spec", "f:template"))[0].manager == "servingplan"


def test_the_minimum_of_an_autoscaler_has_owners_of_its_own() -> None:
    path = ("f:spec", "f:minReplicas")
    live = autoscaler()
    live["metadata"]["managedFields"] = [owns_replicas("kubectl", time=STAMP, path=path, operation="Update"), GITOPS]
    assert [entry.manager for entry in entries(live, path)] == ["kubectl"]


OWNERS = {
    "a scale has no time": ((KUBECTL_SCALE,), "scale", [("kubectl", None, False)]),
    "an apply has one": ((GITOPS,), "scale", [("gitops", NOON, False)]),
    "ours through /scale": ((SCALE, GITOPS), "scale", [("servingplan", None, True), ("gitops", NOON, False)]),
    "ours from the creation counts not": ((MAIN, SCALE), "scale", [("servingplan", None, True)]),
    "ours from the creation alone": ((MAIN,), "scale", []),
    "in floor mode ours is on the object itself": ((MAIN,), "", [("servingplan", NOON, True)]),
    "another's on the object itself": ((GITOPS,), "", [("gitops", NOON, False)]),
}  # fmt: skip


@pytest.mark.parametrize(("owners", "subresource", "expected"), OWNERS.values(), ids=OWNERS)
def test_owners_are_ours_where_we_write_the_field(owners, subresource, expected) -> None:
    given = field_owners(found(*owners), manager="servingplan", clock=StillClock(), subresource=subresource)
    assert given == tuple(FieldOwner(manager=m, time=t, ours=o) for m, t, o in expected)


def test_another_installation_is_somebody_else() -> None:
    (owner,) = field_owners(found(SCALE), manager="servingplan-blue", clock=StillClock(), subresource="scale")
    assert (owner.manager, owner.ours) == ("servingplan", False)


MAIN_ENTRIES = {
    "just created": ((MAIN,), True, True),
    "created, and scaled": ((MAIN, SCALE), False, True),
    "scaled alone": ((SCALE,), False, False),
    "created, and taken by another too": ((MAIN, GITOPS), False, True),
    "another's alone": ((GITOPS,), False, False),
    "nobody's": ((), False, False),
}


@pytest.mark.parametrize(("owners", "only", "has"), MAIN_ENTRIES.values(), ids=MAIN_ENTRIES)
def test_the_entry_of_the_creation_is_known(owners, only: bool, has: bool) -> None:
    assert only_main_entry(found(*owners), "servingplan") is only
    assert has_main_entry(found(*owners), "servingplan") is has
