"""Which parts of which day are played, and how fast."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from demo.days import local, story_of
from servingplan.demo.material import material
from servingplan.demo.story import MOST_FACTOR, Part, tell
from servingplan.errors import UsageError
from support.specs import scheduled

BERLIN = ZoneInfo("Europe/Berlin")


def spans(story):
    return [(f"{p.start.astimezone(BERLIN):%a %H:%M}", f"{p.end.astimezone(BERLIN):%H:%M}") for p in story.parts]


@pytest.mark.parametrize(
    ("now", "day"),
    [
        pytest.param("2026-11-29T20:00", "Mon", id="a-sunday-plays-the-monday"),
        pytest.param("2026-11-30T23:59", "Tue", id="a-monday-plays-the-tuesday"),
        pytest.param("2026-12-04T07:00", "Mon", id="a-friday-plays-the-monday"),
    ],
)
def test_the_worked_example_plays_its_next_working_day(now, day):
    assert spans(story_of(now=now)) == [(f"{day} 07:15", "08:30"), (f"{day} 19:30", "20:30")]


def test_the_worked_example_takes_two_and_a_quarter_minutes_a_minute_a_second():
    story = story_of()
    assert (story.usual_factor(), story.length) == (60, timedelta(minutes=135))
    assert (story.rise.before, story.rise.after, story.fall.after, story.most) == (2, 5, 2, 5)


def test_a_longer_lead_begins_earlier_and_runs_faster():
    story = story_of(leadTime={"declared": "100m", "margin": "0%", "max": "300m"})
    assert spans(story)[0] == ("Mon 05:45", "08:30")
    assert 60 < story.usual_factor() <= MOST_FACTOR


def test_changes_between_rise_and_fall_are_played_too():
    lunch = {
        "name": "lunch",
        "days": ["Mon"],
        "start": "12:00",
        "end": "13:00",
        "requestsPerSecond": 30,
    }
    day = {"name": "day", "days": ["Mon"], "start": "08:00", "end": "20:00", "requestsPerSecond": 18}
    story = story_of(**scheduled(windows=[day, lunch]))
    assert [span[0] for span in spans(story)] == ["Mon 07:15", "Mon 11:15"]
    assert story.fall.before == 7


def test_a_plan_that_never_rises_says_that_there_is_nothing_to_watch():
    with pytest.raises(UsageError, match="nothing to watch"):
        story_of(**scheduled(windows=[]))


def test_parts_stay_on_the_local_clock_of_a_half_hour_zone():
    story = story_of(**scheduled(timeZone="Asia/Kolkata"))
    assert story.parts[0].start.astimezone(story.zone).minute == 15


def test_the_parts_hold_the_whole_rise_and_the_whole_fall():
    story = story_of()
    first, last = story.parts
    assert isinstance(first, Part)
    assert first.start < story.rise.start < story.ramp_at < first.end
    assert last.start < story.fall.start <= story.fall.end < last.end


def test_the_shipped_example_has_a_story():
    plan = material(None, namespace=None, idle=False, standard_input=io.StringIO()).plan
    assert tell(plan, datetime(2026, 11, 29, tzinfo=BERLIN)).ramp_at == local("2026-11-30T08:00")
