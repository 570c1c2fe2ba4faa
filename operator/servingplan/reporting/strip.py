"""The terminal's picture of a plan: a row of blocks for each local day.

In: an outlook and a width. Out: `DayRow`s of cells; `tables` colours and prints them. A cell's block shows the most
that is required in it; where more is asked for than that, it shows the lead or the trail instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum

from servingplan.planning.calendar import slot_edges
from servingplan.planning.series import StepFunction, largest
from servingplan.reporting.local import dates_of, midnight
from servingplan.reporting.outlook import Outlook

BLOCKS = "▁▂▃▄▅▆▇█"
LEAD_MARK = "/"
TRAIL_MARK = "\\"
ZERO_MARK = "·"

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


class CellKind(Enum):
    """What a cell shows."""

    LEVEL = "level"
    LEAD = "lead"
    TRAIL = "trail"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One character of a row. share: how full the highest block is, 0 to 1."""

    kind: CellKind
    mark: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """One local day, or several in a row that look the same. gpu_hours: planned, of one of the days."""

    first: date
    last: date
    cells: Sequence[Cell]
    fewest: int
    most: int
    gpu_hours: float


def day_rows(outlook: Outlook, cells_per_day: int, *, most_rows: int) -> tuple[DayRow, ...]:
    """The rows of an outlook; equal days in a row are put together where there are more than `most_rows`."""
    zone = outlook.plan.zone
    highest = max(outlook.course.asked_function.values)
    days = dates_of(outlook.start, outlook.end, zone)
    # Once for all rows: each is made anew of the whole course.
    functions = (outlook.course.required_function, outlook.course.asked_function)
    rows = [_row(outlook, functions, day, cells_per_day, highest) for day in days]
    return tuple(rows if len(rows) <= most_rows else _together(rows))


def _row(
    outlook: Outlook,
    functions: tuple[StepFunction[int], StepFunction[int]],
    day: date,
    cells_per_day: int,
    highest: int,
) -> DayRow:
    (required, held), zone = functions, outlook.plan.zone
    start = max(outlook.start, midnight(day, zone))
    end = min(outlook.end, midnight(day + _DAY, zone))
    asked = held.since(start).until(end)
    edges = slot_edges(day, cells_per_day, zone)
    return DayRow(
        first=day,
        last=day,
        cells=tuple(_cell(required, held, max(a, start), min(b, end), highest) for a, b in itertools.pairwise(edges)),
        fewest=min(asked.values),
        most=max(asked.values),
        gpu_hours=sum(p.value * ((p.end - p.start) / _HOUR) for p in asked.pieces()) * outlook.hours.gpus_per_replica,
    )


def _cell(required: StepFunction[int], asked: StepFunction[int], start: datetime, end: datetime, highest: int) -> Cell:
    if end <= start:
        return Cell(kind=CellKind.OUTSIDE, mark=" ", share=0.0)
    needed, held = largest(required, start, end), largest(asked, start, end)
    if held > needed:
        rises = asked.at(end - timedelta(microseconds=1)) == held
        kind, mark = (CellKind.LEAD, LEAD_MARK) if rises else (CellKind.TRAIL, TRAIL_MARK)
        return Cell(kind=kind, mark=mark, share=held / highest)
    share = needed / highest if highest else 0.0
    return Cell(kind=CellKind.LEVEL, mark=block(share), share=share)


def block(share: float) -> str:
    """The block that is so full, 0 to 1."""
    return BLOCKS[max(0, math.ceil(share * len(BLOCKS)) - 1)] if share else ZERO_MARK


def _together(rows: Sequence[DayRow]) -> list[DayRow]:
    found: list[DayRow] = []
    for row in rows:
        if found and found[-1].cells == row.cells:
            same = found[-1]
            found[-1] = DayRow(
                first=same.first,
                last=row.last,
                cells=same.cells,
                fewest=same.fewest,
                most=same.most,
                gpu_hours=same.gpu_hours,
            )
        else:
            found.append(row)
    return found
