"""A bill as people read it in a terminal.

In: a `Bill`. Out: a renderable, which the command line prints.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.reporting.bill import Bill
from servingplan.reporting.bill_rows import cells, heads, left_out, remarks, sentences, title_words
from servingplan.reporting.tables import indented, plain_table


def bill_view(found: Bill) -> RenderableType:
    """The lines under each other, what is left out, and what must be known to read them."""
    columns = heads(found)
    view = plain_table(*columns, numbers=columns[1:-1])
    for line in found.lines:
        usual = "bold" if line is found.lines[0] else ""
        view.add_row(*cells(found, line), style="bold red" if found.cheap_by_missing(line) else usual)
    title = Text.assemble((found.plan.key, "bold"), f"  {title_words(found)}")
    parts: list[RenderableType] = [title, "", view, "", *map(Text, sentences(found))]
    if found.left_out:
        parts += ["", Text("Left out of all lines:", style="bold yellow")]
        parts += [indented(Text(each)) for each in left_out(found)]
    return Group(*parts, "", *(Text(remark, style="dim") for remark in remarks(found)))
