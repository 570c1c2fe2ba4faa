"""A simulation as Markdown, for a pull request that changes a plan.

In: a `Simulated`. Out: text: who attains what for how many GPU-hours, the scenarios, and under which assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence

from servingplan.reporting.markdown import escaped, markdown_table
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
    title_words,
    titles,
)


def simulation_markdown(found: Simulated) -> str:
    """The whole comment."""
    names = titles(found.comparison.results)
    lines = [f"### {escaped(found.plan.key)} against a trace", "", escaped(title_words(found)), ""]
    lines += [escaped(above_words(found)), ""]
    if bound := bound_words(found):
        lines += [escaped(bound), ""]
    lines += [*_table("", names, main_columns(found))]
    if len(found.comparison.scenes) > 1:
        lines += ["", *_table("attained if", names, scenario_columns(found)), ""]
        lines += [f"- **{escaped(name)}**: {escaped(words)}" for name, words in scenario_lines(found)]
    lines += ["", "<details><summary>What they do, and under which assumptions</summary>", ""]
    lines += [f"- **{escaped(name)}**: {escaped(words)}" for name, words in policy_lines(found)]
    lines += ["", *(f"- {escaped(line)}" for line in (*fact_lines(found), ideal_words())), "", "</details>"]
    return "\n".join(lines)


def _table(head: str, names: Sequence[str], columns: Sequence[Column]) -> list[str]:
    rows = [(name, *(column.cells[row] for column in columns)) for row, name in enumerate(names)]
    return markdown_table((head, *(column.head for column in columns)), rows)
