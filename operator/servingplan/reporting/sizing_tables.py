"""A sizing in a terminal: what one replica takes, what the levels need, and options side by side.

In: a `Study`. Out: renderables. They decide nothing, and hold up without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servingplan.hardware.study import Choice, Option, Study
from servingplan.reporting.sizing_rows import (
    COMPARISON,
    LEVELS,
    Pair,
    binding,
    cache_rows,
    comparison_rows,
    level_reasons,
    level_rows,
    memory_rows,
    model_words,
    refused,
    shown_options,
    speed_rows,
    title_words,
    total_rows,
)
from servingplan.reporting.tables import indented, plain_table


def study_view(found: Study) -> RenderableType:
    """The best option of each model in detail, then why others do not pass."""
    parts: list[RenderableType] = [Text(title_words(found), style="bold")]
    for option in shown_options(found):
        if option.choice is not None:
            parts += ["", *_details(option, option.choice, found)]
    parts += list(_refusals(found))
    if len(found.options) > 1:
        parts += ["", _best(found)]
    return Group(*parts)


def comparison_view(found: Study) -> RenderableType:
    """Every option in a row."""
    rows = [(option, row) for option, row in comparison_rows(found) if option.choice is not None]
    # The last column is the cost.
    shown = COMPARISON if any(option.accelerator.price is not None for option, _ in rows) else COMPARISON[:-1]
    table = plain_table(*shown, numbers=COMPARISON[3:])
    for column in table.columns[1:]:
        column.no_wrap = True
    for option, row in rows:
        table.add_row(*row[: len(shown)], style="bold green" if option is found.best else "")
    head = Text(title_words(found), style="bold")
    parts: list[RenderableType] = [head]
    if rows:
        parts += ["", table]
    if rows and found.asked.workload is not None:
        parts += ["", "Replicas are for all three levels + spare; ~ is an estimate."]
    return Group(*parts, *_refusals(found), "", _best(found))


def _details(option: Option, choice: Choice, found: Study) -> Iterator[RenderableType]:
    head = Text.assemble((f"{option.model.name} on {option.accelerator.name}, {choice.replica.layout}", "bold green"))
    yield head
    yield Text(model_words(option.model), style="dim")
    for sentence in choice.advice:
        yield Text(sentence)
    yield ""
    yield Text("One GPU, GiB", style="bold")
    yield _pairs(memory_rows(choice))
    yield Text("One replica", style="bold")
    yield _pairs((*cache_rows(choice, found.asked.workload), *speed_rows(choice)))
    if choice.needs:
        yield ""
        yield _levels(choice)
        yield _pairs(level_reasons(choice), left=True)
        yield Text(f"{binding(choice)[:1].upper()}{binding(choice)[1:]}.")
    yield ""
    yield Text("All together", style="bold")
    yield _pairs(total_rows(choice))


def _pairs(rows: Iterable[Pair], *, left: bool = False) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="left" if left else "right", min_width=10, no_wrap=True)
    table.add_column(overflow="fold")
    for value, words in rows:
        table.add_row(value, words)
    return indented(table)


def _levels(choice: Choice) -> RenderableType:
    table = plain_table(*LEVELS, numbers=LEVELS[1:])
    for row in level_rows(choice):
        table.add_row(*row)
    return indented(table)


def _refusals(found: Study) -> Iterator[RenderableType]:
    rows = list(refused(found))
    if rows:
        yield ""
        yield Text("Not possible:", style="bold yellow")
        for name, why in rows:
            yield indented(Text.assemble((name, "bold"), f": {why}"))


def _best(found: Study) -> Text:
    if found.best is None or found.best.choice is None:
        return Text("No option passes.", style="bold red")
    choice = found.best.choice
    return Text.assemble(
        "Best: ",
        (f"{found.best.model.name} on {choice.gpus} x {found.best.accelerator.name}", "bold green"),
        f": {found.because}.",
    )
