"""A simulation in the terminal: policies under each other, the plan first, the best of each column marked.

In: a `Simulated`. Out: renderables. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servingplan.reporting.simulation import Simulated
from servingplan.reporting.simulation_rows import (
    Column,
    above_words,
    bound_words,
    fact_lines,
    ideal_words,
    main_columns,
    policy_lines,
    scenario_columns,
    scenario_lines,
    split_columns,
    title_words,
    titles,
)
from servingplan.reporting.tables import indented, plain_table

BEST = "*"


def simulation_view(found: Simulated) -> RenderableType:
    """Everything that was found, what decides first."""
    names = titles(found.comparison.results)
    parts: list[RenderableType] = [
        Text.assemble((found.plan.key, "bold"), f"  {title_words(found)}"),
        Text(above_words(found)),
        *([Text(bound, style="bold yellow")] if (bound := bound_words(found)) else []),
        "",
        _table("", names, main_columns(found)),
        "",
        _table("GPU-hours", names, split_columns(found)),
    ]
    if len(found.comparison.scenes) > 1:
        parts += ["", _table("Attained if", names, scenario_columns(found)), "", *_told(scenario_lines(found))]
    parts += ["", Text("What they do", style="bold"), *_told(policy_lines(found)), ""]
    parts += [Text(line, style="dim") for line in (f"{BEST} the best; {ideal_words()}", *fact_lines(found))]
    return Group(*parts)


def _table(head: str, names: Sequence[str], columns: Sequence[Column]) -> Table:
    heads = [column.head for column in columns]
    table = plain_table(head, *heads, numbers=heads)
    for column in table.columns:
        column.no_wrap = True
    for row, name in enumerate(names):
        cells = [_cell(column, row) for column in columns]
        table.add_row(name, *cells, style="bold" if row == 0 else "")
    return table


def _cell(column: Column, row: int) -> Text:
    """The sign of the best stands before it, so that digits stay under digits."""
    best = row in column.best
    return Text((BEST if best else "") + column.cells[row], style="green" if best else "")


def _told(lines: Iterable[tuple[str, str]]) -> list[RenderableType]:
    return [indented(Text.assemble((name, "bold"), f": {words}")) for name, words in lines]
