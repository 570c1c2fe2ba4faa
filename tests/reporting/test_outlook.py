"""The coming days: the document of the contract, moves and levels as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator

from servingplan.planning.plan import Profile
from servingplan.planning.target import TargetRef
from servingplan.reporting.difference import difference, difference_document, usual_changes
from servingplan.reporting.outlook import coming_days, levels, moves, outlook_document, usual
from support.foresight import a_foresight
from support.plans import a_plan, a_window
from support.signals import a_feedback

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/plan.schema.json").read_text())
DECEMBER = datetime(2026, 12, 1, tzinfo=ZoneInfo("Europe/Berlin"))


def days(plan, count=14, start=DECEMBER):
    return coming_days(plan, start, count)


def test_the_documents_first_entries_stand_at_from_and_are_sound():
    document = outlook_document(days(a_plan()))
    Draft202012Validator(SCHEMA).validate(document)
    assert document["from"] == "2026-12-01T00:00:00+01:00"
    assert document["to"] == "2026-12-15T00:00:00+01:00"
    assert document["required"][:2] == [
        {"time": "2026-11-30T23:00:00Z", "replicas": 2, "need": 1, "reserve": 1, "because": "base"},
        {"time": "2026-12-01T07:00:00Z", "replicas": 5, "need": 4, "reserve": 1, "because": "window working-day"},
    ]
    assert document["asked"][:2] == [
        {"time": "2026-11-30T23:00:00Z", "replicas": 2, "because": "base"},
        {"time": "2026-12-01T06:48:00Z", "replicas": 5, "because": "ready before window working-day"},
    ]


def test_planned_is_exactly_the_sum_of_its_parts():
    hours = outlook_document(
        days(a_plan(scale_down=a_plan().scale_down.__class__(step=1, every=timedelta(minutes=7))), 3)
    )
    parts = hours["gpuHours"]
    assert parts["planned"] == pytest.approx(parts["required"] + parts["leading"] + parts["trailing"], abs=1e-9)


def test_days_are_local_days_over_the_change_of_clocks():
    start = datetime(2026, 10, 24, tzinfo=ZoneInfo("Europe/Berlin"))
    found = days(a_plan(), 3, start)
    assert outlook_document(found)["to"] == "2026-10-27T00:00:00+01:00"
    assert found.end - found.start.astimezone(UTC) == timedelta(hours=73)


def test_the_steps_of_a_fall_are_one_move_and_alike_days_are_one_row():
    found = days(a_plan())
    rise, fall = usual(moves(found), found)
    assert (rise.first.before, rise.first.after, len(rise.dates)) == (2, 5, 10)
    assert rise.first.ready_by == datetime(2026, 12, 1, 7, tzinfo=UTC)
    assert (fall.first.before, fall.first.after, fall.first.ready_by) == (5, 2, None)
    assert fall.first.end - fall.first.start == timedelta(minutes=4)


def test_every_level_says_how_many_hours_it_holds():
    busy = next(level for level in levels(days(a_plan())) if level.source.name == "working-day")
    assert (busy.need, busy.reserve, busy.replicas, busy.time) == (4, 1, 5, timedelta(hours=120))
    assert sum((level.time for level in levels(days(a_plan()))), timedelta()) == timedelta(days=14)


def test_rates_of_a_profile_that_come_to_one_level_are_one_row():
    profile = Profile(rates=tuple(Decimal(1 + hour % 24) / 10 for hour in range(168)))
    (level,) = levels(days(a_plan(windows=(), profile=profile), 7))
    assert (level.slowest, level.fastest) == (Decimal("0.1"), Decimal("2.4"))


def test_gpus_that_nobody_stated_count_as_one_and_that_is_said():
    target = TargetRef(api_version="apps/v1", kind="Deployment", name="vllm")
    document = outlook_document(days(a_plan(target=target, gpus_per_replica=None), 1))
    assert document["gpuHours"]["gpusPerReplica"] == 1
    assert [problem["reason"] for problem in document["problems"]] == ["GPUsUnknown"]


def test_foresight_has_no_past_where_nobody_asks_a_prometheus_and_that_is_said():
    document = outlook_document(days(a_plan(feedback=a_feedback(foresight=a_foresight())), 1))
    (problem,) = document["problems"]
    assert (problem["path"], problem["reason"]) == ("spec.feedback.foresight", "PastUnknown")
    assert outlook_document(days(a_plan(feedback=a_feedback()), 1))["problems"] == []


def test_equal_plans_do_not_differ():
    found = difference(days(a_plan()), days(a_plan()))
    assert (found.required, found.asked, found.week) == ((), (), 0)


def test_two_hours_more_on_working_days_are_thirty_gpu_hours_a_week():
    found = difference(days(a_plan()), days(a_plan(windows=(a_window(end=time(22)),))))
    (row,) = usual_changes(found.required, found.new)
    assert (row.first.old, row.first.new, len(row.dates)) == (2, 5, 10)
    assert found.week == pytest.approx(30)
    document = {**outlook_document(found.new), "against": difference_document(found)}
    Draft202012Validator(SCHEMA).validate(document)
    assert document["against"]["gpuHoursPerWeek"]["difference"] == 30.0
