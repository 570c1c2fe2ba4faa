"""A plan's coming days as one self-contained page.

In: an outlook. Out: HTML with the chart and the tables of the terminal inside, nothing loaded from elsewhere.
"""

from __future__ import annotations

from servingplan.planning.units import format_duration
from servingplan.reporting.chart import chart, inline
from servingplan.reporting.hours import MONTH_HOURS
from servingplan.reporting.outlook import Outlook
from servingplan.reporting.pages import render
from servingplan.reporting.rows import hour_rows, level_rows, move_rows, title_words
from servingplan.reporting.special_days import special_day_rows


def page(outlook: Outlook) -> str:
    """The page. Every text of the plan is escaped."""
    return render(
        "plan.html.j2",
        plan=outlook.plan,
        title=title_words(outlook),
        hours=outlook.hours,
        lead=format_duration(outlook.course.lead),
        picture=inline(chart(outlook, "svg")),
        levels=level_rows(outlook),
        moves=move_rows(outlook),
        hour_rows=hour_rows(outlook),
        special_days=special_day_rows(outlook),
        month_hours=MONTH_HOURS,
        warnings=outlook.warnings,
    )
