"""Reconcile: one plan against a small API server, in all the ways it can end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planning.loop import berlin
from servingplan.api.references import Kind
from servingplan.clients.references import ObjectRef
from servingplan.controller import observe
from servingplan.controller.reconcile import CONFLICT_RETRY_MAX_S, CONFLICT_RETRY_S, REFUSED_RETRY_S
from servingplan.controller.store import Key
from servingplan.errors import Conflict, Refused, Unreachable
from support.live import ready_pod
from support.small_operator import ENGINE, KEY, PLAN, TARGET, SmallOperator
from support.specs import ENGINE as ENGINE_SPEC
from support.specs import config_map, document, scheduled

REFUSAL = Refused("scale to 5 of Deployment llm/vllm was refused (403): exceeded quota: gpus")
HOLIDAYS = ObjectRef(api_version="v1", kind="ConfigMap", name="holidays", namespace="llm")
WITH_CALENDAR = scheduled(calendars=[{"name": "holidays", "configMap": {"name": "holidays"}, "treatAs": "Base"}])


async def seen(at: str = "2026-12-01T12:00", running: int = 5, **changes: object) -> SmallOperator:
    """A plan that was reconciled once, at noon, and its target."""
    operator = SmallOperator(at)
    operator.run_target(running)
    operator.apply_plan(**changes)
    await operator.look()
    operator.wrote()
    return operator


async def test_a_named_target_is_raised_a_lead_before_the_ramp() -> None:
    operator = await seen("2026-12-01T07:00", running=2)
    assert (operator.replicas(), operator.wakes_at) == (2, berlin("2026-12-01T07:48"))
    await operator.look("2026-12-01T07:48")
    assert operator.replicas() == 5
    assert operator.wrote() == ["apply_scale", "apply_status"]
    assert operator.status["lastScale"] == {
        "time": "2026-12-01T06:48:00Z", "from": 2, "to": 5, "because": "ready before window working-day",
    }  # fmt: skip


async def test_an_engine_is_created_with_its_replicas_before_they_are_left_to_scale() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(document())
    await operator.look()
    assert operator.replicas(ENGINE) == 5
    kinds = {ref.kind for ref in operator.server.objects}
    assert kinds == {"ServingPlan", "Deployment", "Service", "PodDisruptionBudget"}
    assert operator.said("Ready") == "False BelowRequired"
    operator.server.make_ready(ENGINE)
    await operator.look()
    assert operator.said("Ready") == "True AsPlanned"


async def test_an_edited_engine_is_reconciling_from_its_apply_until_its_pods_are_replaced() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(document())
    await operator.look()
    operator.server.make_ready(ENGINE)
    await operator.look()
    assert operator.said("Reconciling") == "absent"
    operator.server.put(document(engine={**ENGINE_SPEC, "maxNumSeqs": 64}))
    await operator.look()
    assert (operator.status["observedGeneration"], operator.said("Reconciling")) == (2, "True RollingUpdate")
    deployment = operator.server.objects[ENGINE]
    deployment["metadata"]["generation"], deployment["status"]["observedGeneration"] = 2, 1
    await operator.look()
    assert operator.said("Reconciling") == "True RollingUpdate"
    deployment["status"] |= {"observedGeneration": 2, "updatedReplicas": 1}
    await operator.look()
    assert operator.said("Reconciling") == "True RollingUpdate"
    deployment["status"] |= {"updatedReplicas": 5}
    await operator.look()
    assert operator.said("Reconciling") == "absent"


async def test_a_second_look_writes_nothing_and_neither_does_a_restart() -> None:
    operator = await seen()
    await operator.look("2026-12-01T12:30")
    operator.restart()
    await operator.look("2026-12-01T13:00")
    assert operator.wrote() == []


async def test_a_fall_goes_on_where_a_restart_left_it() -> None:
    operator = await seen("2026-12-01T20:00")
    assert operator.replicas() == 4
    operator.restart()
    await operator.look("2026-12-01T20:01")
    assert operator.replicas() == 4
    assert operator.wakes_at == berlin("2026-12-01T20:02")
    await operator.look("2026-12-01T20:02")
    assert operator.replicas() == 3


async def test_an_invalid_plan_keeps_its_replicas_and_says_what_is_wrong() -> None:
    operator = await seen()
    operator.apply_plan(**scheduled(timeZone="Europe/Berln"))
    assert await operator.look("2026-12-01T21:00") is None
    assert operator.replicas() == 5
    assert (operator.said("Ready"), operator.said("PlanValid")) == ("False Invalid", "False Invalid")
    assert "Europe/Berln" in operator.message("Ready")
    assert operator.status["observedGeneration"] == operator.server.objects[PLAN]["metadata"]["generation"] == 2
    assert operator.wrote() == ["apply_status"]


async def test_a_plan_that_is_mended_goes_on() -> None:
    operator = await seen()
    operator.apply_plan(**scheduled(timeZone="Europe/Berln"))
    await operator.look()
    operator.apply_plan()
    await operator.look("2026-12-01T20:00")
    assert (operator.said("Ready"), operator.replicas()) == ("True AsPlanned", 4)


async def test_a_missing_config_map_is_looked_for_every_minute() -> None:
    operator = await seen(**WITH_CALENDAR)
    assert operator.said("PlanValid") == "False Invalid"
    assert "holidays" in operator.message("PlanValid")
    assert await operator.look() == observe.UNWATCHED_EVERY_S


async def test_a_config_map_that_is_not_watched_is_read_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(observe.time, "monotonic", lambda: now_s)
    operator = SmallOperator("2026-12-01T12:00")
    operator.run_target(5)
    operator.server.put(config_map("holidays", {"dates": "2026-12-25"}))
    operator.apply_plan(**WITH_CALENDAR)
    assert await operator.look() == observe.UNWATCHED_EVERY_S
    operator.server.put(config_map("holidays", {"dates": "2026-12-01"}))
    now_s += 59
    await operator.look()
    assert operator.replicas() == 5
    now_s += 1
    await operator.look()
    assert operator.replicas() == 4


async def test_a_watched_config_map_needs_no_reading() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.run_target(5)
    operator.store.put_content(Kind.CONFIG_MAP, config_map("holidays", {"dates": "2026-12-25"}))
    operator.apply_plan(**WITH_CALENDAR)
    assert await operator.look() is None
    assert not [read for read in operator.server.reads if "ConfigMap" in read]


async def test_a_config_map_that_may_not_be_read_is_a_problem_of_the_plan() -> None:
    operator = await seen()
    operator.apply_plan(**WITH_CALENDAR)
    reads = operator.server.get

    async def get(ref: ObjectRef) -> dict[str, object]:
        if ref.kind == "ConfigMap":
            raise Refused("read of ConfigMap llm/holidays was refused (403): check RBAC")
        return await reads(ref)

    operator.server.get = get  # type: ignore[method-assign]
    assert await operator.look() == REFUSED_RETRY_S
    assert "read of ConfigMap llm/holidays was refused" in operator.message("PlanValid")
    assert operator.replicas() == 5


async def test_a_missing_target_is_said_and_looked_for_again() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.apply_plan()
    assert await operator.look() == REFUSED_RETRY_S
    assert operator.said("TargetResolved") == operator.said("Ready") == "False TargetNotFound"
    assert operator.said("Stalled") == "True TargetNotFound"
    operator.run_target(5)
    await operator.look()
    assert (operator.said("TargetResolved"), operator.said("Stalled")) == ("True TargetFound", "absent")


async def test_a_target_that_may_not_be_read_is_said() -> None:
    operator = await seen()
    operator.server.objects[PLAN]["metadata"]["generation"] = 2
    read = operator.server.get

    async def get(ref: ObjectRef) -> dict[str, object]:
        if ref == TARGET:
            raise Refused("read of Deployment llm/vllm was refused (403): check RBAC")
        return await read(ref)

    operator.server.get = get  # type: ignore[method-assign]
    assert await operator.look() == REFUSED_RETRY_S
    assert operator.said("TargetResolved") == operator.said("Ready") == "False ReadRefused"


async def test_a_suspended_plan_writes_its_status_alone() -> None:
    operator = await seen("2026-12-01T07:00", running=2, suspend=True)
    await operator.look("2026-12-01T07:50")
    assert operator.wrote() == ["apply_status"]
    assert operator.said("Ready") == "True Suspended"
    assert operator.status["desiredReplicas"] == 5
    assert operator.status["decision"][-1]["message"] == "suspended: 5 would be set, nothing is written"


async def test_a_refused_write_is_said_and_tried_again_slowly() -> None:
    operator = await seen("2026-12-01T07:00", running=2)
    operator.server.refuse("apply_scale", REFUSAL)
    assert await operator.look("2026-12-01T07:48") == 30.0
    assert operator.said("Ready") == operator.said("Stalled").replace("True", "False") == "False ApplyRefused"
    assert "exceeded quota" in operator.message("Ready")
    await operator.look("2026-12-01T07:49")
    assert (operator.said("Ready"), operator.replicas()) == ("True AsPlanned", 5)


async def test_conflicts_are_looked_at_again_at_once_and_then_more_slowly() -> None:
    operator = await seen("2026-12-01T07:00", running=2)
    operator.server.refuse("apply_scale", *(Conflict("it changed in between") for _ in range(8)))
    delays = [await operator.look("2026-12-01T07:48") for _ in range(8)]
    assert delays[:3] == [CONFLICT_RETRY_S, CONFLICT_RETRY_S * 2, CONFLICT_RETRY_S * 4]
    assert delays[-1] == CONFLICT_RETRY_MAX_S
    await operator.look()
    assert operator.replicas() == 5
    operator.server.refuse("apply_status", Conflict("again"), Conflict("again"))
    assert await operator.look("2026-12-01T08:00") == CONFLICT_RETRY_S


@pytest.mark.parametrize("conflicts", [0, 1, 3])
async def test_the_creation_of_an_engine_is_told_once_whatever_conflicts_come_before_its_scale(conflicts: int) -> None:
    """The Deployment's own controller writes its status right after the creation."""
    operator = SmallOperator("2026-12-01T12:00")
    operator.server.put(document())
    operator.server.refuse("apply_scale", *(Conflict("it changed in between") for _ in range(conflicts)))
    for _ in range(conflicts + 2):
        await operator.look()
    told = [said for said in operator.events.said if "ScaledUp" in said]
    assert told == ["Normal ScaledUp: replicas 0 to 5: window working-day"]
    assert (operator.status["lastScale"]["from"], operator.status["lastScale"]["to"]) == (0, 5)
    assert [rise["from"] for rise in operator.status["leadTime"]["running"]] == [0]


async def test_what_a_rise_taught_is_decided_with_at_once() -> None:
    operator = await seen("2026-12-01T07:00", running=2, leadTime={"declared": "10m", "max": "15m"})
    await operator.look("2026-12-01T07:48")
    for name in ("chat-1", "chat-2", "chat-3"):
        pod = ready_pod(name)
        pod["metadata"]["creationTimestamp"] = "2026-12-01T06:48:05Z"
        pod["status"]["conditions"][-1]["lastTransitionTime"] = "2026-12-01T07:10:00Z"
        operator.server.put(pod)
    operator.server.make_ready(TARGET)
    assert await operator.look("2026-12-01T08:11") == 0.0
    assert await operator.look() != 0.0
    assert operator.status["leadTime"]["learned"]["p95"] == "22m1s"
    assert operator.said("ReadyByNextRamp") == "False LeadCapped"


async def test_a_target_that_changes_under_our_hands_is_decided_again() -> None:
    operator = await seen("2026-12-01T07:00", running=2)
    read, raced = operator.server.get, False

    async def get(ref: ObjectRef) -> dict[str, object]:
        nonlocal raced
        live = await read(ref)
        if ref == TARGET and not raced:
            raced = True
            operator.server.make_ready(TARGET, 1)
        return live

    operator.server.get = get  # type: ignore[method-assign]
    assert await operator.look("2026-12-01T07:48") == CONFLICT_RETRY_S
    assert operator.wrote() == []
    await operator.look()
    assert operator.replicas() == 5


async def test_an_unreachable_server_is_the_queues_to_repeat() -> None:
    operator = await seen()
    operator.server.refuse("get", Unreachable("no answer"))
    with pytest.raises(Unreachable):
        await operator.look()


@pytest.mark.parametrize("deleting", [True, False], ids=["being deleted", "gone"])
async def test_a_deleted_plan_is_forgotten_and_its_target_left_alone(deleting: bool) -> None:
    operator = await seen("2026-12-01T19:59")
    if deleting:
        operator.server.objects[PLAN]["metadata"]["deletionTimestamp"] = "2026-12-01T19:00:00Z"
    else:
        del operator.server.objects[PLAN]
    await operator.look("2026-12-01T20:00")
    assert (operator.wakes_at, KEY in operator.store.plans, operator.replicas()) == (None, False, 5)
    assert operator.wrote() == []
    assert b'name="support-chat"' not in operator.metrics.render()


async def test_a_plan_that_goes_while_it_is_reconciled_is_no_failure() -> None:
    operator = await seen()
    read = operator.server.get

    async def get(ref: ObjectRef) -> dict[str, object]:
        live = await read(ref)
        if ref == TARGET:
            operator.server.objects.pop(PLAN, None)
        return live

    operator.server.get = get  # type: ignore[method-assign]
    await operator.look("2026-12-01T20:00")
    assert PLAN not in operator.server.objects


async def test_what_counts_dates_is_looked_at_when_a_date_begins() -> None:
    operator = await seen("2026-12-05T12:00", running=2)
    assert operator.wakes_at == berlin("2026-12-06T00:00")


async def test_a_calendar_that_runs_out_says_so_at_midnight() -> None:
    operator = SmallOperator("2026-12-05T12:00")
    operator.run_target(2)
    operator.store.put_content(
        Kind.CONFIG_MAP, config_map("holidays", {"dates": "2026-12-05", "validUntil": "2026-12-05"})
    )
    operator.apply_plan(**WITH_CALENDAR)
    await operator.look()
    assert operator.said("PlanValid") == "True Resolved"
    assert operator.wakes_at is not None
    operator.clock.instant = operator.wakes_at
    await operator.look()
    assert operator.said("PlanValid") == "Unknown CalendarExpired"


async def test_pods_of_a_named_target_are_looked_at_while_something_moves() -> None:
    operator = await seen("2026-12-01T07:00", running=2)
    assert await operator.look() is None
    assert await operator.look("2026-12-01T07:48") == observe.TARGET_PODS_EVERY_S


async def test_gpus_that_only_the_targets_pods_tell_count_in_the_month() -> None:
    one, two = await seen(), SmallOperator("2026-12-01T12:00")
    two.run_target(5, gpus=2)
    two.apply_plan()
    await two.look()
    assert two.status["gpuHours"]["monthFlat"] == 2 * one.status["gpuHours"]["monthFlat"] == 2 * 3650


async def test_another_plan_is_older_and_holds_the_target() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    operator.run_target(1)
    older = document(
        name="older", engine=None, targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
    )
    operator.store.put_plan(operator.server.put(older, creationTimestamp="2026-01-01T00:00:00Z"))
    operator.apply_plan()
    await operator.look()
    assert operator.said("TargetResolved") == "False TargetClaimed"
    assert operator.replicas() == 1
    assert Key("llm", "older") in operator.store.plans


async def test_the_engines_name_is_taken_by_a_stranger() -> None:
    operator = SmallOperator("2026-12-01T12:00")
    stranger = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "support-chat", "namespace": "llm"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": {"spec": {"containers": []}}},
    }  # fmt: skip
    operator.server.put(stranger)
    operator.server.put(document(engine=ENGINE_SPEC))
    await operator.look()
    assert operator.said("TargetResolved") == "False NameTaken"
    assert operator.wrote() == ["apply_status"]


async def test_wake_ups_are_never_in_the_past() -> None:
    operator = await seen()
    assert operator.wakes_at is not None
    assert operator.wakes_at >= operator.clock.instant + timedelta(milliseconds=1)
