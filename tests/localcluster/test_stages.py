"""The stages of simulated pods: which pods a rule is for, and what it may not disturb."""

from __future__ import annotations

import pytest

from servingplan.localcluster.stages import (
    NODE_STOPPED,
    READY_AT,
    RULE_LABEL,
    Span,
    defaults,
    rules,
    termination,
    timetable,
)

MINUTE = Span(at_least=60, at_most=90.5)
NOTHING = Span(at_least=0, at_most=0)


def keys(stage):
    return [condition["key"] for condition in stage["spec"]["selector"]["matchExpressions"]]


def test_a_rule_with_a_selector_wins_over_the_one_without():
    chosen = timetable(pull=NOTHING, load=MINUTE, selector={"app": "chat"})
    rest = timetable(pull=NOTHING, load=NOTHING)
    assert chosen["spec"]["selector"]["matchLabels"] == {"app": "chat"}
    assert chosen["spec"]["weight"] > rest["spec"]["weight"] == 0
    assert "matchLabels" not in rest["spec"]["selector"]


def test_a_rule_that_is_set_again_replaces_itself_and_no_other():
    first = timetable(pull=NOTHING, load=MINUTE, selector={"app": "chat", "tier": "a"})
    again = timetable(pull=NOTHING, load=NOTHING, selector={"tier": "a", "app": "chat"})
    other = timetable(pull=NOTHING, load=MINUTE, selector={"app": "batch"})
    assert first["metadata"]["name"] == again["metadata"]["name"] != other["metadata"]["name"]


def test_only_rules_with_a_selector_are_taken_back():
    selected = termination(delay=MINUTE, selector={"app": "chat"})
    assert selected["metadata"]["labels"] == {RULE_LABEL: "selected"}
    assert all("labels" not in rule["metadata"] for rule in rules())


def test_both_bounds_of_a_span_can_be_drawn():
    (metadata, _) = timetable(pull=NOTHING, load=MINUTE)["spec"]["next"]["patches"]
    assert "randInt 0 1 " in metadata["template"]
    assert "randInt 60000 90501 " in metadata["template"]
    assert READY_AT in metadata["template"]


def test_no_pod_of_a_stopped_node_moves_on():
    pod_stages = [stage for stage in defaults() if stage["spec"]["resourceRef"]["kind"] == "Pod"]
    moving = [stage for stage in pod_stages if stage["metadata"]["name"] != "pod-hold"]
    assert len(moving) == len(pod_stages) - 1
    assert all(any(NODE_STOPPED in key for key in keys(stage)) for stage in moving if stage["spec"]["next"])


def test_stage_names_are_unique():
    names = [stage["metadata"]["name"] for stage in defaults()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("at_least", "at_most"), [(-1, 2), (3, 2)])
def test_a_span_that_is_none_is_refused(at_least, at_most):
    with pytest.raises(ValueError, match="at_least <= at_most"):
        Span(at_least=at_least, at_most=at_most)
