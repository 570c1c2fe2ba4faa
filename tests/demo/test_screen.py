"""The live view: what is drawn, and that it fits."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from demo.days import local, snapshot, story_of, watched
from servingplan.demo.picture import GAP, Mark, chart, columns_of
from servingplan.demo.record import Record
from servingplan.demo.screen import LOWEST, NARROWEST, Screen, fits

SIZES = [(NARROWEST, LOWEST), (80, 24), (120, 40), (200, 60)]


def drawn(record, width=80, height=24):
    return [line.plain for line in Screen(record, factor=60).lines(width, height)]


def marks(record, time, width=70):
    picture = chart(record, width=width, height=5)
    at = next(i for i, c in enumerate(picture.columns) if not c.is_break and c.start <= local(time) < c.end)
    return [row[at] for _, row in picture.rows][::-1]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("until", ["07:16", "07:50", "08:10", "19:45", "20:03", "20:29"])
def test_the_view_fills_the_terminal_and_never_overflows_it(width, height, until):
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None)
    console.print(Screen(watched(until=until), factor=60))
    lines = out.getvalue().split("\n")
    assert len(lines) == height
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("height", range(LOWEST, 45))
def test_every_height_is_filled_exactly(height):
    assert len(drawn(watched(), 80, height)) == height


def test_an_empty_record_can_be_drawn():
    assert "Mon 30 Nov 07:15" in drawn(Record(story_of()))[0]


def test_the_demo_clock_and_its_factor_are_always_visible():
    for until in ("07:16", "07:50", "20:29"):
        title = drawn(watched(until=until))[0]
        assert "demo clock Mon 30 Nov" in title
        assert title.rstrip().endswith("60x")


def test_everything_stays_at_its_place():
    first, last = (drawn(watched(until=until)) for until in ("07:16", "20:29"))
    for words in ("  demand ", "replicas└", " " * 9 + "█ ready", " pods ", " next "):
        places = [[i for i, line in enumerate(lines) if line.startswith(words)] for lines in (first, last)]
        assert places[0] == places[1]
        assert len(places[0]) == 1


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param("2026-11-30T07:30", [Mark.READY] * 2 + [Mark.EMPTY] * 3, id="night"),
        pytest.param("2026-11-30T07:52", [Mark.READY] * 2 + [Mark.STARTING] * 3, id="lead"),
        pytest.param("2026-11-30T07:58", [Mark.READY] * 2 + [Mark.EARLY] * 3, id="margin"),
        pytest.param("2026-11-30T08:10", [Mark.READY] * 5, id="day"),
        pytest.param("2026-11-30T20:02", [Mark.READY] * 2 + [Mark.EARLY] + [Mark.EMPTY] * 2, id="fall"),
    ],
)
def test_the_chart_shows_lead_margin_day_and_fall(time, expected):
    assert marks(watched(ready_at="07:57"), time) == expected


def test_a_missed_ramp_is_seen():
    assert marks(watched(ready_at="08:10"), "2026-11-30T08:05")[2:] == [Mark.MISSING] * 3


def test_what_is_to_come_shows_the_plan_and_its_lead():
    record = watched(until="07:30")
    assert marks(record, "2026-11-30T08:10") == [Mark.PLANNED] * 5
    assert marks(record, "2026-11-30T07:50") == [Mark.PLANNED] * 2 + [Mark.AHEAD] * 3


def test_the_first_replicas_are_starting_and_not_missing():
    record = Record(story_of())
    record.take(snapshot("07:15", asked=2, ready=0, starting=2), None)
    assert marks(record, "2026-11-30T07:15")[:2] == [Mark.STARTING] * 2


def test_many_replicas_share_rows_and_the_top_one_is_the_most():
    record = Record(story_of(capacity={"requestsPerSecond": 1}, bounds={"minReplicas": 1, "maxReplicas": 40}))
    picture = chart(record, width=70, height=5)
    assert [level for level, _ in picture.rows] == [19, 16, 12, 8, 4]


@pytest.mark.parametrize("width", [40, 70, 71, 110, 190])
def test_the_columns_fill_the_width_and_are_as_wide_as_their_part_is_long(width):
    story = story_of()
    columns = columns_of(story.parts, width)
    assert len(columns) == width
    assert sum(c.is_break for c in columns) == GAP
    assert columns[0].start == story.parts[0].start
    assert columns[-1].end == story.parts[-1].end


def test_a_small_terminal_is_not_used_for_the_view():
    assert fits(80, 24)
    assert not fits(NARROWEST - 1, 24)
    assert not fits(80, LOWEST - 1)
