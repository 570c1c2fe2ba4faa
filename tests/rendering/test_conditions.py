"""Conditions: each rule as narratives, what changes them, and that they never change by themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.errors import Problem
from servingplan.planning.lead import Rises, RiseSample, Stages
from servingplan.planning.observation import History, Ramp, Replica, Stage, Trouble
from servingplan.planning.ownership import Contest
from servingplan.planning.plan import Bounds, Calendar, Lead, Override, Rate, Reserve, Total, TreatAs
from servingplan.planning.reasons import Reason
from servingplan.planning.target import TargetRef
from servingplan.rendering.conditions import conditions
from servingplan.rendering.situation import Accelerators, Condition, Rollout, Situation
from support.plans import a_plan, a_window, a_workload, an_engine
from support.situations import (
    TARGET,
    Day,
    a_day,
    a_situation,
    an_invalid_situation,
    an_observation,
    condition,
    in_trouble,
    pods,
)
from support.strategies import plans

MINUTE = timedelta(minutes=1)
DEPLOYMENT = TargetRef(api_version="apps/v1", kind="Deployment", name="vllm")
HPA = TargetRef(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="vllm")
EIGHT = Ramp(start=berlin("2026-12-01T08:00"), needed=5, start_by=berlin("2026-12-01T07:48"))
CONTEST = Contest(
    manager="kubectl", since=berlin("2026-12-01T11:00"), last_write=berlin("2026-12-01T11:30"), value=2, raises=3
)
NO_GPU = in_trouble(Reason.UNSCHEDULABLE, "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.")


def expired(day: str = "2026-11-30") -> Calendar:
    until = date.fromisoformat(day)
    return Calendar(name="holidays", dates=frozenset(), treat_as=TreatAs.BASE, valid_until=until)


def warning(message: str) -> Problem:
    return Problem(path="spec.leadTime", reason="Odd", message=message)


def missed(**changes: Any) -> Situation:
    observation = an_observation(pods(3, engine=2), **changes)
    return a_situation("2026-12-01T08:04", observation=observation, history=History(ramp=EIGHT))


def starting(at: str = "2026-12-01T07:50", **changes: Any) -> Situation:
    """A ramp in progress that was seen in time."""
    observation = changes.pop("observation", an_observation(pods(2, engine=2, scheduling=1)))
    return a_situation(at, observation=observation, history=History(ramp=EIGHT), **changes)


def limited(**changes: Any) -> Situation:
    return a_situation(plan=a_plan(bounds=Bounds(minimum=1, maximum=4)), **changes)


def quiet(text: str, count: int, **bounds: int) -> Situation:
    """Sunday, when one replica and one in reserve are enough."""
    plan = a_plan(bounds=Bounds(minimum=bounds.get("minimum", 1), maximum=8))
    return a_situation(text, plan=plan, observation=an_observation(pods(count)))


SLOW = Replica(name="chat-slow", stage=Stage.ENGINE, since=berlin("2026-12-01T07:30"))
SLOW_START = RiseSample(
    decided=berlin("2026-11-30T07:48"),
    stages=Stages(scheduling=MINUTE, pulling=2 * MINUTE, engine=40 * MINUTE),
)
NODE_DOWN = "node node-9 is not ready"
LONG_RISES = Rises(fingerprint="f", samples=(SLOW_START,))
GOOD = a_situation()

NARRATIVES: Mapping[str, tuple[str, Situation, str, str]] = {
    # ---- what live signals, learned leads and drains add ----
    "a start that takes longer than any before": (
        "ReadyByNextRamp",
        starting(
            "2026-12-01T07:52",
            observation=an_observation((*pods(4), SLOW)),
        ),
        "False StartStuck",
        "4 of 5 ready; 1 in stage engine for the ramp at Tue 1 Dec 08:00 CET. "
        "chat-slow (engine) not verified, the first since Tue 1 Dec 07:30 CET",
    ),
    "starts that take longer than may be planned for": (
        "ReadyByNextRamp",
        a_situation(history=History(rises=LONG_RISES)),
        "False LeadCapped",
        "rises take 43m, most of it in engine, which with its margin needs 51m36s; leadTime.max allows 30m. "
        "Find out what became slower, or raise leadTime.max",
    ),
    "a start that is stuck although its ramp has begun": (
        "ReadyByNextRamp",
        a_situation("2026-12-01T08:04", observation=an_observation((*pods(4), SLOW)), history=History(ramp=EIGHT)),
        "False RampMissed",
        "4 of 5 ready; 1 in stage engine for the ramp that began at Tue 1 Dec 08:00 CET. "
        "chat-slow (engine) not verified, the first since Tue 1 Dec 07:30 CET",
    ),
    "a start that is stuck and is the reserve": (
        "ReserveIntact",
        a_situation(observation=an_observation((*pods(4), SLOW))),
        "False ReserveMissing",
        "0 of 1 in reserve: 4 of 5 ready; 1 in stage engine. "
        "chat-slow (engine) not verified, the first since Tue 1 Dec 07:30 CET",
    ),
    "five starts that are stuck, three of them named": (
        "Ready",
        a_situation(observation=an_observation(pods(0, engine=4, scheduling=1))),
        "False BelowRequired",
        "0 of 5 ready; 1 in stage scheduling, 4 in stage engine, 5 required now. chat-scheduling-0 (scheduling), "
        "chat-engine-0 (engine), chat-engine-1 (engine) and 2 more not verified, the first since Tue 1 Dec 07:48 CET",
    ),
    "a replica whose node went down": (
        "ReserveIntact",
        a_situation(
            observation=an_observation((*pods(4), in_trouble(Reason.NODE_NOT_READY, NODE_DOWN, Stage.ENGINE)))
        ),
        "False ReserveMissing",
        "0 of 1 in reserve: 4 of 5 ready. chat-x: NodeNotReady: node node-9 is not ready. "
        "Kubernetes replaces it in about 5m, or as soon as the node is deleted",
    ),
    "a replica that was ready before": (
        "Ready",
        a_situation(
            observation=an_observation((*pods(4), in_trouble(Reason.NOT_READY_ANY_MORE, "it was", Stage.ENGINE)))
        ),
        "False BelowRequired",
        "4 of 5 ready, 5 required now. chat-x: NotReadyAnyMore: it was. Its log says why: kubectl logs chat-x",
    ),
    "a named target whose replicas cannot drain": (
        "DrainSafe",
        a_situation(plan=a_plan(target=DEPLOYMENT), undrained="the pods have no label"),
        "False NotDrained",
        "the pods have no label",
    ),
    # ---- PlanValid ----
    "a plan that resolves": ("PlanValid", GOOD, "True Resolved", "the plan resolves"),
    "a plan with a problem": (
        "PlanValid",
        an_invalid_situation(),
        "False Invalid",
        "spec.schedule.timeZone: Europe/Berln is no time zone [UnknownTimeZone]. The replicas stay as they are.",
    ),
    "a plan with seven problems names five": (
        "PlanValid",
        an_invalid_situation(*(Problem(path="", reason="R", message=f"p{i}") for i in range(7))),
        "False Invalid",
        "p0 [R]; p1 [R]; p2 [R]; p3 [R]; p4 [R] (and 2 more). The replicas stay as they are.",
    ),
    "a calendar that ran out yesterday": (
        "PlanValid",
        a_situation(plan=a_plan(calendars=(expired(),))),
        "Unknown CalendarExpired",
        "calendar holidays ended on 2026-11-30: later dates are treated as ordinary days. "
        "Extend it and its validUntil.",
    ),
    "a calendar that runs out today": (
        "PlanValid",
        a_situation(plan=a_plan(calendars=(expired("2026-12-01"),))),
        "True Resolved",
        "the plan resolves",
    ),
    "a plan that acts but looks odd": (
        "PlanValid",
        a_situation(plan=a_plan(warnings=(warning("a lead of 1s is short"),))),
        "True Warnings",
        "the plan acts, but: spec.leadTime: a lead of 1s is short [Odd]",
    ),
    # ---- TargetResolved ----
    "a target that is found": ("TargetResolved", GOOD, "True TargetFound", f"{TARGET} is held by this plan"),
    "a target that is missing": (
        "TargetResolved",
        replace(GOOD, target_trouble=Trouble(reason=Reason.TARGET_NOT_FOUND, message="it does not exist")),
        "False TargetNotFound",
        "it does not exist",
    ),
    # ---- ReplicasOwned ----
    "nobody else writes": ("ReplicasOwned", GOOD, "True SoleWriter", "nobody else writes replicas"),
    "kubectl wrote": (
        "ReplicasOwned",
        replace(GOOD, contest=CONTEST),
        "False SecondWriter",
        "kubectl wrote replicas too, last seen Tue 1 Dec 11:30 CET. Until it has been quiet for 15m the operator "
        "raises to what the plan asks for and never lowers. To run fewer than the plan: spec.suspend, or an override.",
    ),
    "an HPA scales the target": (
        "ReplicasOwned",
        a_situation(plan=a_plan(target=DEPLOYMENT), autoscaler="HorizontalPodAutoscaler llm/vllm"),
        "False ScaledByHPA",
        f"HorizontalPodAutoscaler llm/vllm scales {TARGET} too, so nothing is written. Point spec.targetRef of a new "
        "plan at HorizontalPodAutoscaler llm/vllm to let the plan set its minimum, or delete it.",
    ),
    "an HPA scales the engine": (
        "ReplicasOwned",
        replace(GOOD, autoscaler="HorizontalPodAutoscaler llm/vllm"),
        "False ScaledByHPA",
        f"HorizontalPodAutoscaler llm/vllm scales {TARGET} too, so nothing is written. Delete it: the replicas of an "
        "engine are the plan's.",
    ),
    "the plan sets an autoscaler's minimum": (
        "ReplicasOwned",
        a_situation(plan=a_plan(target=HPA)),
        "True FloorHeld",
        f"the minimum of {TARGET} is set by this plan",
    ),
    # ---- ReadyByNextRamp ----
    "no ramp is near": ("ReadyByNextRamp", GOOD, "True NoRampDue", "no ramp within the lead"),
    "replicas are starting": (
        "ReadyByNextRamp",
        starting(),
        "Unknown Starting",
        "2 of 5 ready; 1 in stage scheduling, 2 in stage engine for the ramp at Tue 1 Dec 08:00 CET",
    ),
    "only the margin is left": (
        "ReadyByNextRamp",
        starting("2026-12-01T07:58"),
        "False RampAtRisk",
        "2 of 5 ready; 1 in stage scheduling, 2 in stage engine for the ramp at Tue 1 Dec 08:00 CET",
    ),
    "all are ready before the ramp": (
        "ReadyByNextRamp",
        starting(observation=an_observation(pods(5))),
        "True RampReady",
        "5 of 5 verified for Tue 1 Dec 08:00 CET",
    ),
    "the ramp began and two are missing": (
        "ReadyByNextRamp",
        missed(),
        "False RampMissed",
        "3 of 5 ready; 2 in stage engine for the ramp that began at Tue 1 Dec 08:00 CET. "
        "chat-engine-0 (engine), chat-engine-1 (engine) not verified, the first since Tue 1 Dec 07:48 CET",
    ),
    "a pod finds no GPU": (
        "ReadyByNextRamp",
        starting(observation=an_observation((*pods(2, engine=2), NO_GPU))),
        "False Unschedulable",
        "2 of 5 ready; 1 in stage scheduling, 2 in stage engine for the ramp at Tue 1 Dec 08:00 CET. "
        "chat-x: Unschedulable: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu. "
        "Add or free a node that it fits on",
    ),
    "an image cannot be pulled": (
        "ReadyByNextRamp",
        starting(observation=an_observation((*pods(2), in_trouble(Reason.IMAGE_PULL, "not found", Stage.PULLING)))),
        "False ImagePull",
        "2 of 5 ready; 1 in stage pulling for the ramp at Tue 1 Dec 08:00 CET. chat-x: ImagePull: not found. "
        "Correct the image, its pull secret, or the way to its registry",
    ),
    "the engine crashes": (
        "ReadyByNextRamp",
        starting(observation=an_observation((*pods(2), in_trouble(Reason.ENGINE_CRASH, "exit code 1", Stage.ENGINE)))),
        "False EngineCrash",
        "2 of 5 ready; 1 in stage engine for the ramp at Tue 1 Dec 08:00 CET. chat-x: EngineCrash: exit code 1. "
        "Its log says why: kubectl logs chat-x --previous",
    ),
    "a quota refuses the pods": (
        "ReadyByNextRamp",
        starting(observation=an_observation(
            pods(2), current=5, trouble=Trouble(reason=Reason.QUOTA_REFUSED, message="exceeded quota: gpus"))),
        "False QuotaRefused",
        "2 of 5 ready for the ramp at Tue 1 Dec 08:00 CET. QuotaRefused: exceeded quota: gpus. "
        "Raise the namespace's quota, or free some of it",
    ),
    "the operator first sees the ramp when most of the lead is gone": (
        "ReadyByNextRamp",
        a_situation("2026-12-01T07:55", observation=an_observation(pods(2, engine=3)), found=2),
        "False LeadTooShort",
        "2 of 5 ready; 3 in stage engine for the ramp at Tue 1 Dec 08:00 CET. It came closer than the lead: "
        "it should have started by Tue 1 Dec 07:48 CET",
    ),
    "the operator sees the ramp half a minute late": (
        "ReadyByNextRamp",
        a_situation("2026-12-01T07:48:30", observation=an_observation(pods(2, engine=3)), found=2),
        "Unknown Starting",
        "2 of 5 ready; 3 in stage engine for the ramp at Tue 1 Dec 08:00 CET",
    ),
    "the replicas of a ramp that is first seen late were asked for before": (
        "ReadyByNextRamp",
        a_situation("2026-12-01T07:55", observation=an_observation(pods(4, engine=1))),
        "Unknown Starting",
        "4 of 5 ready; 1 in stage engine for the ramp at Tue 1 Dec 08:00 CET",
    ),
    # ---- ReserveIntact ----
    "the reserve is there": ("ReserveIntact", GOOD, "True ReserveReady", "1 beyond the need of 4"),
    "one of five is lost": (
        "ReserveIntact",
        a_situation(observation=an_observation(pods(4, engine=1))),
        "False ReserveMissing",
        "0 of 1 in reserve: 4 of 5 ready; 1 in stage engine. "
        "chat-engine-0 (engine) not verified, the first since Tue 1 Dec 07:48 CET",
    ),
    "all stand on one node": (
        "ReserveIntact",
        a_situation(observation=an_observation(pods(5, node="node-a"))),
        "False NodeConcentration",
        "node node-a holds 5 of 5 ready replicas; without it fewer than the need of 4 are left. "
        "Spread the replicas over more nodes.",
    ),
    "pods were seen later than the count, and were well before": (
        "ReserveIntact",
        a_situation(observation=an_observation(pods(6, node="node-a"), ready=5)),
        "True ReserveReady",
        "1 beyond the need of 4",
    ),
    "pods were seen later than the count, and stood on one node before": (
        "ReserveIntact",
        a_situation(
            observation=an_observation(pods(6, node="node-a"), ready=5),
            previous={"ReserveIntact": {"reason": "NodeConcentration", "message": "as before"}},
        ),
        "False NodeConcentration",
        "as before",
    ),
    # ---- GPUCapacitySufficient ----
    "the nodes have more than the week asks for": (
        "GPUCapacitySufficient",
        replace(GOOD, accelerators=Accelerators(allocatable=8, elastic=False), peak=5),
        "True GPUsSufficient",
        "8 allocatable, the coming week asks for 5",
    ),
    "the nodes have less": (
        "GPUCapacitySufficient",
        a_situation(
            plan=a_plan(gpus_per_replica=2), accelerators=Accelerators(allocatable=8, elastic=False), peak=5
        ),
        "False GPUsMissing",
        "the coming week asks for 10 GPUs, the ready nodes have 8. "
        "Add nodes with free GPUs, or ask for fewer (bounds.maxReplicas)",
    ),
    "the nodes have less, and an autoscaler adds some": (
        "GPUCapacitySufficient",
        replace(GOOD, accelerators=Accelerators(allocatable=4, elastic=True), peak=5),
        "Unknown NodesElastic",
        "the coming week asks for 5 GPUs, the ready nodes have 4; an autoscaler may add nodes",
    ),
    "enough in sum, and a pod finds none": (
        "GPUCapacitySufficient",
        a_situation(
            observation=an_observation((*pods(4), NO_GPU)),
            accelerators=Accelerators(allocatable=8, elastic=False),
            peak=5,
        ),
        "False GPUsMissing",
        "chat-x: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu. "
        "Add nodes with free GPUs, or ask for fewer (bounds.maxReplicas)",
    ),
    # ---- DrainSafe ----
    "there is time for the longest answer": (
        "DrainSafe",
        GOOD,
        "True DrainFits",
        "engine.drainTimeout is 5m; the longest answer (900 tokens by workload.tokens.output.p99) takes 1m9s at "
        "the objectives",
    ),
    "there is not": (
        "DrainSafe",
        a_situation(plan=a_plan(target=an_engine(max_model_len=16384))),
        "False DrainTooShort",
        "engine.drainTimeout is 5m; the longest answer (16384 tokens by engine.maxModelLen) takes 20m30s300ms at the "
        "objectives. Raise drainTimeout, or cap the output with --override-generation-config in engine.extraArgs.",
    ),
    # ---- ScalingLimited ----
    "no bound changes anything": ("ScalingLimited", GOOD, "False WithinBounds", "within 1 to 8"),
    "bounds.maxReplicas limits": (
        "ScalingLimited",
        limited(observation=an_observation(pods(4))),
        "True MaxReplicas",
        "the schedule asks for 5, 4 is the most: raise bounds.maxReplicas",
    ),
    "an HPA's maximum limits": (
        "ScalingLimited",
        a_situation(plan=a_plan(target=HPA), observation=an_observation(pods(3), maximum=3)),
        "True MaxReplicas",
        f"the schedule asks for 5, 3 is the maximum of {TARGET}: raise it there",
    ),
    "bounds.minReplicas holds": (
        "ScalingLimited",
        quiet("2026-12-06T12:00", 3, minimum=3),
        "True MinReplicas",
        "the schedule asks for 2, bounds.minReplicas keeps 3",
    ),
    "bounds.minReplicas will hold when a fall is over": (
        "ScalingLimited",
        quiet("2026-12-06T12:00", 6, minimum=3),
        "True MinReplicas",
        "the schedule asks for 2, bounds.minReplicas keeps 3",
    ),
    # ---- EngineUpToDate ----
    "the running template is the rendered one": (
        "EngineUpToDate",
        GOOD,
        "True UpToDate",
        "the running template is what spec.engine renders to",
    ),
    "an older template is kept": (
        "EngineUpToDate",
        replace(GOOD, rollout=Rollout(held=True)),
        "False TemplateHeld",
        "this version of the operator renders the engine differently; the running template stays until the next edit "
        "of spec.engine",
    ),
    # ---- Ready ----
    "enough are ready": ("Ready", GOOD, "True AsPlanned", "at least the 5 required now are ready"),
    "a lead is in progress": ("Ready", starting(), "True AsPlanned", "at least the 2 required now are ready"),
    "a fall goes on": (
        "Ready",
        quiet("2026-12-06T12:00", 4),
        "True AsPlanned",
        "at least the 2 required now are ready",
    ),
    "too few are ready": (
        "Ready",
        missed(),
        "False BelowRequired",
        "3 of 5 ready; 2 in stage engine, 5 required now. "
        "chat-engine-0 (engine), chat-engine-1 (engine) not verified, the first since Tue 1 Dec 07:48 CET",
    ),
    "the plan is invalid": (
        "Ready",
        an_invalid_situation(),
        "False Invalid",
        "spec.schedule.timeZone: Europe/Berln is no time zone [UnknownTimeZone]. The replicas stay as they are.",
    ),
    "the target is somebody else's": (
        "Ready",
        replace(GOOD, target_trouble=Trouble(reason=Reason.TARGET_CLAIMED, message="plan chat is older")),
        "False TargetClaimed",
        "plan chat is older",
    ),
    "an apply was refused": (
        "Ready",
        replace(GOOD, apply_trouble=Trouble(reason=Reason.APPLY_REFUSED, message="denied by policy")),
        "False ApplyRefused",
        "denied by policy",
    ),
    "the plan is suspended and nothing is ready": (
        "Ready",
        a_situation(plan=a_plan(suspend=True), observation=an_observation(pods(0))),
        "True Suspended",
        "suspended: status is kept, nothing else is written",
    ),
    # ---- Reconciling, Stalled ----
    "pods of an older template are left": (
        "Reconciling",
        replace(GOOD, rollout=Rollout(rolling=True)),
        "True RollingUpdate",
        "pods of an older template are being replaced",
    ),
    "a rolling update makes no progress": (
        "Stalled",
        replace(GOOD, rollout=Rollout(rolling=True, stalled='ReplicaSet "chat" has timed out progressing.')),
        "True RollingUpdate",
        'ReplicaSet "chat" has timed out progressing.',
    ),
    "a refused apply stalls": (
        "Stalled",
        replace(GOOD, apply_trouble=Trouble(reason=Reason.APPLY_REFUSED, message="denied by policy")),
        "True ApplyRefused",
        "denied by policy",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "situation", "said", "message"), NARRATIVES.values(), ids=NARRATIVES)
def test_a_condition_says(type_: str, situation: Situation, said: str, message: str) -> None:
    found = condition(situation, type_)
    assert found is not None
    assert (f"{found.status} {found.reason}", found.message) == (said, message)


def test_a_start_becomes_stuck_at_an_instant_that_is_looked_at() -> None:
    observation = an_observation((*pods(4), replace(SLOW, since=berlin("2026-12-01T07:42"))))
    before = starting("2026-12-01T07:54", observation=observation)
    assert before.decision is not None
    coming = before.decision.next_change_at
    assert coming - berlin("2026-12-01T07:54") == timedelta(microseconds=1)
    after = replace(starting(observation=observation), now=coming)
    for situation, reason in ((before, Reason.STARTING), (after, Reason.START_STUCK)):
        found = condition(situation, "ReadyByNextRamp")
        assert found is not None
        assert found.reason is reason


ABSENT: Mapping[str, tuple[str, Situation]] = {
    "nothing rolls": ("Reconciling", GOOD),
    "nothing rolls on": ("Reconciling", replace(GOOD, rollout=Rollout(rolling=True, stalled="timed out"))),
    "nothing is stalled": ("Stalled", GOOD),
    "too few are ready, which may mend itself": ("Stalled", missed()),
    "a named target drains as its owner says": ("DrainSafe", a_situation(plan=a_plan(target=DEPLOYMENT))),
    "a named target's template is its owner's": ("EngineUpToDate", a_situation(plan=a_plan(target=DEPLOYMENT))),
    "no reserve is asked for": ("ReserveIntact", a_situation(plan=a_plan(reserve=Reserve(replicas=0, quiet=0)))),
    "the reserve while suspended": ("ReserveIntact", a_situation(plan=a_plan(suspend=True))),
    "ramps while suspended": ("ReadyByNextRamp", a_situation(plan=a_plan(suspend=True))),
    "no node can be read": ("GPUCapacitySufficient", replace(GOOD, peak=5)),
    "who writes to a target that is not ours": (
        "ReplicasOwned",
        replace(GOOD, target_trouble=Trouble(reason=Reason.NAME_TAKEN, message="taken")),
    ),
    "the target of a plan that does not resolve": ("TargetResolved", an_invalid_situation()),
}


@pytest.mark.parametrize(("type_", "situation"), ABSENT.values(), ids=ABSENT)
def test_a_condition_stands_only_where_it_has_something_to_say(type_: str, situation: Situation) -> None:
    assert condition(situation, type_) is None


def test_an_invalid_plan_has_the_conditions_that_can_be_told_without_it() -> None:
    assert [found.type for found in conditions(an_invalid_situation())] == ["Ready", "Stalled", "PlanValid"]


def test_a_drain_that_cannot_be_judged_says_what_to_state() -> None:
    workload = a_workload(objectives=replace(a_workload().objectives, tpot=None))
    found = condition(a_situation(plan=a_plan(workload=workload)), "DrainSafe")
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", "DrainUnknown")
    assert "state workload.objectives.tpot" in found.message


# ---- days ----


def history_of(day: Day, until: str, type_: str = "ReadyByNextRamp") -> list[str]:
    """What a condition said, one entry for each change."""
    said = [day.said(type_)] if day.status else []
    while day.now < berlin(until):
        day.run(min(berlin(until), day.now + MINUTE))
        if not said or said[-1] != day.said(type_):
            said.append(day.said(type_))
    return said


def test_a_morning_in_time_goes_from_starting_to_ready() -> None:
    day = a_day(start_time=9 * MINUTE)
    assert history_of(day, "2026-12-01T08:30") == [
        "True NoRampDue", "Unknown Starting", "True RampReady", "True NoRampDue",
    ]  # fmt: skip


def test_a_morning_that_eats_the_margin_is_at_risk_and_still_in_time() -> None:
    day = a_day(start_time=11 * MINUTE)
    assert history_of(day, "2026-12-01T08:30") == [
        "True NoRampDue", "Unknown Starting", "False RampAtRisk", "True RampReady", "True NoRampDue",
    ]  # fmt: skip


def test_a_missed_morning_is_at_risk_before_and_missed_until_all_are_ready() -> None:
    day = a_day(start_time=15 * MINUTE)
    assert history_of(day, "2026-12-01T08:30") == [
        "True NoRampDue", "Unknown Starting", "False RampAtRisk", "False RampMissed", "True NoRampDue",
    ]  # fmt: skip
    day = a_day(start_time=15 * MINUTE)
    assert history_of(day, "2026-12-01T08:30", "Ready") == ["True AsPlanned", "False BelowRequired", "True AsPlanned"]


def test_an_override_closer_than_the_lead_says_so_until_it_is_ready() -> None:
    day = a_day("2026-12-01T12:00", running=5, start_time=11 * MINUTE)
    day.look()
    launch = Override(
        name="launch",
        start=datetime.fromisoformat("2026-12-01T12:06"),
        end=datetime.fromisoformat("2026-12-01T13:00"),
        level=Rate(requests_per_second=Decimal(30)),
    )
    day.edit(overrides=(launch,))
    assert history_of(day, "2026-12-01T12:30") == [
        "True NoRampDue", "False LeadTooShort", "False RampMissed", "True NoRampDue",
    ]  # fmt: skip


def test_a_raised_need_of_a_ramp_that_has_begun_is_closer_than_the_lead_too() -> None:
    day = a_day("2026-12-01T07:50", start_time=9 * MINUTE)
    day.status = dict(a_day("2026-12-01T07:48").look())
    assert day.said("ReadyByNextRamp") == "Unknown Starting"
    day.edit(windows=(a_window(level=Rate(requests_per_second=Decimal(28))),))
    day.look()
    assert day.said("ReadyByNextRamp") == "False LeadTooShort"


def test_a_second_rise_within_one_lead_was_asked_for_in_time() -> None:
    later = a_window(name="late", start=time(8, 5), level=Total(replicas=7))
    day = a_day(plan=a_plan(windows=(a_window(), later)), start_time=18 * MINUTE)
    assert "False LeadTooShort" not in history_of(day, "2026-12-01T08:30")


def test_a_pod_that_dies_before_the_ramp_leaves_time_or_not() -> None:
    day = a_day(start_time=5 * MINUTE)
    day.run(berlin("2026-12-01T07:54"))
    assert day.said("ReadyByNextRamp") == "True RampReady"
    day.kill(0)
    day.look()
    assert day.said("ReadyByNextRamp") == "Unknown Starting"
    day.run(berlin("2026-12-01T07:58:30"))
    assert day.said("ReadyByNextRamp") == "False RampAtRisk"


def test_a_pod_that_dies_after_the_ramp_was_ready_makes_no_missed_ramp() -> None:
    day = a_day(start_time=5 * MINUTE)
    day.run(berlin("2026-12-01T07:59"))
    day.now = berlin("2026-12-01T08:00:30")
    day.kill(0)
    day.look()
    assert (day.said("ReadyByNextRamp"), day.said("Ready")) == ("True NoRampDue", "False BelowRequired")


def test_trouble_that_ends_leaves_a_ramp_that_goes_on() -> None:
    day = a_day(start_time=9 * MINUTE)
    day.run(berlin("2026-12-01T07:50"))
    trouble = Trouble(reason=Reason.UNSCHEDULABLE, message="no GPU")
    day.pods[-1].trouble = trouble
    day.look()
    assert day.said("ReadyByNextRamp") == "False Unschedulable"
    day.pods[-1].trouble = None
    day.look()
    assert day.said("ReadyByNextRamp") == "Unknown Starting"


def test_a_day_of_the_worked_example_turns_ready_and_reserve_never() -> None:
    day = a_day(start_time=9 * MINUTE)
    day.run(berlin("2026-12-02T07:00"))
    times = {type_: day.condition(type_)["lastTransitionTime"] for type_ in ("Ready", "ReserveIntact", "PlanValid")}
    assert set(times.values()) == {"2026-12-01T06:00:00Z"}


# ---- never by themselves ----

GOES_ON = st.tuples(st.sampled_from(["wait", "wait", "late", "early", "die", "suspend", "resume"]), st.integers(1, 240))


@given(plan=plans(near=date(2026, 12, 1)), steps=st.lists(GOES_ON, max_size=8), start=st.integers(0, 47))
@settings(max_examples=60, deadline=None)
def test_nothing_changes_by_itself_between_two_wake_ups(plan: Any, steps: list[tuple[str, int]], start: int) -> None:
    plan = replace(plan, lead=Lead(declared=plan.lead.declared, margin=Fraction(1, 5), maximum=plan.lead.maximum * 2))
    day = Day(plan=plan, now=berlin("2026-12-01T00:00") + start * 30 * MINUTE)
    for what, minutes in steps:
        _happen(day, what, minutes)
        day.look()
        before, written = dict(day.look()), day.written
        assert [status for status in _until_something_happens(day) if status != before] == []
        assert day.written == written
        day.run(day.now + minutes * MINUTE)


def _happen(day: Day, what: str, minutes: int) -> None:
    if what in ("late", "early"):
        day.start_time = minutes * MINUTE if what == "late" else MINUTE
    elif what == "die":
        day.kill(minutes)
    elif what in ("suspend", "resume"):
        day.edit(suspend=what == "suspend")


def _until_something_happens(day: Day) -> list[dict[str, Any]]:
    """The statuses that looks before the next wake-up and the next pod would write."""
    assert day.wakes_at is not None
    now, seen = day.now, []
    coming = [pod.ready_at for pod in day.pods if pod.ready_at > now]
    end = min(day.wakes_at, *coming) if coming else day.wakes_at
    for share in (0.3, 0.999):
        day.now = now + (end - now) * share
        if day.now < end:
            seen.append(dict(day.look()))
    day.now = now
    return seen


@given(plan=plans(near=date(2026, 12, 1)), steps=st.lists(GOES_ON, max_size=6), start=st.integers(0, 47))
@settings(max_examples=40, deadline=None)
def test_ready_is_false_only_where_fewer_are_ready_than_required(
    plan: Any, steps: list[tuple[str, int]], start: int
) -> None:
    day = Day(plan=plan, now=berlin("2026-12-01T00:00") + start * 30 * MINUTE)
    for what, minutes in steps:
        _happen(day, what, minutes)
        status, decision = day.look(), day.decision
        assert decision is not None
        too_few = status["readyReplicas"] < decision.required.replicas and not day.plan.suspend
        assert day.said("Ready").startswith("False") == too_few
        day.run(day.now + minutes * MINUTE)


RELATIVE = re.compile(r"\b(ago|in \d+ ?(h|m|s|min)|(hours?|minutes?|seconds?) (left|late))\b")


@pytest.mark.parametrize("situation", [s for _, s, _, _ in NARRATIVES.values()], ids=NARRATIVES)
def test_a_message_is_the_same_a_minute_later(situation: Situation) -> None:
    def told(found: tuple[Condition, ...]) -> list[tuple[str, str]]:
        return [(one.type, one.message) for one in found]

    later = replace(situation, now=situation.now + timedelta(seconds=20))
    assert told(conditions(later)) == told(conditions(situation))
    assert not [message for _, message in told(conditions(situation)) if RELATIVE.search(message)]
