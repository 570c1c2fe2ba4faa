"""The terminal's picture: cells, marks, rows, widths."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from servingplan.reporting.outlook import coming_days
from servingplan.reporting.strip import CellKind, day_rows
from servingplan.reporting.tables import outlook_view
from support.plans import a_plan

BERLIN = ZoneInfo("Europe/Berlin")


def rows(days=1, start=(2026, 12, 1), cells=48, most_rows=14):
    outlook = coming_days(a_plan(), datetime(*start, tzinfo=BERLIN), days)
    return day_rows(outlook, cells, most_rows=most_rows)


def test_a_working_day_shows_quiet_lead_level_and_trail():
    (row,) = rows()
    assert "".join(cell.mark for cell in row.cells) == "▄" * 15 + "/" + "█" * 24 + "\\" + "▄" * 7
    assert (row.fewest, row.most) == (2, 5)


def test_a_missing_hour_has_no_cells_and_no_gpu_hours():
    (row,) = rows(start=(2026, 3, 29))
    missing = [i for i, cell in enumerate(row.cells) if cell.kind is CellKind.OUTSIDE]
    assert missing == [4, 5]
    assert row.gpu_hours == pytest.approx(2 * 23)


def test_a_doubled_hour_counts_twice():
    (row,) = rows(start=(2026, 10, 25))
    assert row.gpu_hours == pytest.approx(2 * 25)


def test_a_start_within_a_day_leaves_the_time_before_blank():
    first, second = rows(start=(2026, 12, 1, 12))
    assert "".join(cell.mark for cell in first.cells).startswith(" " * 24 + "█")
    assert "".join(cell.mark for cell in second.cells).endswith(" " * 24)


def test_many_days_put_equal_ones_together():
    found = rows(days=28)
    assert [(row.last - row.first) // timedelta(days=1) + 1 for row in found] == [4, 2, 5, 2, 5, 2, 5, 2, 1]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("days", [1, 14, 60])
def test_no_line_is_wider_than_the_terminal_and_no_row_is_broken(width, days):
    console = Console(file=io.StringIO(), width=width)
    console.print(outlook_view(coming_days(a_plan(), datetime(2026, 12, 1, tzinfo=BERLIN), days)))
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    pictures = [line for line in lines if "▄▄▄" in line]
    assert all(line.rstrip()[-1].isdigit() for line in pictures)
