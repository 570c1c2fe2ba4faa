"""What is read of Jobs, runners and pools."""

from __future__ import annotations

import pytest

from servingplan.controller import evidence_seen as seen
from servingplan.planning.work import JobState


def a_job(*conditions, suspend=False, name="qwen3-0a1b2c3d-8"):
    wire = [{"type": type_, "status": "True", "message": message} for type_, message in conditions]
    return {"metadata": {"name": name}, "spec": {"suspend": suspend}, "status": {"conditions": wire}}


def a_runner(created="2026-12-01T07:00:00Z", restarts=0, **states):
    container = {"name": "runner", "restartCount": restarts, **states}
    return {"metadata": {"creationTimestamp": created}, "status": {"containerStatuses": [container]}}


def ended(code, message=None, reason="Error"):
    return {"terminated": {"exitCode": code, "reason": reason} | ({"message": message} if message else {})}


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (a_job(), JobState.RUNNING),
        (a_job(suspend=True), JobState.SUSPENDED),
        (a_job(("Complete", "")), JobState.DONE),
        (a_job(("SuccessCriteriaMet", "")), JobState.DONE),
        (a_job(("Failed", "Job was active longer than specified deadline")), JobState.FAILED),
        (a_job(("FailureTarget", "")), JobState.FAILED),
        (a_job(("Failed", ""), suspend=True), JobState.FAILED),
    ],
    ids=["runs", "suspended", "done", "about to be done", "failed", "about to fail", "suspended after it failed"],
)
def test_how_far_a_job_is(job, state):
    assert seen.job_state(job) is state


def test_a_job_that_is_suspended_says_so_in_its_spec_before_its_condition_says_so():
    job = a_job(("Suspended", "Job suspended"), suspend=False)
    assert seen.job_state(job) is JobState.RUNNING


@pytest.mark.parametrize(
    ("name", "piece"),
    [("qwen3-0a1b2c3d-8", 8), ("qwen3-ffffffff-8", None), ("qwen3-0a1b2c3d-x", None), ("other-0a1b2c3d-8", None)],
)
def test_which_piece_a_job_is_of_stands_in_its_name(name, piece):
    assert seen.piece_of(a_job(name=name), "qwen3", "0a1b2c3d") == piece


def test_a_runner_that_ended_well_hands_its_report_back():
    words = seen.last_words([a_runner(state=ended(0, '{"outcome": "Found"}', "Completed"))])
    assert (words.code, words.text) == (0, '{"outcome": "Found"}')


def test_a_runner_that_was_started_again_still_says_why():
    words = seen.last_words([a_runner(restarts=2, state={"running": {}}, lastState=ended(3, "cannot be reached\n"))])
    assert (words.restarts, words.code, words.text) == (2, 3, "cannot be reached")


def test_without_words_the_reason_has_to_do():
    assert seen.last_words([a_runner(state=ended(137, reason="OOMKilled"))]).text == "OOMKilled"


def test_a_runner_that_never_ended_said_nothing():
    assert seen.last_words([a_runner(state={"running": {}})]) is None
    assert seen.last_words([]) is None


def test_the_newest_pod_that_ended_counts():
    old = a_runner("2026-12-01T07:00:00Z", state=ended(1, "old"))
    new = a_runner("2026-12-01T08:00:00Z", state=ended(1, "new"))
    assert seen.last_words([new, old]).text == "new"


def a_pool(wanted, *, generation=2, observed=2, **status):
    return {
        "metadata": {"generation": generation},
        "spec": {"replicas": wanted},
        "status": {"observedGeneration": observed, **status},
    }


COMPLETE = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("pool", "ready"),
    [
        (a_pool(2, **COMPLETE), 2),
        (a_pool(2, **COMPLETE, observed=1), None),
        (a_pool(2, **(COMPLETE | {"availableReplicas": 1})), None),
        (a_pool(1, **COMPLETE), None),
        (a_pool(2), None),
    ],
    ids=["complete", "of an older spec", "one is missing", "one too many", "not looked at yet"],
)
def test_a_pool_is_ready_when_it_is_exactly_what_is_asked_for(pool, ready):
    assert seen.ready_replicas(pool) == ready
