"""Every file in examples/ resolves, without a warning, and is what its comments say."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest

from servingplan.api.documents import read_plans
from servingplan.api.referenced import RunnerDefaults
from servingplan.api.resolve import resolve
from servingplan.api.resolve_benchmark import resolve_benchmark
from servingplan.api.resolve_evaluation import resolve_evaluation
from servingplan.api.yaml_reader import read_yaml
from servingplan.planning.plan import Plan
from servingplan.planning.sizing import need
from support.specs import EXAMPLES, document

FILES = sorted(EXAMPLES.glob("*.yaml"))


def read(file: Path) -> tuple[Plan, dict]:
    (plan,) = read_plans([str(file)], standard_input=io.StringIO())
    return resolve(plan.document.body, plan.references), dict(plan.document.body["spec"])


def test_there_are_examples():
    assert {file.stem for file in FILES} >= {
        "worked-example",
        "target-ref",
        "calendar-and-profile",
        "hpa-floor",
        "overrides",
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_resolves_without_a_warning(file: Path):
    plan, _ = read(file)
    assert plan.warnings == ()
    assert plan.namespace == "llm"


def test_the_example_of_a_benchmark_measures_the_worked_example():
    ((_, benchmark),) = read_yaml((EXAMPLES / "evidence" / "capacity-benchmark.yaml").read_text())
    plan = {"support-chat": document()}
    found = resolve_benchmark(benchmark, plan, RunnerDefaults(image="registry.local/servingplan-runner:0.1.0"))
    assert found.measured.sizes == (1, 4)
    assert found.measured.engine == read(EXAMPLES / "worked-example.yaml")[0].engine
    assert found.namespace == "llm"


def test_the_example_of_an_evaluation_compares_the_worked_example_with_what_serves():
    ((_, evaluation),) = read_yaml((EXAMPLES / "evidence" / "model-evaluation.yaml").read_text())
    runner = RunnerDefaults(image="registry.local/servingplan-runner:0.1.0")
    found = resolve_evaluation(evaluation, {"support-chat": document()}, runner)
    assert found.variant == read(EXAMPLES / "worked-example.yaml")[0].engine
    assert (found.baseline.name, found.margin) == ("support-chat", Decimal("0.02"))


def test_all_examples_fit_into_one_cluster():
    plans = read_plans([str(EXAMPLES)], standard_input=io.StringIO())
    assert len({plan.document.name for plan in plans}) == len(FILES)


def test_the_worked_example_needs_five_on_working_days_and_two_otherwise():
    plan, _ = read(EXAMPLES / "worked-example.yaml")
    totals = [need(Decimal(rate), plan.capacity, 8).replicas + plan.reserve.replicas for rate in (18, 2)]
    assert totals == [5, 2]


def test_the_calendars_hold_the_dates_that_the_comments_name():
    plan, _ = read(EXAMPLES / "calendar-and-profile.yaml")
    assert [len(calendar.dates) for calendar in plan.calendars] == [5 * 17 + 1, 4]
    assert plan.profile is not None
    assert len(plan.profile.rates) == 168
