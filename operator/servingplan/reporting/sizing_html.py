"""A sizing as one self-contained page.

In: a `Study`. Out: HTML with the pictures and the tables of the terminal inside, nothing loaded from elsewhere.
"""

from __future__ import annotations

from typing import Any

from servingplan.hardware.study import Choice, Option, Study
from servingplan.reporting.pages import render
from servingplan.reporting.sizing_chart import comparison_chart, levels_chart, memory_chart
from servingplan.reporting.sizing_rows import (
    COMPARISON,
    LEVELS,
    binding,
    cache_rows,
    comparison_rows,
    exactness,
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


def page(found: Study) -> str:
    """The page. Every text of files and flags is escaped."""
    shown = [(option, option.choice) for option in shown_options(found) if option.choice is not None]
    best = found.best
    return render(
        "sizing.html.j2",
        title=title_words(found),
        best=best,
        choice=None if best is None else best.choice,
        because=found.because,
        memory_picture=memory_chart([choice for _, choice in shown]) if shown else "",
        comparison_picture=comparison_chart(found) if len(found.options) > 1 and shown else "",
        details=[_details(option, choice, found) for option, choice in shown],
        comparison=[row for _, row in comparison_rows(found)],
        comparison_heads=COMPARISON,
        level_heads=LEVELS,
        refused=list(refused(found)),
        exactness=exactness(found),
    )


def _details(option: Option, choice: Choice, found: Study) -> dict[str, Any]:
    return {
        "name": f"{option.model.name} on {option.accelerator.name}, {choice.replica.layout}",
        "words": model_words(option.model),
        "advice": choice.advice,
        "memory": list(memory_rows(choice)),
        "replica": [*cache_rows(choice, found.asked.workload), *speed_rows(choice)],
        "levels": level_rows(choice),
        "reasons": level_reasons(choice),
        "binding": binding(choice),
        "totals": list(total_rows(choice)),
        "picture": levels_chart(choice) if choice.needs else "",
    }
