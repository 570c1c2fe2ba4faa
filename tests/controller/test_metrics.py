"""Metrics: their names, and that a plan's go with the plan."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from servingplan.controller.metrics import OperatorMetrics, PlanNumbers

NAME = re.compile(
    r"servingplan_[a-z_]+?(_seconds|_replicas|_condition|_status|_info)?(_total|_bucket|_sum|_count|_created)?"
)
AT = datetime(2026, 12, 1, 6, 48, tzinfo=UTC)


def numbers(**changes: object) -> PlanNumbers:
    usual = {
        "desired": 5,
        "required": 4,
        "current": 5,
        "ready": 3,
        "reserve": 1,
        "next_change_at": AT,
        "ramp_margin_s": 90.0,
        "learned_at": AT,
        "learned_days": 13.5,
    }
    return PlanNumbers(**{**usual, **changes})


@pytest.fixture
def metrics() -> OperatorMetrics:
    made = OperatorMetrics(version="0.1.0")
    made.plan_reconciled("llm", "chat", numbers())
    made.conditions("llm", "chat", {"Ready": "True", "ReserveIntact": "Unknown"})
    made.scaled("llm", "chat", up=True)
    return made


def value(metrics: OperatorMetrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


CHAT = {"namespace": "llm", "name": "chat"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("servingplan_desired_replicas", 5),
        ("servingplan_required_replicas", 4),
        ("servingplan_current_replicas", 5),
        ("servingplan_ready_replicas", 3),
        ("servingplan_reserve_replicas", 1),
        ("servingplan_next_change_timestamp_seconds", AT.timestamp()),
        ("servingplan_ramp_margin_seconds", 90),
        ("servingplan_foresight_learned_timestamp_seconds", AT.timestamp()),
        ("servingplan_foresight_learned_days", 13.5),
    ],
)
def test_a_plan_shows_its_numbers(metrics: OperatorMetrics, name: str, expected: float) -> None:
    assert value(metrics, name, **CHAT) == expected


def test_what_no_longer_is_goes(metrics: OperatorMetrics) -> None:
    gone = dict.fromkeys(("next_change_at", "ramp_margin_s", "learned_at", "learned_days"))
    metrics.plan_reconciled("llm", "chat", numbers(**gone))
    for name in (
        "next_change_timestamp_seconds", "ramp_margin_seconds", "foresight_learned_timestamp_seconds",
        "foresight_learned_days",
    ):  # fmt: skip
        assert value(metrics, f"servingplan_{name}", **CHAT) is None


def test_a_condition_is_one_for_its_status_and_goes_when_the_plan_no_longer_has_it(metrics: OperatorMetrics) -> None:
    def condition(kind: str, status: str) -> float | None:
        return value(metrics, "servingplan_plan_condition", **CHAT, type=kind, status=status)

    assert [condition("Ready", status) for status in ("True", "False", "Unknown")] == [1, 0, 0]
    metrics.conditions("llm", "chat", {"Ready": "False"})
    assert [condition("Ready", status) for status in ("True", "False", "Unknown")] == [0, 1, 0]
    assert condition("ReserveIntact", "Unknown") is None


def test_nothing_of_a_deleted_plan_is_left_and_all_of_the_others(metrics: OperatorMetrics) -> None:
    metrics.plan_reconciled("llm", "other", numbers())
    metrics.forget_plan("llm", "chat")
    metrics.forget_plan("llm", "never was")
    text = metrics.render().decode()
    assert 'name="chat"' not in text
    assert 'servingplan_desired_replicas{name="other",namespace="llm"} 5.0' in text


def test_requests_errors_and_leadership_are_counted(metrics: OperatorMetrics) -> None:
    metrics.request_done(verb="patch", resource="deployments.apps/scale", code="200", seconds=0.01)
    metrics.reconcile_failed("Unreachable")
    metrics.reconcile_took(0.02)
    metrics.leading(leads=True)
    labels = {"verb": "patch", "resource": "deployments.apps/scale", "code": "200"}
    assert value(metrics, "servingplan_api_requests_total", **labels) == 1
    assert value(metrics, "servingplan_reconcile_errors_total", reason="Unreachable") == 1
    assert value(metrics, "servingplan_reconcile_duration_seconds_count") == 1
    assert value(metrics, "servingplan_leader_status") == 1
    assert value(metrics, "servingplan_scale_operations_total", **CHAT, direction="up") == 1
    assert 'servingplan_build_info{python="' in metrics.render().decode()


def test_every_name_follows_the_convention_and_has_a_help_text(metrics: OperatorMetrics) -> None:
    for family in metrics.registry.collect():
        assert family.documentation.endswith("."), family.name
        for sample in family.samples:
            assert NAME.fullmatch(sample.name), sample.name
