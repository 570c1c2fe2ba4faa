"""Explanations: the operator's decision at an instant, where replicas followed the schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from servingplan.reporting.explain import explain, explanation_document
from servingplan.reporting.hours import course
from support.foresight import a_foresight
from support.plans import a_plan
from support.signals import a_feedback


@pytest.mark.parametrize(
    ("hour", "minute", "required", "desired", "because"),
    [
        (6, 47, 2, 2, "base"),
        (6, 48, 2, 5, "ready before window working-day"),
        (7, 0, 5, 5, "window working-day"),
        (19, 0, 2, 4, "window working-day ends"),
        (19, 2, 2, 3, "window working-day ends"),
        (19, 4, 2, 2, "window working-day ends"),
    ],
    ids=["before the lead", "the lead begins", "the window begins", "first step", "second step", "last step"],
)
def test_the_decision_follows_the_day(hour, minute, required, desired, because):
    document = explanation_document(explain(a_plan(), datetime(2026, 12, 1, hour, minute, tzinfo=UTC)))
    assert (document["required"], document["desired"], document["because"]) == (required, desired, because)
    assert document["trail"][0]["name"] == "demand"


def test_every_minute_of_a_day_decides_what_the_plan_shows():
    start = datetime(2026, 12, 1, tzinfo=UTC)
    asked = course(a_plan(), start, start + timedelta(days=1)).asked_function
    for minute in [*range(400, 425), *range(1135, 1150)]:
        at = start + timedelta(minutes=minute)
        assert explain(a_plan(), at).decision.desired == asked.at(at), at


def test_a_suspended_plan_says_what_it_would_do():
    document = explanation_document(explain(a_plan(suspend=True), datetime(2026, 12, 1, 7, tzinfo=UTC)))
    assert document["suspended"] is True
    assert document["trail"][-1]["reason"] == "Suspended"


def test_foresight_says_that_a_file_has_no_past():
    plan = a_plan(feedback=a_feedback(foresight=a_foresight()))
    trail = explanation_document(explain(plan, datetime(2026, 12, 1, 7, tzinfo=UTC)))["trail"]
    (extra,) = (step for step in trail if step["name"] == "extra")
    assert (extra["value"], extra["reason"]) == ("0", "FeedbackOff")
    assert extra["message"] == "no live signals and no past to look ahead from; the schedule alone"
