"""A simulation as one self-contained page.

In: a `Simulated`. Out: HTML with the pictures and the tables of the terminal inside, nothing loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servingplan.reporting.pages import render
from servingplan.reporting.simulation import Simulated
from servingplan.reporting.simulation_chart import ENOUGH, course_chart, week_chart
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
    share_words,
    split_columns,
    title_words,
    titles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of policies. rows: a name, and cells with whether they are the best of their column."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, bool]]]]


def page(found: Simulated) -> str:
    """The page. Every text of plans, files and flags is escaped."""
    names = titles(found.comparison.results)
    return render(
        "simulation.html.j2",
        key=found.plan.key,
        title=title_words(found),
        figures=list(_figures(found)),
        fine=(found.comparison.plan.recorded.attainment or 0.0) >= ENOUGH,
        above=above_words(found),
        bound=bound_words(found),
        main=_table(names, main_columns(found)),
        split=_table(names, split_columns(found)),
        scenarios=_table(names, scenario_columns(found)) if len(found.comparison.scenes) > 1 else None,
        scenario_lines=list(scenario_lines(found)),
        course=course_chart(found),
        week=week_chart(found),
        policies_told=list(policy_lines(found)),
        facts=[*fact_lines(found), ideal_words()],
    )


def _table(names: Sequence[str], columns: Sequence[Column]) -> Table:
    rows = [(name, [(column.cells[row], row in column.best) for column in columns]) for row, name in enumerate(names)]
    return Table(heads=[column.head for column in columns], rows=rows)


def _figures(found: Simulated) -> Iterator[tuple[str, str]]:
    """What decides, each with its words."""
    ours = found.comparison.plan.recorded
    yield share_words(ours.attainment), "of requests are good with this plan"
    yield share_words(ours.rising), "in the first 15 minutes of rises"
    yield f"{ours.hours:,.0f}", "GPU-hours"
    static = next(result.recorded for result in found.comparison.results if result.entrant.key == "static")
    yield f"{100 * (1 - ours.hours / static.hours):.0f} %", "fewer GPU-hours than at the peak all the time"
