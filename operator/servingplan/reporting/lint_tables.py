"""What was found about a ScaledObject, as people read it in a terminal. Decides nothing."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.migrating.lint import Linted
from servingplan.reporting.lint import hours
from servingplan.reporting.local import DASH, short_date
from servingplan.reporting.tables import plain_table, problems_view

_NUMBERS = ("replicas", "hours active", "hours meant")


def linted_view(one: Linted) -> RenderableType:
    """The triggers with their hours, then what is wrong, then what is good to know."""
    found = one.scaled_object
    title = Text.assemble((f"{found.namespace}/{found.name}", "bold"), f"  {_range(one)}, scales {found.target}")
    parts: list[RenderableType] = [title]
    if one.courses:
        table = plain_table("trigger", "start", "end", "timezone", *_NUMBERS, numbers=_NUMBERS)
        for course in one.courses:
            trigger = course.trigger
            cells = (trigger.start.text, trigger.end.text, trigger.zone.key, str(trigger.replicas))
            table.add_row(str(trigger.index), *cells, f"{hours(course.active):,.1f}", f"{hours(course.intended):,.1f}")
        parts += ["", table]
    wrong = [finding.problem for finding in one.findings if not finding.note]
    notes = [finding.problem for finding in one.findings if finding.note]
    for heading, problems in (("Findings", wrong), ("Notes", notes)):
        if problems:
            parts += ["", problems_view(problems, heading=heading)]
    return Group(*parts)


def _range(one: Linted) -> str:
    zone = one.courses[0].trigger.zone if one.courses else one.start.tzinfo
    days = [instant.astimezone(zone).date() for instant in (one.start, one.end)]
    return f" {DASH} ".join(f"{short_date(day)} {day.year}" for day in days)
