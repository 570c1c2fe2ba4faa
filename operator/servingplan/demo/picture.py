"""The chart of a demo as cells: time from left to right, one replica (or a few) a row.

In: a record and a size. Out: rows of `Mark`, and where the times of the axis go. `screen` gives them characters and
colours. Pure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from servingplan.demo.record import Record
from servingplan.demo.story import Part, Story

GAP = 3
"""Columns between two parts of the day."""

TICKS = (timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1), timedelta(hours=2), timedelta(hours=6))
"""Distances between times on the axis; the closest whose labels do not touch is taken."""

LABEL = 5
"""Columns of a time, as in 08:00."""


_MOMENT = timedelta(microseconds=1)


class Mark(Enum):
    """What a cell shows."""

    READY = "ready"
    EARLY = "early"
    STARTING = "starting"
    MISSING = "missing"
    PLANNED = "planned"
    AHEAD = "ahead"
    EMPTY = "empty"
    BREAK = "break"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the chart: the stretch [start, end) of the day, or a break between two parts."""

    start: datetime
    end: datetime
    is_break: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Rows from the top down, each with the replicas that it stands for; demand (requests/s) and now by column."""

    columns: Sequence[Column]
    rows: Sequence[tuple[int, Sequence[Mark]]]
    demand: Sequence[Decimal | None]
    labels: Sequence[tuple[int, datetime]]
    now: int | None


def chart(record: Record, *, width: int, height: int) -> Chart:
    """The chart in so many columns and at most so many rows."""
    story = record.story
    columns = columns_of(story.parts, width)
    most = max(story.most, 1)
    rows = min(most, height)
    levels = [math.ceil(most * row / rows) for row in range(rows, 0, -1)]
    required = story.outlook.course.required
    return Chart(
        columns=columns,
        rows=tuple((level, tuple(_mark(record, column, level) for column in columns)) for level in levels),
        demand=tuple(None if c.is_break else required.at(_middle(c)).rate for c in columns),
        labels=_labels(story, columns),
        now=next((i for i, c in enumerate(columns) if not c.is_break and c.start <= record.now < c.end), None),
    )


def columns_of(parts: Sequence[Part], width: int) -> tuple[Column, ...]:
    """The columns of all parts, each as wide as it is long, with breaks between them."""
    total = sum((part.end - part.start for part in parts), timedelta())
    free = max(width - GAP * (len(parts) - 1), len(parts))
    columns: list[Column] = []
    past, used = timedelta(), 0
    for i, part in enumerate(parts):
        if i:
            columns += [Column(start=part.start, end=part.start, is_break=True)] * GAP
        past += part.end - part.start
        cells = max(1, round(free * (past / total)) - used)
        used += cells
        step = (part.end - part.start) / cells
        edges = [*(part.start + step * k for k in range(cells)), part.end]
        columns += [Column(start=a, end=b) for a, b in itertools.pairwise(edges)]
    return tuple(columns)


def _mark(record: Record, column: Column, level: int) -> Mark:
    if column.is_break:
        return Mark.BREAK
    course = record.story.outlook.course
    sample = record.sample_at(column.end - _MOMENT) if column.start <= record.now else None
    if sample is None or sample.time < column.start - (column.end - column.start):
        if course.required_function.at(_middle(column)) >= level:
            return Mark.PLANNED
        return Mark.AHEAD if course.asked_function.at(_middle(column)) >= level else Mark.EMPTY
    required = course.required_function.at(sample.time)
    if sample.ready >= level:
        return Mark.READY if required >= level else Mark.EARLY
    settled = record.settled_at is not None and sample.time >= record.settled_at
    if required >= level:
        # Until the first replicas are there, nothing was lost: the demo has only begun.
        return Mark.MISSING if settled else Mark.STARTING
    return Mark.STARTING if sample.asked >= level else Mark.EMPTY


def _middle(column: Column) -> datetime:
    return column.start + (column.end - column.start) / 2


def _labels(story: Story, columns: Sequence[Column]) -> tuple[tuple[int, datetime], ...]:
    """Columns and times of the axis: as close together as they fit."""
    found: list[tuple[int, datetime]] = []
    for tick in TICKS:
        found = [pair for part in story.parts for pair in _ticks(part, tick, story, columns)]
        if all(b - a > LABEL for (a, _), (b, _) in itertools.pairwise(found)):
            break
    return tuple(found)


def _ticks(part: Part, tick: timedelta, story: Story, columns: Sequence[Column]) -> list[tuple[int, datetime]]:
    local = part.start.astimezone(story.zone)
    since_midnight = timedelta(hours=local.hour, minutes=local.minute, seconds=local.second)
    instant = part.start + (-since_midnight) % tick
    found = []
    while instant < part.end:
        at = next((i for i, c in enumerate(columns) if not c.is_break and c.start <= instant < c.end), None)
        if at is not None:
            found.append((at, instant))
        instant += tick
    return found
