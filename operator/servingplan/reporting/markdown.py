"""What a change of a plan changes, as Markdown for a pull request.

In: a `Difference`. Out: text: sentences, the GPU-hours before and after, and the rises and falls that change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servingplan.reporting.difference import Difference, changed_moves
from servingplan.reporting.rows import saved, title_words, usual_rows
from servingplan.reporting.sentences import sentences


def difference_markdown(found: Difference) -> str:
    """The whole comment."""
    lines = [f"### {escaped(found.new.plan.key)}: what changes", "", escaped(title_words(found.new)), ""]
    lines += [f"- {escaped(sentence)}" for sentence in sentences(found)]
    lines += ["", *_hours(found)]
    for heading, rows in _moves(found):
        lines += ["", f"**{heading}**", "", *markdown_table(("local time", "replicas", "why", "on"), rows)]
    return "\n".join(lines)


def _hours(found: Difference) -> list[str]:
    rows = [
        (name, *(f"{figure:,.1f}" for figure in pair))
        for name, pair in (
            ("planned, these days", (found.old.hours.planned, found.new.hours.planned)),
            ("planned, a week", (found.old_week, found.new_week)),
            ("flat peak, these days", (found.old.hours.flat_peak, found.new.hours.flat_peak)),
        )
    ]
    rows.append(("saved against the flat peak", saved(found.old.hours), saved(found.new.hours)))
    return markdown_table(("GPU-hours", "before", "after"), rows)


def _moves(found: Difference) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """Rises and falls that only one of the two plans has."""
    for heading, only in zip(("No longer", "New"), changed_moves(found), strict=True):
        if only:
            yield heading, usual_rows(only, found.new)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; what is in its cells is text."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(map(escaped, row))} |" for row in rows]


def escaped(text: str) -> str:
    """Names of a plan are text, whatever they hold."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text
