"""CapacityCurrent: every difference by its name, what cannot be read, and what stands until it can be judged again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.loop import berlin
from servingplan.planning.measured import AtCapacity, Fingerprint, Measured
from servingplan.planning.plan import Objective, Plan, TokenLengths
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, NoSignals, Traffic
from servingplan.planning.target import TargetRef
from servingplan.rendering.currency import Case, capacity_current
from servingplan.rendering.identity import identity
from servingplan.rendering.serving import Hardware, RunningPod, digest_of, hardware_of
from servingplan.rendering.situation import Condition, Status
from support.plans import a_plan
from support.signals import a_feedback, some_signals

NOW = berlin("2026-12-01T12:00")
L40S = Hardware(product="L40S", driver="560.35")
POD = RunningPod(image="sha256:i", hardware=L40S)
AT = AtCapacity(input_tokens=1000, output_tokens=200, prefix_hit_share=0.5)


def measured(plan: Plan, **changes: Any) -> Measured:
    """What was measured of exactly this plan."""
    assert plan.engine is not None
    engine = identity(plan.engine)
    fingerprint = Fingerprint(
        digest=engine.digest,
        image=engine.image,
        image_digest="registry.local/vllm@sha256:i",
        model=engine.model,
        arguments=engine.arguments,
        accelerator=engine.accelerator,
        product="L40S",
        driver="560.35",
        objectives=plan.workload.objectives.words,
    )
    return Measured(benchmark="l40s", fingerprint=replace(fingerprint, **changes), at_capacity=AT)


def a_case(plan: Plan | None = None, **changes: Any) -> Case:
    """A plan that runs as it was measured, with traffic as it was measured."""
    plan = plan or a_plan(feedback=a_feedback())
    if plan.measured is None:
        plan = replace(plan, measured=measured(plan))
    return replace(Case(plan=plan, running=(POD, POD), heard=hearing(Traffic())), **changes)


def hearing(traffic: Traffic | None) -> Heard:
    return some_signals(NOW, traffic=traffic)


def edited(**engine: Any) -> Plan:
    """The measured plan with another engine."""
    plan = a_plan(feedback=a_feedback())
    assert plan.engine is not None
    return replace(plan, measured=measured(plan), target=replace(plan.engine, **engine))


def with_objectives(**changes: Any) -> Plan:
    plan = a_plan(feedback=a_feedback())
    objectives = replace(plan.workload.objectives, **changes)
    return replace(plan, measured=measured(plan), workload=replace(plan.workload, objectives=objectives))


def unlike(**changes: Any) -> Plan:
    plan = a_plan(feedback=a_feedback())
    return replace(plan, measured=measured(plan, **changes))


def found(case: Case) -> Condition:
    condition = capacity_current(case)
    assert condition is not None
    return condition


def said(condition: Condition) -> dict[str, str]:
    return {"status": condition.status, "reason": condition.reason, "message": condition.message}


def test_what_runs_as_it_was_measured_is_current() -> None:
    assert (found(a_case()).status, found(a_case()).reason) == (Status.TRUE, Reason.CAPACITY_HOLDS)


DIFFERENCES: dict[str, tuple[Case, Reason, str]] = {
    "the model": (a_case(edited(model="/models/other")), Reason.ENGINE_DIFFERS, "model /models/other, measured with"),
    "the image": (a_case(edited(image="vllm:2")), Reason.ENGINE_DIFFERS, "image vllm:2, measured with"),
    "an argument": (a_case(edited(max_num_seqs=32)), Reason.ENGINE_DIFFERS, "--max-num-seqs 32, measured with"),
    "the accelerator": (
        a_case(edited(accelerator_resource="amd.com/gpu")), Reason.ENGINE_DIFFERS, "accelerator amd.com/gpu x 1",
    ),
    "a digest of other contents": (a_case(unlike(digest="sha256:x")), Reason.ENGINE_DIFFERS, "another one than was"),
    "an objective": (
        a_case(with_objectives(ttft=Objective(percentile="p95", limit=timedelta(seconds=9)))),
        Reason.OBJECTIVES_DIFFER, "ttft p95 9s, measured with p95",
    ),
    "an objective that is not stated any more": (
        a_case(with_objectives(tpot=None)), Reason.OBJECTIVES_DIFFER, "tpot is not stated, measured with",
    ),
    "an objective that was not": (
        a_case(unlike(objectives=(("ttft", "p95 1s500ms"),))),
        Reason.OBJECTIVES_DIFFER, "e2el p95 30s, measured without",
    ),
    "the image that a pod runs": (
        a_case(running=(POD, replace(POD, image="sha256:o"))), Reason.IMAGE_DIFFERS, "sha256:o, measured with sha256:i",
    ),
    "the accelerators of a node": (
        a_case(running=(POD, replace(POD, hardware=replace(L40S, product="T4")))),
        Reason.HARDWARE_DIFFERS, "accelerator T4, measured on L40S",
    ),
    "the driver of a node": (
        a_case(running=(replace(POD, hardware=replace(L40S, driver="570")),)),
        Reason.HARDWARE_DIFFERS, "driver 570, measured on 560.35",
    ),
    "longer prompts": (
        a_case(heard=hearing(Traffic(input_tokens=1201, output_tokens=100))),
        Reason.TOKENS_ABOVE_PLAN, "over 20% more input tokens than the 1000 measured",
    ),
    "longer answers": (
        a_case(heard=hearing(Traffic(input_tokens=100, output_tokens=241))),
        Reason.TOKENS_ABOVE_PLAN, "more output tokens than the 200 measured",
    ),
    "a colder cache": (
        a_case(heard=hearing(Traffic(prefix_hit_share=0.39))), Reason.CACHE_COLDER, "10 points less",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("case", "reason", "words"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_difference_is_named(case: Case, reason: Reason, words: str) -> None:
    condition = found(case)
    assert (condition.status, condition.reason) == (Status.FALSE, reason)
    assert words in condition.message
    assert "Run CapacityBenchmark l40s again" in condition.message


def test_several_differences_are_all_named_under_the_reason_of_the_first() -> None:
    case = a_case(edited(model="/models/other", max_num_seqs=32), running=(replace(POD, image="sha256:o"),))
    condition = found(case)
    assert condition.reason is Reason.ENGINE_DIFFERS
    for words in ("model /models/other", "--max-num-seqs 32", "sha256:o"):
        assert words in condition.message


SAME: dict[str, Case] = {
    "within 20 %": a_case(heard=hearing(Traffic(input_tokens=1199, output_tokens=239))),
    "within 10 points": a_case(heard=hearing(Traffic(prefix_hit_share=0.41))),
    "no pod at all": a_case(running=()),
    "an hour that says nothing yet": a_case(heard=hearing(None)),
    "an operator that has just started": a_case(heard=NoSignals(reason=Reason.METRICS_AWAITED, message="wait")),
    "no objectives in the plan": a_case(with_objectives(ttft=None, tpot=None, e2el=None, goodput_share=None)),
    "no image and no hardware measured": a_case(
        unlike(image_digest="", product="", driver=""), running=(RunningPod(hardware=Hardware()),)
    ),
    "no feedback": a_case(replace(unlike(), feedback=None), heard=None),
    "the same image from elsewhere": a_case(unlike(image_digest="mirror.local/x@sha256:i")),
}


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_what_does_not_differ_or_is_not_there_is_current(case: Case) -> None:
    assert found(case).status is Status.TRUE


NAMED = replace(unlike(), target=TargetRef(api_version="apps/v1", kind="Deployment", name="vllm"))
UNREADABLE: dict[str, tuple[Case, Reason, str]] = {
    "the engine of a named target": (a_case(NAMED), Reason.ENGINE_UNKNOWN, "named target"),
    "an engine that was not recorded": (a_case(unlike(digest="")), Reason.ENGINE_UNKNOWN, "does not tell which engine"),
    "a pod without its image": (
        a_case(running=(POD, replace(POD, image=""))), Reason.PODS_UNKNOWN, "which image it runs",
    ),
    "nodes that may not be read": (
        a_case(running=(replace(POD, hardware=None),)), Reason.NODES_UNREADABLE, "may not read the nodes",
    ),
    "a node without labels": (
        a_case(running=(POD, replace(POD, hardware=Hardware()))), Reason.NODES_UNLABELLED, "accelerator and the driver",
    ),
    "engines that are not heard": (
        a_case(heard=NoSignals(reason=Reason.METRICS_UNREACHABLE, message="source default is down")),
        Reason.TRAFFIC_UNKNOWN, "(MetricsUnreachable): MetricsAvailable says why",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("case", "reason", "words"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_unknown_with_its_reason(case: Case, reason: Reason, words: str) -> None:
    condition = found(case)
    assert (condition.status, condition.reason) == (Status.UNKNOWN, reason)
    assert words in condition.message


STANDING: dict[str, tuple[Case, Case]] = {
    "another image, and no pod": (DIFFERENCES["the image that a pod runs"][0], a_case(running=())),
    "another image, and a pod that does not say": (
        DIFFERENCES["the image that a pod runs"][0], a_case(running=(replace(POD, image=""),)),
    ),
    "another node, and nodes that are not read": (
        DIFFERENCES["the accelerators of a node"][0], a_case(running=(replace(POD, hardware=None),)),
    ),
    "longer prompts, and a quiet hour": (DIFFERENCES["longer prompts"][0], a_case(heard=hearing(None))),
    "longer prompts, and a restart": (DIFFERENCES["longer prompts"][0], SAME["an operator that has just started"]),
    "longer prompts, and silence": (DIFFERENCES["longer prompts"][0], UNREADABLE["engines that are not heard"][0]),
    "longer prompts that come down a little": (
        DIFFERENCES["longer prompts"][0], a_case(heard=hearing(Traffic(input_tokens=1101))),
    ),
    "a colder cache that warms a little": (
        DIFFERENCES["a colder cache"][0], a_case(heard=hearing(Traffic(prefix_hit_share=0.44))),
    ),
    "silence, and a restart": (
        UNREADABLE["engines that are not heard"][0], SAME["an operator that has just started"],
    ),
    "a pod that does not say, and no pod": (UNREADABLE["a pod without its image"][0], a_case(running=())),
    "shorter requests, and a quiet hour": (
        a_case(heard=hearing(Traffic(input_tokens=700, output_tokens=190))), a_case(heard=hearing(None)),
    ),
    "shorter requests, and a little longer ones": (
        a_case(heard=hearing(Traffic(input_tokens=700))), a_case(heard=hearing(Traffic(input_tokens=890))),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("first", "then"), STANDING.values(), ids=STANDING)
def test_what_was_said_stands_while_it_cannot_be_judged(first: Case, then: Case) -> None:
    before = found(first)
    assert before.reason is not Reason.CAPACITY_HOLDS
    assert found(replace(then, previous=said(before))) == before


ENDING: dict[str, tuple[Case, Case]] = {
    "pods that run what was measured": (DIFFERENCES["the image that a pod runs"][0], a_case()),
    "requests as they were": (
        DIFFERENCES["longer prompts"][0], a_case(heard=hearing(Traffic(input_tokens=1099, output_tokens=200))),
    ),
    "a cache as it was": (
        DIFFERENCES["a colder cache"][0], a_case(heard=hearing(Traffic(prefix_hit_share=0.46))),
    ),
    "an engine that is back": (DIFFERENCES["an argument"][0], a_case(running=())),
    "engines that are heard again": (UNREADABLE["engines that are not heard"][0], a_case(heard=hearing(None))),
}  # fmt: skip


@pytest.mark.parametrize(("first", "then"), ENDING.values(), ids=ENDING)
def test_it_ends_with_what_made_it(first: Case, then: Case) -> None:
    assert found(replace(then, previous=said(found(first)))).status is Status.TRUE


def test_a_difference_from_a_benchmark_ends_when_the_plan_states_its_capacity() -> None:
    before = found(DIFFERENCES["the image that a pod runs"][0])
    stated = replace(a_plan(feedback=a_feedback()), measured=None)
    condition = capacity_current(Case(plan=stated, previous=said(before)))
    assert condition is None or condition.status is Status.TRUE


def test_much_shorter_requests_are_said_and_are_no_fault() -> None:
    condition = found(a_case(heard=hearing(Traffic(input_tokens=790, output_tokens=200))))
    assert (condition.status, condition.reason) == (Status.TRUE, Reason.TOKENS_BELOW_PLAN)


def test_shorter_prompts_with_longer_answers_save_nothing() -> None:
    condition = found(a_case(heard=hearing(Traffic(input_tokens=500, output_tokens=230))))
    assert condition.reason is Reason.CAPACITY_HOLDS


STATED = TokenLengths(input=(("p50", 600), ("p95", 2400)), output=(("p50", 180), ("p95", 600)))


def stating(tokens: TokenLengths, traffic: Traffic, **changes: Any) -> Case:
    plan = a_plan(feedback=a_feedback())
    return Case(plan=replace(plan, workload=replace(plan.workload, tokens=tokens), **changes), heard=hearing(traffic))


def test_a_stated_capacity_is_judged_by_the_tokens_that_the_plan_states() -> None:
    # lognormal: 600 exp((ln 4 / 1.645)^2 / 2) = 856 tokens in
    longer = found(stating(STATED, Traffic(input_tokens=1050)))
    assert (longer.status, longer.reason) == (Status.FALSE, Reason.TOKENS_ABOVE_PLAN)
    assert "than the 856 planned" in longer.message
    assert found(stating(STATED, Traffic(input_tokens=1000))).status is Status.TRUE


@pytest.mark.parametrize(
    "case",
    [stating(TokenLengths(), Traffic(input_tokens=9999)), stating(STATED, Traffic(input_tokens=9999), feedback=None)],
    ids=["no tokens are stated", "nobody listens"],
)
def test_a_stated_capacity_that_cannot_be_compared_has_no_such_condition(case: Case) -> None:
    assert capacity_current(case) is None


@given(now=st.floats(900, 1400), later=st.lists(st.floats(900, 1400), max_size=20))
def test_a_mean_that_moves_around_one_limit_changes_the_condition_only_over_a_tenth(
    now: float, later: list[float]
) -> None:
    condition, at_flip, flips = found(a_case(heard=hearing(Traffic(input_tokens=now)))), now, 0
    for mean in later:
        new = found(a_case(heard=hearing(Traffic(input_tokens=mean)), previous=said(condition)))
        if new.status is not condition.status:
            flips += 1
            assert (mean > 1200) if new.status is Status.FALSE else (mean <= 1100)
            at_flip = mean
        condition = new
    assert flips == 0 or at_flip > 0


def test_digests_and_labels_are_read_as_they_are_written() -> None:
    assert digest_of("docker-pullable://vllm/vllm-openai@sha256:abc") == digest_of("sha256:abc") == "sha256:abc"
    amd = {"amd.com/gpu.product-name": "MI300X", "amd.com/gpu.driver-version": "6.8"}
    assert hardware_of(amd) == Hardware(product="MI300X", driver="6.8")
    nvidia = {"nvidia.com/gpu.product": "L40S", "nvidia.com/cuda.driver-version.full": "560.35"}
    assert hardware_of(nvidia) == L40S
    assert hardware_of({}) == Hardware()
