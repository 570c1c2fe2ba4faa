"""An evaluation in the terminal: the verdict, its figures, and where the two differ.

In: an `Evaluation`. Out: renderables. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.evaluating.evaluation import Evaluation, Result, message, remarks
from servingplan.evaluating.record import Answer
from servingplan.evaluating.verdict import Verdict
from servingplan.reporting.evaluation_rows import (
    FIGURES,
    answer_words,
    differing,
    failure_lines,
    figure_rows,
    title_words,
)
from servingplan.reporting.tables import indented, plain_table

MOST_ITEMS = 20
"""A screen of them; the page and the JSON have all."""

_LONGEST = 60
_STYLES = {Verdict.PASSED: "bold green", Verdict.FAILED: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}


def evaluation_view(found: Evaluation) -> RenderableType:
    """Everything that a person needs to judge a verdict."""
    verdict = found.judgement.verdict
    parts: list[RenderableType] = [Text(title_words(found)), "", _figures(found), ""]
    parts.append(Text.assemble((verdict.value, _STYLES[verdict]), f": {message(found.judgement)}"))
    parts += [indented(Text(line, style="yellow")) for line in remarks(found)]
    if lines := list(failure_lines(found)):
        parts += ["", Text("Without an answer:", style="bold")]
        parts += [indented(Text(line)) for line in lines]
    if different := differing(found):
        parts += ["", _different(different)]
    return Group(*parts)


def _figures(found: Evaluation) -> RenderableType:
    table = plain_table(*FIGURES, numbers=FIGURES[1:])
    for row in figure_rows(found):
        table.add_row(*row)
    return table


def _different(different: Sequence[Result]) -> RenderableType:
    table = plain_table("scored differently", "baseline", "variant", "variant's answer")
    for result in different[:MOST_ITEMS]:
        words = answer_words(result.variant, longest=_LONGEST)
        table.add_row(Text(result.id), _score(result.baseline), _score(result.variant), Text(words))
    if len(different) <= MOST_ITEMS:
        return table
    return Group(table, Text(f"and {len(different) - MOST_ITEMS:,} more: -o html or -o json", style="dim"))


def _score(answer: Answer) -> Text:
    return Text(f"{answer.score:.3g}", style="green" if answer.score == 1 else "red" if answer.score == 0 else "")
