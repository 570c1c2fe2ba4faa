"""What people read in a terminal: outlooks, differences and explanations as rich renderables.

In: the values of this package. Out: renderables, which the command line prints. They decide nothing, and hold up
without colour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from servingplan.errors import Problem
from servingplan.planning.units import format_duration
from servingplan.rendering.acceptance import unaccepted
from servingplan.rendering.times import local_time
from servingplan.reporting.difference import Changed, Difference, changed_moves, usual_changes
from servingplan.reporting.explain import Explanation
from servingplan.reporting.hours import MONTH_HOURS
from servingplan.reporting.local import DASH, clock_span, date_span, dates_in_words, short_date
from servingplan.reporting.outlook import Outlook
from servingplan.reporting.rows import MoveRow, hour_rows, level_rows, move_rows, title_words, usual_rows
from servingplan.reporting.strip import LEAD_MARK, TRAIL_MARK, Cell, CellKind, DayRow, day_rows

RESOLUTIONS = (96, 72, 48, 24)
"""Cells a day: a quarter of an hour each, 20 minutes, half an hour, an hour. The finest that fits is taken."""

_FIGURES = 18
"""Columns to the right of the cells: replicas and GPU-hours."""

MOST_ROWS = 14
"""Two weeks of days fit a screen; beyond, equal days in a row are put together."""

_STYLES = {CellKind.LEAD: "bold yellow", CellKind.TRAIL: "bold magenta", CellKind.OUTSIDE: ""}


def plain_table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """A table without lines; the named columns are right-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def indented(view: RenderableType) -> Padding:
    """A view below what it belongs to."""
    return Padding(view, (0, 0, 0, 2))


def stacked(views: Iterable[RenderableType]) -> RenderableType:
    """Views under each other, an empty line between them."""
    parts: list[RenderableType] = []
    for view in views:
        parts += [*([""] if parts else []), view]
    return Group(*parts)


def outlook_view(outlook: Outlook) -> RenderableType:
    """The first insight: the days as a picture, the levels, what happens when, and what it costs."""
    parts: list[RenderableType] = [_title(outlook), "", Strip(outlook), "", _levels(outlook), ""]
    if rows := move_rows(outlook):
        parts += [_moves(rows, heading="Local time"), ""]
    parts.append(_hours(outlook))
    if outlook.warnings:
        parts += ["", problems_view(outlook.warnings, heading="Warnings")]
    return Group(*parts)


def _title(outlook: Outlook) -> Text:
    title = Text.assemble((outlook.plan.key, "bold"), f"  {title_words(outlook)}")
    return title.append("  suspended: nothing is written", "bold red") if outlook.plan.suspend else title


class Strip:
    """The picture: one row of blocks a day. Its resolution follows the width it is printed at."""

    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rows, with the hours above and what the marks mean below."""
        rows, labels, margin, cells = self._fitting(options.max_width)
        yield Text(" " * margin + hour_scale(cells) + "replicas".rjust(9) + "GPU-h".rjust(7), style="dim")
        for label, row in zip(labels, rows, strict=True):
            yield _row(label.ljust(margin), row)
        yield self._legend(" " * margin, {cell.kind for row in rows for cell in row.cells})

    def _fitting(self, width: int) -> tuple[Sequence[DayRow], Sequence[str], int, int]:
        """Rows, their labels, the labels' width and the cells a day: as fine as the width allows."""
        *finer, coarsest = RESOLUTIONS
        for cells in [*(cells for cells in finer if cells + _FIGURES < width), coarsest]:
            rows = day_rows(self._outlook, cells, most_rows=MOST_ROWS)
            labels = [_row_label(row) for row in rows]
            margin = max(len(label) for label in labels) + 2
            if margin + cells + _FIGURES <= width:
                break
        return rows, labels, margin, cells

    def _legend(self, margin: str, kinds: Collection[CellKind]) -> Text:
        """What the marks mean that occur."""
        lead, highest = self._outlook.course.lead, max(self._outlook.course.asked_function.values)
        legend = Text(margin).append("█", "green").append(f" {highest} ready")
        if CellKind.LEAD in kinds:
            legend.append(f"   {LEAD_MARK}", _STYLES[CellKind.LEAD])
            legend.append(f" lead {format_duration(lead)}: starting")
        if CellKind.TRAIL in kinds:
            legend.append(f"   {TRAIL_MARK}", _STYLES[CellKind.TRAIL]).append(" trail: stepping down")
        return legend


def _row_label(row: DayRow) -> str:
    return short_date(row.first) if row.first == row.last else date_span(row.first, row.last)


def hour_scale(cells: int) -> str:
    """``00    03    06 ... 24``: the hours above the cells."""
    step = cells // 8
    return "".join(f"{3 * i:02d}".ljust(step) for i in range(8)) + "24"


def _row(label: str, row: DayRow) -> Text:
    text = Text(label)
    for cell in row.cells:
        text.append(cell.mark, _style(cell))
    level = str(row.most) if row.fewest == row.most else f"{row.fewest}{DASH}{row.most}"
    return text.append(f"  {level:>9}{row.gpu_hours:>7,.1f}")


def _style(cell: Cell) -> str:
    if cell.kind is CellKind.LEVEL:
        return block_style(cell.share)
    return _STYLES[cell.kind]


def block_style(share: float) -> str:
    """The colour of a block that is so full, 0 to 1."""
    return "green" if share > 1 / 2 else "cyan"


def _levels(outlook: Outlook) -> Table:
    numbers = ("demand", "need", "reserve", "replicas", "hours")
    table = plain_table("Asked by", *numbers, numbers=numbers)
    for row in level_rows(outlook):
        table.add_row(*row)
    return table


def _moves(rows: Sequence[MoveRow], *, heading: str) -> Table:
    table = plain_table(heading, "replicas", "why", "on")
    for row in rows:
        table.add_row(*row)
    return table


def _hours(outlook: Outlook) -> Table:
    days = (outlook.end - outlook.start).total_seconds() / 86400
    numbers = (f"{days:.3g} days", f"a month ({MONTH_HOURS} h)")
    table = plain_table("GPU-hours", *numbers, "", numbers=numbers)
    for row in hour_rows(outlook):
        table.add_row(*row, style="bold" if row[0].startswith("=") else "")
    return table


def problems_view(problems: Sequence[Problem], *, heading: str) -> RenderableType:
    """Problems, one under the other."""
    lines = [Text(f"{heading}:", style="bold yellow")]
    for problem in problems:
        line = Text.assemble((problem.path, "bold"), f": {problem.message}" if problem.path else problem.message)
        lines.append(line.append(f" [{problem.reason}]", "dim"))
    return Group(lines[0], *(indented(line) for line in lines[1:]))


def difference_view(found: Difference) -> RenderableType:
    """What a change changes: rows in local time, and the GPU-hours of a week."""
    head = Text(f"Against the other plan, {found.old.plan.key}:", style="bold")
    if not found.required and not found.asked:
        return Group(head, indented(Text("no replica changes in this range")))
    parts: list[RenderableType] = [head]
    if found.required:
        parts.append(indented(_required_changes(found)))
    for table in _changed_moves(found):
        parts += ["", indented(table)]
    week = f"GPU-hours a week: {found.old_week:,.1f} → {found.new_week:,.1f} ({found.week:+,.1f})"
    return Group(*parts, "", indented(Text(week, style="bold")))


def _required_changes(found: Difference) -> Table:
    table = plain_table("Required", "old → new", "on")
    for group in usual_changes(found.required, found.new):
        when, level = _changed_cells(group.first, found.new)
        table.add_row(when, level, dates_in_words(group.dates))
    return table


def _changed_moves(found: Difference) -> Iterator[Table]:
    """Rises and falls that only one of the two plans has."""
    gone, added = changed_moves(found)
    for heading, groups in (("No longer", gone), ("Instead" if gone else "New", added)):
        if groups:
            yield _moves(usual_rows(groups, found.new), heading=heading)


def _changed_cells(change: Changed, outlook: Outlook) -> tuple[str, str]:
    return clock_span(change.start, change.end, outlook.plan.zone), f"{change.old} → {change.new}"


def explanation_view(explanation: Explanation) -> RenderableType:
    """The trail as a table, with what comes next."""
    plan, decision = explanation.plan, explanation.decision
    title = Text.assemble((plan.key, "bold"), f"  {local_time(explanation.at, plan.zone)}: ")
    title.append(f"{decision.desired} replicas", "bold green").append(f", {decision.because}")
    rows = [(step.name, step.value, step.message, step.reason.value) for step in decision.trail]
    parts: list[RenderableType] = [title, "", _trail(rows)]
    if decision.next_change is not None:
        change = decision.next_change
        parts += ["", f"Next: {change.replicas} from {local_time(change.time, plan.zone)}, {change.because}"]
    if warnings := (*plan.warnings, *unaccepted(plan)):
        parts += ["", problems_view(warnings, heading="Warnings")]
    return Group(*parts)


def told_trail(steps: Iterable[Mapping[str, str]]) -> Table:
    """A trail as status and ledgers tell it."""
    return _trail((step["name"], step["value"], step["message"], step["reason"]) for step in steps)


def _trail(rows: Iterable[tuple[str, str, str, str]]) -> Table:
    table = plain_table("step", "value", "why", "reason", numbers=("value",))
    for name, value, message, reason in rows:
        table.add_row(name, Text(value, style="bold"), message, Text(reason, style="dim"))
    return table
