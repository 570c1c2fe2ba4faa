"""What a demo comes to, in figures and in words."""

from __future__ import annotations

import json

import pytest

from demo.days import CLOCK, snapshot, story_of, watched
from servingplan.demo.narration import caption
from servingplan.demo.operator_process import count_writes
from servingplan.demo.places import Access
from servingplan.demo.record import Record
from servingplan.demo.summary import in_words, next_steps, summary, writes_by_kind
from support.specs import scheduled

METRICS = """
# HELP servingplan_api_requests_total Requests to the API server.
servingplan_api_requests_total{code="200",resource="deployments.apps/scale",verb="patch"} 4.0
servingplan_api_requests_total{code="409",resource="deployments.apps/scale",verb="patch"} 2.0
servingplan_api_requests_total{code="200",resource="servingplans.servingplan.dev/status",verb="patch"} 9.0
servingplan_api_requests_total{code="201",resource="events.events.k8s.io",verb="create"} 3.0
servingplan_api_requests_total{code="201",resource="deployments.apps",verb="patch"} 1.0
servingplan_api_requests_total{code="200",resource="pods",verb="list"} 70.0
servingplan_api_requests_total{code="200",resource="pods",verb="watch"} 1.0
"""


def document(record):
    return summary(record, factor=60, writes=count_writes(METRICS))


def test_the_summary_holds_ramp_fall_hours_and_writes():
    found = document(watched(ready_at="07:57"))
    assert found["ramp"] == {
        "time": "2026-11-30T07:00:00Z",
        "from": 2,
        "to": 5,
        "leadTime": "12m",
        "askedAt": "2026-11-30T06:48:00Z",
        "readyAt": "2026-11-30T06:57:00Z",
        "marginMinutes": 3.0,
        "onTime": True,
    }
    assert (found["fall"]["from"], found["fall"]["to"], found["fall"]["readyAtEnd"]) == (5, 2, 2)
    month, day = found["gpuHours"]["month"], found["gpuHours"]["day"]
    assert (month["required"], month["flatPeak"]) == (2252.0, 3650.0)
    assert (day["required"], day["leading"], day["trailing"]) == (84.0, 0.6, 0.1)
    assert found["restart"] is None
    json.dumps(found)


def test_accepted_writes_are_counted_by_what_they_are_about():
    assert writes_by_kind(count_writes(METRICS)) == {
        "replicas": 4,
        "status": 9,
        "events": 3,
        "objects": 1,
        "total": 17,
    }


def test_a_missed_ramp_is_said():
    late, never = watched(ready_at="08:04"), watched(ready_at=None)
    assert "4.0 min AFTER the ramp at 08:00" in "\n".join(in_words(late, document(late)))
    assert "MISSED" in "\n".join(in_words(never, document(never)))
    assert document(never)["ramp"]["readyAt"] is None


def test_a_plan_that_never_falls_has_no_fall():
    grows = [{"name": "launch", "start": "2026-12-01T07:00", "end": "2027-12-01T07:00", "requestsPerSecond": 30}]
    record = watched(story=story_of(**scheduled(windows=[], overrides=grows)), until="07:20")
    assert document(record)["fall"] is None
    assert not any("fall" in line for line in in_words(record, document(record)))


def test_every_line_fits_80_columns():
    record = watched()
    record.restarts, record.restart_writes = 1, {"servingplans.servingplan.dev/status": 1}
    assert max(map(len, in_words(record, document(record)))) <= 80


def test_the_next_steps_name_the_cluster_where_it_still_runs():
    record = watched()
    steps = next_steps(record, Access(setup="export KUBECONFIG=/x", kubectl="kubectl"))
    assert [command for command, _ in steps][:2] == ["export KUBECONFIG=/x", "kubectl -n llm get splan"]
    assert "--keep" in next_steps(record, None)[0][0]


@pytest.mark.parametrize(
    ("until", "words"),
    [
        pytest.param("07:40", "2 replicas are enough until 08:00", id="before"),
        pytest.param("07:52", "The lead: 5 are asked for", id="lead"),
        pytest.param("07:59", "All 5 are ready at 07:57", id="margin"),
        pytest.param("08:10", "found all 5 replicas ready", id="day"),
        pytest.param("20:02", "The fall: never early", id="fall"),
        pytest.param("20:20", "The fall is over: 2 replicas", id="night"),
    ],
)
def test_the_caption_says_what_to_look_at(until, words):
    assert words in caption(watched(until=until))


def test_the_caption_names_what_is_enough_before_it_is_ready_and_counts_one_as_one():
    record = Record(story_of(reserve={"replicas": 0}))
    record.take(snapshot("07:15", asked=0, ready=0, starting=1), CLOCK)
    assert caption(record).startswith("1 replica is enough until 08:00, when 4 are required.")
    record.take(snapshot("07:49", asked=4, ready=1, starting=3), CLOCK)
    assert "1 is ready; the ramp is at 08:00" in caption(record)
