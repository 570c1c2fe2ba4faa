"""A plan against a profile: as rows for the terminal, and as a document.

In: a `Comparison`. Out: renderables and plain JSON. Decides nothing.
"""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.planning.plan import WEEKDAYS, Plan
from servingplan.planning.units import format_rate
from servingplan.profiling.comparison import Comparison, Stretch
from servingplan.reporting.local import DASH, weekday_spans
from servingplan.reporting.profile_rows import rate_words
from servingplan.reporting.tables import plain_table

_NUMBERS = ("stated/s", "seen/s")


def difference_view(plan: Plan, found: Comparison) -> RenderableType:
    """Where plan and profile differ, the worst first, and what that costs."""
    parts: list[RenderableType] = [Text(f"{plan.key} against what was observed", style="bold"), ""]
    if found.stretches:
        parts += [_stretches(found), ""]
    if found.tokens:
        table = plain_table("Tokens a request", "", "declared", "observed", numbers=("declared", "observed"))
        for each in found.tokens:
            table.add_row(each.side, each.quantile, f"{each.declared:,}", f"{each.observed:,}")
        parts += [table, ""]
    return Group(*parts, _summary(found))


def _stretches(found: Comparison) -> RenderableType:
    table = plain_table("Days", "local time", "asked by", *_NUMBERS, "replicas", numbers=_NUMBERS)
    for each in sorted(found.stretches, key=lambda one: one.declared - one.needed):
        short = each.needed > each.declared
        table.add_row(
            weekday_spans(each.days),
            f"{_clock(each.start)}{DASH}{_clock(each.end)}",
            each.source,
            "stated" if each.rate is None else format_rate(each.rate),
            rate_words(each.observed),
            Text(f"{each.declared}, needs {each.needed}", "bold red" if short else "yellow"),
        )
    return table


def _summary(found: Comparison) -> Text:
    if not found.stretches and not found.tokens:
        return Text("The plan asks for what is needed.", style="green")
    words = f"{found.short_hours} hours of the week have too few replicas; "
    words += f"{found.spare_hours:,} replica-hours are too many."
    mend = " `-o patch` prints what to edit." if found.patch else " Nothing to edit by itself: see the rows."
    return Text(words + mend)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def difference_document(plan: Plan, found: Comparison) -> dict[str, Any]:
    """The same as plain JSON."""
    return {
        "plan": {"namespace": plan.namespace, "name": plan.name},
        "timeZone": plan.zone.key,
        "differences": [_document(each) for each in found.stretches],
        "tokens": [
            {"side": each.side, "quantile": each.quantile, "declared": each.declared, "observed": each.observed}
            for each in found.tokens
        ],
        "shortHoursPerWeek": found.short_hours,
        "spareReplicaHoursPerWeek": found.spare_hours,
        "patch": found.patch,
    }


def _document(each: Stretch) -> dict[str, Any]:
    return {
        "days": [WEEKDAYS[day] for day in each.days],
        "start": _clock(each.start),
        "end": _clock(each.end),
        "because": each.source,
        "declared": {"requestsPerSecond": None if each.rate is None else float(each.rate), "replicas": each.declared},
        "observed": {"requestsPerSecond": float(f"{each.observed:.4g}"), "replicas": each.needed},
    }
