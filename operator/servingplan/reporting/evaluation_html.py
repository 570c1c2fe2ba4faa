"""An evaluation as one self-contained page, the answers that were scored differently side by side.

In: an `Evaluation`. Out: HTML, nothing loaded from elsewhere.
"""

from __future__ import annotations

from servingplan.evaluating.evaluation import Evaluation, message, remarks
from servingplan.reporting.evaluation_rows import FIGURES, differing, failure_lines, figure_rows, title_words
from servingplan.reporting.pages import render

MOST_ITEMS = 500
"""A page of some megabytes; the JSON has all."""


def page(found: Evaluation) -> str:
    """The page. Every text of sets and models is escaped."""
    different = differing(found)
    return render(
        "evaluation.html.j2",
        title=title_words(found),
        verdict=found.judgement.verdict.value,
        message=message(found.judgement),
        remarks=remarks(found),
        heads=FIGURES,
        figures=list(figure_rows(found)),
        failures=list(failure_lines(found)),
        different=different[:MOST_ITEMS],
        left=max(0, len(different) - MOST_ITEMS),
    )
