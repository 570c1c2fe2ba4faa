"""The rules beyond types, each broken alone; e2e/test_crd.py sends the same plans to a real API server."""

from __future__ import annotations

import pytest

from servingplan.api import rules
from servingplan.api.schema import plan_schema, walk
from servingplan.api.validation import as_kept, form_problems
from support.specs import document
from support.violations import VIOLATIONS, Violation

TRANSITIONS = {rules.TARGET_FORM_STAYS, rules.TARGET_REF_STAYS}


@pytest.mark.parametrize("violation", VIOLATIONS, ids=lambda violation: violation.id)
def test_a_plan_that_breaks_one_rule_has_that_problem_alone(violation: Violation):
    problems = form_problems(as_kept(violation.plan))
    assert [(problem.path, problem.reason, problem.message) for problem in problems] == [
        (violation.path, violation.rule.reason, violation.rule.message)
    ]


def test_every_rule_has_a_plan_that_breaks_it():
    assert {violation.rule.cel for violation in VIOLATIONS} == set(rules.RULES) - {rule.cel for rule in TRANSITIONS}


def test_every_rule_stands_in_the_schema():
    def entries(schema):
        yield from schema.get("x-kubernetes-validations", ())
        for child in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
            yield from entries(child)

    assert {entry["rule"] for entry in entries(plan_schema())} == set(rules.RULES)


def test_the_worked_example_keeps_every_rule():
    assert form_problems(as_kept(document())) == ()


def test_a_rule_on_a_malformed_value_is_skipped_and_the_value_is_the_problem():
    problems = form_problems(as_kept(document(bounds={"minReplicas": "one", "maxReplicas": 8})))
    assert [(problem.path, problem.reason) for problem in problems] == [("spec.bounds.minReplicas", "WrongType")]


def test_the_walk_names_entries_of_lists_by_their_index():
    paths = [path for path, _, _ in walk(document(), plan_schema())]
    assert "spec.schedule.windows[0].days[4]" in paths
