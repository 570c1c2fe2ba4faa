"""CapacityBenchmarks: what resolves, and everything that is wrong with one at once."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from servingplan.api.kinds import CAPACITY_BENCHMARK
from servingplan.api.referenced import RunnerDefaults, referenced_plans
from servingplan.api.resolve import resolve
from servingplan.api.resolve_benchmark import resolve_benchmark
from servingplan.api.validation import as_kept, form_problems
from servingplan.errors import InputError
from servingplan.planning.benchmark import Endpoint, TrialPool
from servingplan.planning.plan import Objective
from servingplan.planning.runner import ClaimFile, ConfigMapFile
from servingplan.planning.target import SecretKey
from support.evidence import RUNNER, VIOLATIONS, a_benchmark, benchmark_document, service_benchmark
from support.specs import ENGINE, document, targeting

DEFAULTS = RunnerDefaults(image=RUNNER)
PLANS = {"support-chat": document()}


def problems(benchmark, plans=PLANS, defaults=DEFAULTS):
    with pytest.raises(InputError) as found:
        resolve_benchmark(benchmark, plans, defaults)
    return [(problem.path, problem.reason) for problem in found.value.problems]


@pytest.mark.parametrize("violation", VIOLATIONS, ids=lambda violation: violation.id)
def test_a_benchmark_that_breaks_one_rule_has_that_problem_alone(violation):
    found = form_problems(as_kept(violation.plan, CAPACITY_BENCHMARK), CAPACITY_BENCHMARK)
    assert [(problem.path, problem.message) for problem in found] == [(violation.path, violation.rule.message)]


def test_a_trial_pool_has_the_engine_and_the_objectives_of_its_plan():
    found = a_benchmark(poolSizes=[8, 1])
    plan = resolve(document(), {})
    assert found.measured == TrialPool(plan="support-chat", engine=plan.engine, sizes=(1, 8))
    assert found.objectives == plan.workload.objectives


def test_what_is_left_out_has_its_default():
    found = a_benchmark()
    assert found.prompts == ConfigMapFile(name="prompts", key="prompts.jsonl")
    assert (found.cv, found.prefix_hit_share, found.chat, found.effort) == (Decimal(1), Decimal(0), False, "Standard")
    assert (found.start, found.longest, found.suspend, found.quiet_hours_of) == (None, None, False, None)
    assert (found.runner.image, found.runner.claim) == (RUNNER, None)


def test_everything_that_can_be_stated_is_read():
    found = a_benchmark(
        prompts={"persistentVolumeClaim": {"claimName": "sets", "path": "chat/prompts.jsonl"}},
        objectives={"ttft": {"p95": "900ms"}},
        quietHoursOf={"name": "support-chat"},
        cv=1.5,
        start=2.5,
        longest="90m",
        runner={"image": "mine:1", "volume": {"persistentVolumeClaim": {"claimName": "work"}}},
    )
    assert found.prompts == ClaimFile(claim_name="sets", path="chat/prompts.jsonl")
    assert found.objectives.ttft == Objective(percentile="p95", limit=timedelta(milliseconds=900))
    assert found.objectives.goodput_share == Decimal("0.95")
    assert (found.cv, found.start, found.longest) == (Decimal("1.5"), Decimal("2.5"), timedelta(minutes=90))
    assert (found.quiet_hours_of, found.runner.image, found.runner.claim) == ("support-chat", "mine:1", "work")


def test_what_serves_is_measured_where_it_is_with_the_objectives_of_the_plan_whose_quiet_hours_are_kept():
    service = {"name": "vllm", "port": 80, "replicas": 2, "apiKeySecretRef": {"name": "vllm-key", "key": "token"}}
    found = resolve_benchmark(service_benchmark(service=service), PLANS, DEFAULTS)
    key = SecretKey(name="vllm-key", key="token")
    assert found.measured == Endpoint(name="vllm", port=80, replicas=2, model=None, tokenizer=None, api_key=key)
    assert found.objectives == resolve(document(), {}).workload.objectives


def test_a_plan_whose_capacity_is_missing_and_whose_calendar_is_gone_can_be_measured():
    plan = document(capacity=None, schedule={"timeZone": "Europe/Nowhere"})
    assert isinstance(a_benchmark(plan=plan).measured, TrialPool)


@pytest.mark.parametrize(
    ("benchmark", "plans", "defaults", "expected"),
    [
        (benchmark_document(), {}, DEFAULTS, [("spec.planRef.name", "PlanNotFound")]),
        (service_benchmark(), {}, DEFAULTS, [("spec.quietHoursOf.name", "PlanNotFound")]),
        (
            benchmark_document(),
            {"support-chat": document(**targeting())},
            DEFAULTS,
            [("spec.planRef.name", "NoEngine")],
        ),
        (
            benchmark_document(),
            {"support-chat": document(engine={**ENGINE, "maxNumSeqs": 0, "extraArgs": ["--port=1"]})},
            DEFAULTS,
            [("spec.planRef.name", "OutOfRange")],
        ),
        (
            benchmark_document(),
            {"support-chat": document(engine={**ENGINE, "extraArgs": ["--port=1"]})},
            DEFAULTS,
            [("spec.planRef.name", "OwnedArgument")],
        ),
        (benchmark_document(), {"support-chat": document(workload=None)}, DEFAULTS, [("spec.objectives", "Required")]),
        (benchmark_document(), PLANS, RunnerDefaults(), [("spec.runner.image", "NoRunnerImage")]),
        (benchmark_document(), PLANS, RunnerDefaults(image=""), [("spec.runner.image", "NoRunnerImage")]),
        (
            benchmark_document(runner={"resources": {"claims": {}}}),
            {},
            RunnerDefaults(),
            [
                ("spec.planRef.name", "PlanNotFound"),
                ("spec.runner.resources.claims", "UnknownField"),
                ("spec.runner.image", "NoRunnerImage"),
            ],
        ),
        (
            benchmark_document(cv=0, effort="quick", prompts={"configMap": {"name": "p"}}, pool=1),
            PLANS,
            DEFAULTS,
            [
                ("spec.prompts.configMap.key", "Required"),
                ("spec.cv", "OutOfRange"),
                ("spec.effort", "NotSupported"),
                ("spec.pool", "UnknownField"),
            ],
        ),
    ],
    ids=[
        "no-plan",
        "no-plan-to-keep-quiet-hours-of",
        "no-engine",
        "an-engine-with-a-problem-of-form",
        "an-engine-with-an-owned-argument",
        "no-objectives",
        "no-image",
        "an-empty-image",
        "three-at-once",
        "four-of-form",
    ],
)
def test_what_cannot_be_measured_says_why_all_at_once(benchmark, plans, defaults, expected):
    assert problems(benchmark, plans, defaults) == expected


def test_the_plans_that_a_malformed_benchmark_names_are_known_too():
    assert referenced_plans(service_benchmark(planRef={"name": "other"}, cv="x")) == {"support-chat", "other"}
    assert referenced_plans({"spec": {"planRef": 3, "quietHoursOf": {"name": 4}}}) == frozenset()
    assert referenced_plans({"spec": None}) == frozenset()
