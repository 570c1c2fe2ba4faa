"""What is found in ScaledObjects: the instants, the reasons, and what is fine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from servingplan.errors import InputError
from servingplan.migrating.lint import lint
from servingplan.migrating.scaled_object import scaled_object
from support.keda import WORKING_DAY, YEAR, a_cron, a_manifest

PROMETHEUS = {"type": "prometheus", "metadata": {"query": "up"}}


def linted(*triggers, start_time=None, annotations=None, **spec):
    manifest = a_manifest(*triggers, **spec)
    manifest["metadata"]["annotations"] = annotations
    found, refused = scaled_object(manifest, "llm", "vllm")
    return lint(found, refused, *YEAR, start_time)


def problems(one):
    return [finding.problem.reason for finding in one.findings if not finding.note]


def notes(one):
    return [finding.problem.reason for finding in one.findings if finding.note]


def finding(one, reason):
    (found,) = [finding for finding in one.findings if finding.problem.reason == reason]
    return found


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def instants(found):
    return [(span.start, span.end) for span in found.spans]


def test_a_trigger_that_does_what_it_says_has_no_problem():
    one = linted()
    assert problems(one) == []
    assert notes(one) == ["NoLead", "FallsLater"]


def test_an_end_on_every_day_keeps_the_weekend_up():
    one = linted(a_cron("0 8 * * 1-5", "0 20 * * *"))
    assert problems(one) == ["PhantomHours"]
    found = finding(one, "PhantomHours")
    assert len(found.spans) == 52
    assert instants(found)[0] == (utc("2026-12-04T19:00"), utc("2026-12-06T19:00"))
    assert found.problem.path == "spec.triggers[0].metadata.end"


def test_a_night_that_ends_on_weekdays_alone_holds_over_the_weekend():
    found = finding(linted(a_cron("0 22 * * 1-5", "0 6 * * 1-5")), "PhantomHours")
    assert instants(found)[0] == (utc("2026-12-05T05:00"), utc("2026-12-07T05:00"))


def test_a_window_over_the_week_is_meant_to_last_so_long():
    assert problems(linted(a_cron("0 8 * * 1", "0 20 * * 5"))) == []


def test_a_night_is_lost_where_its_end_falls_into_the_hour_that_the_change_leaves_out():
    one = linted(a_cron("0 22 * * *", "30 2 * * *"))
    assert "LostAtClockChange" in problems(one)
    assert (utc("2027-03-27T21:00"), utc("2027-03-28T01:00")) in instants(finding(one, "LostAtClockChange"))


def test_a_window_lasts_26_hours_where_its_start_falls_into_the_hour_that_the_change_leaves_out():
    one = linted(a_cron("30 2 * * *", "0 6 * * *"))
    found = finding(one, "HeldAtClockChange")
    assert instants(found)[0] == (utc("2027-03-27T05:00"), utc("2027-03-28T01:00"))
    assert "26.5 h" in found.problem.message


def test_a_clock_change_in_a_weekend_that_is_up_anyway_is_no_finding_of_its_own():
    assert problems(linted(a_cron("0 8 * * 1-5", "0 20 * * *"))) == ["PhantomHours"]


def test_a_second_start_closes_the_window_until_it_fires():
    one = linted(a_cron("0 8,10 * * 1-5", "0 20 * * 1-5"))
    assert problems(one) == ["LostHours"]
    assert instants(finding(one, "LostHours"))[0] == (utc("2026-12-01T07:00"), utc("2026-12-01T09:00"))


@pytest.mark.parametrize(
    ("triggers", "spec", "reason"),
    [
        ([a_cron("0 8 * * *", "00 8 * * *")], {}, "AlwaysActive"),
        ([a_cron("0 8 * * *", "0 8 * * *")], {}, "StartEqualsEnd"),
        ([a_cron("0 8 30 2 *", "0 20 * * *")], {}, "NeverStarts"),
        ([a_cron("0 8 * * *", "0 20 30 2 *")], {}, "NeverActive"),
        ([a_cron("0 8 * * 1-5", "0 20 * * 1-5", 9)], {}, "AboveMaximum"),
        ([a_cron("0 8 * * 1-5", "0 20 * * 1-5", 2)], {}, "BelowMinimum"),
        ([a_cron("0 8 * * 8", "0 20 * * 1-5")], {}, "InvalidCron"),
        ([a_cron("0 8 * * 1", "0 20 * * 1", zone="Europe/Bonn")], {}, "UnknownTimeZone"),
        ([a_cron("0 8 * * 1", "0 20 * * 1", "five")], {}, "InvalidReplicas"),
        ([WORKING_DAY, a_cron("0 9 * * 1-5", "0 12 * * 1-5", 4)], {}, "NeverDecides"),
        (
            [a_cron("0 8 * * 1-5", "0 20 * * 1-5", 20), a_cron("0 9 * * 1-5", "0 12 * * 1-5", 21)],
            {"maxReplicaCount": 30},
            "WithinTolerance",
        ),
        ([WORKING_DAY], {"advanced": {"scalingModifiers": {"formula": "a + b"}}}, "FormulaDecides"),
        ([PROMETHEUS], {}, "NoCron"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(triggers, spec, reason):
    assert reason in problems(linted(*triggers, **spec))


@pytest.mark.parametrize(
    ("triggers", "spec", "reason", "said"),
    [
        ([WORKING_DAY], {"minReplicaCount": 0}, "ZeroOutside", "from 5m (cooldownPeriod)"),
        ([WORKING_DAY], {"idleReplicaCount": 0, "cooldownPeriod": 60}, "ZeroOutside", "from 1m (cooldownPeriod)"),
        ([WORKING_DAY], {"cooldownPeriod": 60}, "CooldownWithoutEffect", "falls come 5m after an end"),
        ([WORKING_DAY, PROMETHEUS], {}, "NoFallback", "while prometheus cannot be asked"),
        (
            [WORKING_DAY, PROMETHEUS],
            {"fallback": {"replicas": 4, "failureThreshold": 3}},
            "FallbackOutside",
            "4 replicas run outside of windows",
        ),
        (
            [WORKING_DAY, a_cron("0 18 * * 1-5", "0 22 * * 1-5", 3)],
            {},
            "Overlaps",
            "first Tue 1 Dec 18:00 CET to Tue 1 Dec 20:00 CET",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_good_to_know_is_a_note(triggers, spec, reason, said):
    one = linted(*triggers, **spec)
    assert problems(one) == []
    assert said in next(f.problem.message for f in one.findings if f.problem.reason == reason)


def test_a_pause_is_a_problem():
    assert "Paused" in problems(linted(annotations={"autoscaling.keda.sh/paused": "true"}))
    assert problems(linted(annotations={"autoscaling.keda.sh/paused": "false"})) == []


def test_with_a_start_time_it_says_when_the_replicas_are_ready():
    one = linted(start_time=timedelta(minutes=12))
    assert problems(one) == ["NoLead"]
    assert "ready on Wed 2 Dec 08:12 CET" in finding(one, "NoLead").problem.message


@pytest.mark.parametrize("broken", [{}, {"spec": {}}, {"spec": {"scaleTargetRef": {"name": "a"}, "triggers": "x"}}])
def test_what_is_no_scaled_object_is_refused(broken):
    with pytest.raises(InputError, match="InvalidScaledObject"):
        scaled_object(broken, "llm", "vllm")
