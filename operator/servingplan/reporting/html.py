"""A plan's coming days as one self-contained page.

In: an outlook. Out: HTML with the chart and the tables of the terminal inside, nothing loaded from elsewhere.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from servingplan.planning.units import format_duration
from servingplan.reporting.chart import chart
from servingplan.reporting.hours import MONTH_HOURS
from servingplan.reporting.outlook import Outlook
from servingplan.reporting.rows import hour_rows, level_rows, move_rows, title_words


def page(outlook: Outlook) -> str:
    """The page. Every text of the plan is escaped."""
    environment = Environment(
        loader=PackageLoader("servingplan.reporting", "templates"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("plan.html.j2").render(
        plan=outlook.plan,
        title=title_words(outlook),
        hours=outlook.hours,
        lead=format_duration(outlook.course.lead),
        picture=_inline(chart(outlook, "svg").decode()),
        levels=level_rows(outlook),
        moves=move_rows(outlook),
        hour_rows=hour_rows(outlook),
        month_hours=MONTH_HOURS,
        warnings=outlook.warnings,
    )


def _inline(svg: str) -> str:
    """Without the prolog of a document of its own."""
    return svg[svg.index("<svg") :]
