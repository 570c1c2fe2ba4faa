"""Conditions read back from a status."""

from __future__ import annotations

import pytest

from servingplan.rendering.stated import stated_conditions


@pytest.mark.parametrize(
    ("type_", "status", "good"),
    [
        ("Ready", "True", True),
        ("Ready", "False", False),
        ("Ready", "Unknown", False),
        ("ScalingLimited", "False", True),
        ("Reconciling", "True", False),
        ("Stalled", "True", False),
        ("Stalled", "Unknown", False),
    ],
)
def test_a_condition_is_good_when_true_except_where_kubernetes_has_it_the_other_way_round(type_, status, good):
    (found,) = stated_conditions({"conditions": [{"type": type_, "status": status}]})
    assert found.good is good


def test_a_status_without_conditions_states_none():
    assert stated_conditions({}) == ()
