"""What a record makes of what was seen."""

from __future__ import annotations

from datetime import timedelta

import pytest

from demo.days import BERLIN, CLOCK, local, snapshot, story_of, watched
from servingplan.demo.record import Record, Tone
from servingplan.demo.watching import SeenEvent


def texts(record):
    return [line.text for line in record.feed]


def test_the_margin_is_the_ramp_minus_all_replicas_ready():
    record = watched(ready_at="07:57")
    assert (record.margin, record.on_time) == (timedelta(minutes=3), True)
    assert "all 5 ready, 3 min before the ramp at 08:00" in texts(record)


def test_replicas_that_are_ready_after_the_ramp_are_late():
    record = watched(ready_at="08:04")
    assert (record.margin, record.on_time) == (timedelta(minutes=-4), False)
    late = next(line for line in record.feed if "4 min after the ramp" in line.text)
    assert late.tone is Tone.BAD


def test_replicas_that_are_never_all_ready_have_no_margin_and_are_not_on_time():
    record = watched(ready_at=None, until="08:29")
    assert (record.margin, record.on_time) == (None, False)


@pytest.mark.parametrize(
    ("ready_at", "on_time"),
    [pytest.param("08:00", True, id="at-the-very-ramp"), pytest.param("08:01", False, id="a-minute-late")],
)
def test_the_ramp_itself_is_the_last_moment(ready_at, on_time):
    assert watched(ready_at=ready_at).on_time is on_time


def test_the_rise_was_asked_for_when_the_operator_says_so_also_after_the_fall():
    assert watched().asked_at == local("2026-11-30T07:48")


def test_five_that_were_ready_before_the_rise_are_not_the_answer_to_it():
    record = Record(story_of())
    record.take(snapshot("07:20", asked=5, ready=5), CLOCK)
    assert record.ready_at is None


def test_nothing_is_told_before_the_operator_has_asked_for_anything():
    record = Record(story_of())
    record.take(snapshot("07:15", asked=0, ready=0), CLOCK)
    record.take(snapshot("07:16", asked=0, ready=1), CLOCK)
    assert texts(record) == []
    record.take(snapshot("07:17", asked=2, ready=2), CLOCK)
    assert texts(record) == ["2 of 2 ready"]


def test_an_event_is_told_once_on_the_demo_clock_and_without_its_mark():
    event = SeenEvent(
        identity="support-chat.1",
        time=CLOCK.to_real(local("2026-11-30T07:48")),
        reason="ScaledUp",
        note="replicas 2 to 5: ready before window working-day (demo clock)",
        warning=False,
    )
    record = Record(story_of())
    for time in ("07:48", "07:49"):
        record.take(snapshot(time, asked=5, ready=2, events=[event]), CLOCK)
    told = [line for line in record.feed if line.text.startswith("ScaledUp")]
    assert [line.text for line in told] == ["ScaledUp: replicas 2 to 5: ready before window working-day"]
    assert f"{told[0].time.astimezone(BERLIN):%H:%M}" == "07:48"


def test_a_sample_is_found_by_its_instant():
    record = watched()
    assert record.sample_at(local("2026-11-30T07:50")).asked == 5
    assert record.sample_at(local("2026-11-30T07:00")) is None
