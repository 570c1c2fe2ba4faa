"""A bill as Markdown, for a weekly mail.

In: a `Bill`. Out: text.
"""

from __future__ import annotations

from servingplan.reporting.bill import Bill
from servingplan.reporting.bill_rows import cells, heads, left_out, remarks, sentences, title_words
from servingplan.reporting.markdown import escaped, markdown_table


def bill_markdown(found: Bill) -> str:
    """The whole mail."""
    lines = [f"### {escaped(found.plan.key)}: the bill", "", escaped(title_words(found)), ""]
    lines += [*markdown_table(heads(found), [cells(found, line) for line in found.lines]), ""]
    said = (*sentences(found), *(f"Left out of all lines: {each}." for each in left_out(found)), *remarks(found))
    return "\n".join([*lines, *(f"- {escaped(sentence)}" for sentence in said)])
