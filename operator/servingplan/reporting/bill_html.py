"""A bill as one self-contained page.

In: a `Bill`. Out: HTML with the cells and sentences of the terminal, nothing loaded from elsewhere.
"""

from __future__ import annotations

from servingplan.reporting.bill import Bill
from servingplan.reporting.bill_rows import cells, heads, left_out, remarks, sentences, title_words
from servingplan.reporting.pages import render


def page(found: Bill) -> str:
    """The page."""
    return render(
        "bill.html.j2",
        key=found.plan.key,
        title=title_words(found),
        heads=heads(found),
        rows=[(cells(found, line), found.cheap_by_missing(line)) for line in found.lines],
        sentences=sentences(found),
        left_out=left_out(found),
        remarks=remarks(found),
    )
