"""The ledger's writer: an entry a decision, none in steady state, and a write that fails hurts nobody."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planning.loop import berlin
from servingplan.clients.gate import NotLeading
from servingplan.clients.references import ObjectRef
from servingplan.errors import Conflict, Refused
from servingplan.planning.ledger import Entry, in_force
from servingplan.rendering.ledger import entries_of, with_entries
from support.small_operator import PLAN, TARGET, SmallOperator
from support.specs import scheduled

LEDGER = ObjectRef(api_version="v1", kind="ConfigMap", name="support-chat-decisions", namespace="llm")
FORBIDDEN = Refused("create of ConfigMap llm/support-chat-decisions was refused (403): check RBAC")


async def seen(at: str = "2026-12-01T07:00", running: int = 2, **changes: Any) -> SmallOperator:
    """A plan that was looked at once, by an operator that writes decisions down."""
    operator = SmallOperator(at, ledger_days=35)
    operator.run_target(running)
    operator.apply_plan(**changes)
    await operator.look()
    operator.wrote()
    return operator


def ledger(operator: SmallOperator) -> tuple[Entry, ...]:
    return entries_of(operator.server.objects[LEDGER]["binaryData"])


def replicas(operator: SmallOperator) -> list[tuple[int | None, int | None]]:
    return [(entry.before, entry.desired) for entry in ledger(operator)]


async def test_a_day_is_written_down_as_it_was_decided() -> None:
    operator = await seen()
    for at in ("07:48", "08:00", "12:00", "20:00", "20:02", "20:04", "23:00"):
        await operator.look(f"2026-12-01T{at}")
        operator.server.make_ready(TARGET)
        await operator.look()
    # The window begins without another number; its reserve and need are others.
    assert replicas(operator) == [(None, 2), (2, 5), (5, 5), (5, 4), (4, 3), (3, 2)]
    held = in_force(ledger(operator), berlin("2026-12-01T20:03"))
    assert held is not None
    assert (held.entry.current, held.entry.because) == (3, "window working-day ends")
    assert held.entry.trail[0]["message"] == "base asks for 2/s"


async def test_nothing_new_and_a_restart_write_nothing() -> None:
    operator = await seen()
    await operator.look("2026-12-01T07:30")
    operator.restart()
    await operator.look("2026-12-01T07:40")
    assert operator.wrote() == []


async def test_a_condition_that_turns_is_no_decision() -> None:
    operator = await seen("2026-12-01T12:00", running=5)
    operator.server.make_ready(TARGET, 3)
    await operator.look()
    assert operator.wrote() == ["apply_status"]


async def test_an_entry_is_written_before_the_status_and_once_where_a_process_ends_in_between() -> None:
    operator = await seen()
    operator.server.refuse("apply_status", Refused("the process ended here"))
    with pytest.raises(Refused):
        await operator.look("2026-12-01T07:48")
    assert operator.wrote() == ["apply_scale", "merge_patch"]
    operator.restart()
    await operator.look("2026-12-01T07:49")
    assert operator.wrote() == ["apply_status"]
    assert replicas(operator) == [(None, 2), (2, 5)]


async def test_a_plan_that_breaks_is_suspended_or_edited_is_written_down() -> None:
    operator = await seen("2026-12-01T12:00", running=5)
    operator.apply_plan(suspend=True)
    await operator.look("2026-12-01T12:10")
    operator.apply_plan(**scheduled(timeZone="Europe/Berln"))
    await operator.look("2026-12-01T12:20")
    operator.apply_plan(**scheduled(base={"requestsPerSecond": 3}))
    await operator.look("2026-12-01T12:30")
    told = [(entry.reason, entry.generation, entry.desired, entry.current) for entry in ledger(operator)]
    assert told == [("", 1, 5, 5), ("Suspended", 2, 5, 5), ("Invalid", 3, 5, None), ("", 4, 5, 5)]


async def test_what_somebody_else_scales_while_the_plan_is_suspended_is_written_down() -> None:
    operator = await seen("2026-12-01T12:00", running=5, suspend=True)
    operator.run_target(3)
    await operator.look("2026-12-01T12:10")
    assert [(entry.desired, entry.current) for entry in ledger(operator)] == [(5, 5), (5, 3)]


async def test_a_write_that_is_refused_hurts_nothing_is_said_once_and_goes_out_with_the_next() -> None:
    operator = SmallOperator("2026-12-01T07:00", ledger_days=35)
    operator.run_target(2)
    operator.apply_plan()
    operator.server.refuse("create", FORBIDDEN, FORBIDDEN)
    await operator.look()
    await operator.look("2026-12-01T07:48")
    assert operator.replicas() == 5
    assert operator.status["lastScale"]["to"] == 5
    assert [said for said in operator.events.said if "LedgerNotWritten" in said] == [
        f"Warning LedgerNotWritten: decisions are not written down, and wait for the next one: {FORBIDDEN}"
    ]
    failed = re.search(r'servingplan_ledger_errors_total{reason="Refused"} (\S+)', operator.metrics.render().decode())
    assert failed is not None
    assert float(failed[1]) == 2
    await operator.look("2026-12-01T20:00")
    assert replicas(operator) == [(None, 2), (2, 5), (5, 4)]


async def test_a_config_map_of_somebody_else_is_not_touched() -> None:
    operator = SmallOperator("2026-12-01T07:00", ledger_days=35)
    operator.run_target(2)
    operator.apply_plan()
    theirs = operator.server.put({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": LEDGER.name, "namespace": LEDGER.namespace},
        "data": {"theirs": "yes"},
    })  # fmt: skip
    await operator.look()
    assert operator.server.objects[LEDGER] == theirs
    assert any("is not this plan's" in said for said in operator.events.said)
    assert operator.status["desiredReplicas"] == 2


async def test_another_leaders_entries_stay_where_both_write() -> None:
    operator = await seen()
    patch, raced = operator.server.merge_patch, False
    theirs = Entry(time=berlin("2026-12-01T07:30"), generation=1, before=2, desired=3)

    async def merge_patch(ref: ObjectRef, body: Any, *, resource_version: str = "") -> dict[str, Any]:
        nonlocal raced
        if not raced:
            raced = True
            pages = operator.server.objects[LEDGER]["binaryData"]
            await patch(ref, {"binaryData": with_entries(pages, [theirs], days=35)})
        return await patch(ref, body, resource_version=resource_version)

    operator.server.merge_patch = merge_patch  # type: ignore[method-assign]
    await operator.look("2026-12-01T07:48")
    assert [entry.desired for entry in ledger(operator)] == [2, 3, 5]


async def test_a_process_that_leads_again_does_not_take_its_own_last_entry_for_the_newest() -> None:
    operator = await seen()
    pages = operator.server.objects[LEDGER]["binaryData"]
    theirs = Entry(time=berlin("2026-12-01T07:10"), generation=1, before=2, desired=3)
    await operator.server.merge_patch(LEDGER, {"binaryData": with_entries(pages, [theirs], days=35)})
    assert operator.ledger is not None
    operator.ledger.verify_anew()
    operator.server.make_ready(TARGET, 1)  # status changes, the decision does not
    await operator.look("2026-12-01T07:20")
    assert [entry.desired for entry in ledger(operator)] == [2, 3, 2]


async def test_conflicts_that_go_on_are_a_write_that_failed() -> None:
    operator = await seen()
    operator.server.refuse("merge_patch", *[Conflict("changed") for _ in range(3)])
    await operator.look("2026-12-01T07:48")
    assert operator.replicas() == 5
    await operator.look("2026-12-01T20:00")
    assert replicas(operator) == [(None, 2), (2, 5), (5, 4)]


async def test_a_ledger_that_somebody_deleted_begins_anew() -> None:
    operator = await seen()
    del operator.server.objects[LEDGER]
    await operator.look("2026-12-01T07:48")
    assert replicas(operator) == [(2, 5)]


async def test_what_a_process_could_not_write_because_it_did_not_lead_it_does_not_write_later() -> None:
    operator = await seen()
    operator.server.refuse("merge_patch", NotLeading("this process does not lead"))
    with pytest.raises(NotLeading):
        await operator.look("2026-12-01T07:48")
    await operator.look("2026-12-01T07:49")
    assert [entry.time for entry in ledger(operator)] == [berlin(f"2026-12-01T07:{at}") for at in ("00", "49")]


async def test_a_clock_that_goes_back_is_said() -> None:
    operator = await seen("2026-12-01T07:50", running=2)
    await operator.look("2026-12-01T07:10")
    first, second = ledger(operator)
    assert (first.time, first.behind) == (berlin("2026-12-01T07:10"), berlin("2026-12-01T07:50"))
    assert second.behind is None


async def test_a_plan_that_is_gone_is_forgotten_and_its_successor_has_a_ledger_of_its_own() -> None:
    operator = await seen()
    del operator.server.objects[PLAN]
    await operator.look()
    operator.apply_plan()
    operator.server.objects[PLAN]["metadata"]["uid"] = "another"
    await operator.look("2026-12-01T07:01")
    # The garbage collector has not come yet.
    assert any("is not this plan's" in said for said in operator.events.said)
    del operator.server.objects[LEDGER]
    await operator.look("2026-12-01T07:48")
    assert replicas(operator) == [(None, 2), (2, 5)]
