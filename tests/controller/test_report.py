"""Report: what is written when, what is told once, and what the metrics show."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from planning.loop import berlin
from servingplan.clients.references import ObjectRef
from servingplan.controller.logging import FIELDS
from servingplan.errors import Conflict, Refused
from support.small_operator import PLAN, TARGET, SmallOperator
from support.specs import scheduled


async def a_plan_at(at: str = "2026-12-01T12:00", running: int = 5, ready: int | None = None) -> SmallOperator:
    """A plan that was looked at once."""
    operator = SmallOperator(at)
    operator.run_target(running, ready)
    operator.apply_plan()
    await operator.look()
    operator.wrote()
    return operator


def gauge(operator: SmallOperator, name: str) -> float | None:
    found = re.search(rf"^servingplan_{name}{{[^}}]*}} (\S+)$", operator.metrics.render().decode(), re.MULTILINE)
    return float(found[1]) if found else None


# ---- writes ----


async def test_counts_are_written_at_most_every_thirty_seconds() -> None:
    operator = await a_plan_at("2026-12-01T07:47", running=2)
    await operator.look("2026-12-01T07:48:00")
    operator.wrote()
    operator.server.make_ready(TARGET, 3)
    assert await operator.look("2026-12-01T07:48:10") == 20.0
    assert operator.wrote() == []
    operator.server.make_ready(TARGET, 4)
    assert await operator.look("2026-12-01T07:48:29") == 1.0
    await operator.look("2026-12-01T07:48:30")
    assert operator.wrote() == ["apply_status"]
    assert operator.status["readyReplicas"] == 4


async def test_a_change_of_meaning_is_written_at_once_with_the_counts() -> None:
    operator = await a_plan_at("2026-12-01T07:47", running=2)
    await operator.look("2026-12-01T07:48:00")
    operator.wrote()
    operator.server.make_ready(TARGET, 5)
    await operator.look("2026-12-01T07:48:01")
    assert operator.wrote() == ["apply_status"]
    assert (operator.said("ReadyByNextRamp"), operator.status["readyReplicas"]) == ("True RampReady", 5)


async def test_counts_do_not_wait_for_a_clock_that_went_back() -> None:
    operator = await a_plan_at("2026-12-01T12:00", running=6, ready=5)
    operator.server.make_ready(TARGET, 6)
    await operator.look("2026-12-01T11:00")
    assert operator.status["readyReplicas"] == 6


async def test_a_status_is_written_although_the_user_edits_meanwhile() -> None:
    operator = await a_plan_at("2026-12-01T19:59")
    apply, raced = operator.server.apply_status, False

    async def apply_status(manifest: Any) -> dict[str, Any]:
        nonlocal raced
        if not raced:
            raced = True
            operator.apply_plan(**scheduled(base={"requestsPerSecond": 3}))
        return await apply(manifest)

    operator.server.apply_status = apply_status  # type: ignore[method-assign]
    assert await operator.look("2026-12-01T20:00") == 30.0
    assert operator.status["lastScale"]["to"] == 4
    assert operator.status["observedGeneration"] == 1
    assert operator.server.objects[PLAN]["metadata"]["generation"] == 2


async def test_a_status_that_another_process_wrote_meanwhile_is_not_overwritten() -> None:
    operator = await a_plan_at("2026-12-01T19:59")
    theirs = {**operator.status, "desiredReplicas": 4}
    apply = operator.server.apply_status

    async def apply_status(manifest: Any) -> dict[str, Any]:
        operator.server.objects[PLAN]["status"] = theirs
        operator.server.objects[PLAN]["metadata"]["resourceVersion"] = "999"
        return await apply(manifest)

    operator.server.apply_status = apply_status  # type: ignore[method-assign]
    assert await operator.look("2026-12-01T20:00") == 0.2
    assert operator.status == theirs


async def test_a_status_that_is_refused_is_told_by_nobody_and_tried_again() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.run_target(5, ready=3)
    operator.apply_plan()
    operator.server.refuse("apply_status", Refused("apply of the status was refused (403)"))
    with pytest.raises(Refused):
        await operator.look()
    assert operator.events.said == []
    await operator.look()
    assert [said.split(":")[0] for said in operator.events.said] == ["Warning BelowRequired"]


# ---- events ----


async def test_a_plan_that_is_well_from_the_start_is_no_event() -> None:
    operator = await a_plan_at()
    assert operator.events.said == []


async def test_a_morning_in_time_is_one_event_for_the_rise() -> None:
    operator = await a_plan_at("2026-12-01T07:00", running=2)
    await operator.look("2026-12-01T07:48")
    operator.server.make_ready(TARGET)
    await operator.look("2026-12-01T07:57")
    await operator.look("2026-12-01T08:00")
    assert operator.events.said == ["Normal ScaledUp: replicas 2 to 5: ready before window working-day"]


async def test_a_missed_morning_is_told_when_it_is_at_risk_when_it_is_missed_and_when_it_is_over() -> None:
    operator = await a_plan_at("2026-12-01T07:00", running=2)
    for at in ("07:48", "07:58", "08:00", "08:02"):
        await operator.look(f"2026-12-01T{at}")
    operator.server.make_ready(TARGET)
    await operator.look("2026-12-01T08:03")
    assert [said.split(":")[0] for said in operator.events.said] == [
        "Normal ScaledUp",
        "Warning RampAtRisk",
        "Warning BelowRequired",
        "Warning RampMissed",
        "Normal AsPlanned",
        "Normal NoRampDue",
    ]


async def test_an_invalid_plan_is_one_event_whatever_conditions_say_it() -> None:
    operator = await a_plan_at()
    operator.apply_plan(**scheduled(timeZone="Europe/Berln"))
    await operator.look()
    assert [said.split(":")[0] for said in operator.events.said] == ["Warning Invalid"]
    assert operator.said("Stalled") == "True Invalid"


async def test_the_same_trouble_is_told_once() -> None:
    operator = await a_plan_at(ready=3)
    for minute in range(1, 5):
        await operator.look(f"2026-12-01T12:0{minute}")
    assert len(operator.events.said) == 1


async def test_a_demo_clock_shows_in_events_and_status() -> None:
    operator = SmallOperator("2026-12-01T20:00", demo_clock="2026-12-01T06:30:00+01:00@60x")
    operator.run_target(5)
    operator.apply_plan()
    await operator.look()
    assert operator.events.said == ["Normal ScaledDown: replicas 5 to 4: window working-day ends (demo clock)"]
    assert operator.status["demoClock"] == "2026-12-01T06:30:00+01:00@60x"


async def test_an_event_is_cut_to_what_the_api_server_takes() -> None:
    operator = await a_plan_at("2026-12-01T19:59")
    operator.server.refuse("apply_scale", Refused("é" * 2000))
    await operator.look("2026-12-01T20:00")
    assert [len(said.partition(": ")[2].encode()) <= 1024 for said in operator.events.said] == [True]


# ---- the log ----


def trails(caplog: pytest.LogCaptureFixture) -> list[tuple[str, list[str]]]:
    """Lines of the log that carry a trail, with its steps."""
    found = [(r.getMessage(), getattr(r, FIELDS, {}).get("trail")) for r in caplog.records]
    return [(message, [step["name"] for step in trail]) for message, trail in found if trail]


async def test_each_decision_is_one_line_with_its_whole_trail(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    operator = await a_plan_at("2026-12-01T07:00", running=2)
    for at in ("07:30", "07:48", "07:49", "08:00"):
        await operator.look(f"2026-12-01T{at}")
    steps = ["demand", "need", "reserve", "required", "peak", "asked", "extra", "desired"]
    assert trails(caplog) == [
        ("llm/support-chat: 2 desired: base", steps),
        ("llm/support-chat: replicas 2 to 5: ready before window working-day", steps),
        ("llm/support-chat: 5 desired: window working-day", steps),
    ]


# ---- metrics ----


async def test_the_numbers_of_a_plan_are_metrics() -> None:
    operator = await a_plan_at("2026-12-01T07:48", running=2)
    names = ("desired_replicas", "required_replicas", "current_replicas", "ready_replicas", "reserve_replicas")
    assert [gauge(operator, name) for name in names] == [5, 2, 5, 2, 1]
    assert gauge(operator, "next_change_timestamp_seconds") == berlin("2026-12-01T20:00").timestamp()


async def test_the_margin_of_a_ramp_is_kept_from_the_moment_that_all_are_verified() -> None:
    operator = await a_plan_at("2026-12-01T07:48", running=2)
    assert gauge(operator, "ramp_margin_seconds") is None
    operator.server.make_ready(TARGET)
    await operator.look("2026-12-01T07:56")
    for at in ("07:57", "08:00", "12:00", "20:00"):
        await operator.look(f"2026-12-01T{at}")
        assert gauge(operator, "ramp_margin_seconds") == 240


async def test_the_margin_of_a_missed_ramp_is_negative() -> None:
    operator = await a_plan_at("2026-12-01T07:48", running=2)
    await operator.look("2026-12-01T08:00")
    await operator.look("2026-12-01T08:02")
    assert gauge(operator, "ramp_margin_seconds") == -120
    operator.server.make_ready(TARGET)
    await operator.look("2026-12-01T08:03")
    await operator.look("2026-12-01T09:00")
    assert gauge(operator, "ramp_margin_seconds") == -180


async def test_a_conflict_over_an_event_of_the_plan_changes_no_status() -> None:
    operator = await a_plan_at()

    async def create(manifest: Any) -> dict[str, Any]:
        raise Conflict("exists")

    async def merge_patch(ref: ObjectRef, body: Any) -> dict[str, Any]:
        raise Conflict("exists")

    operator.events.create, operator.events.merge_patch = create, merge_patch  # type: ignore[method-assign]
    operator.server.make_ready(TARGET, 3)
    await operator.look("2026-12-01T12:01")
    assert operator.said("Ready") == "False BelowRequired"
