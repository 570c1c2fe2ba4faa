"""The cells and sentences of a bill: the same in the terminal, in a mail and on the page.

In: a `Bill`. Out: text. Knows no layout.
"""

from __future__ import annotations

import math

from servingplan.planning.units import format_duration
from servingplan.rendering.times import local_time
from servingplan.reporting.bill import Bill, Line, Meets
from servingplan.reporting.local import DASH, clock_time, short_date

CHEAP_BY_MISSING = "cheaper by missing the objective"

_WORDS = {Meets.YES: "yes", Meets.NO: "no", Meets.UNCLEAR: "unclear"}
_SMALLEST = 1e-6
"""Of a hundredth of a per cent: what floating point leaves of a whole number of them."""


def title_words(found: Bill) -> str:
    """``Mon 23 Nov 2026 00:00 to Mon 30 Nov 2026 00:00, Europe/Berlin: 168 of 168 hours count``."""
    zone = found.plan.zone
    start, end = (
        f"{short_date(each.astimezone(zone).date())} {each.astimezone(zone).year} {clock_time(each, zone)}"
        for each in (found.start, found.end)
    )
    return f"{start} to {end}, {zone.key}: {found.counted:,.4g} of {found.hours:,.4g} hours count"


def heads(found: Bill) -> tuple[str, ...]:
    """The heads of the columns; all but the first and the last are figures."""
    cost = () if found.gpu_hour is None else ("cost",)
    share = "objective kept" if found.share is None else f"{100 * found.share:g} % kept"
    return ("", "GPU-hours", *cost, "against planned", "measured", "modelled", share)


def cells(found: Bill, line: Line) -> tuple[str, ...]:
    """One line, by head."""
    cost = found.cost(line)
    kept = DASH if line.meets is None else _WORDS[line.meets]
    return (
        line.name,
        f"{line.gpu_hours:,.1f}",
        *(() if cost is None else (f"{cost:,.2f}",)),
        _against(found, line),
        DASH if line.measured is None else _bounds(line.measured.at_least, line.measured.at_most),
        DASH if line.modelled is None else _percent(line.modelled),
        f"{kept}: {CHEAP_BY_MISSING}" if found.cheap_by_missing(line) else kept,
    )


def _against(found: Bill, line: Line) -> str:
    first = found.lines[0]
    if line is first or not first.gpu_hours:
        return ""
    return f"{100 * (line.gpu_hours / first.gpu_hours - 1):+.1f} %"


def sentences(found: Bill) -> tuple[str, ...]:
    """How the plan's hours come about over all of the days, and what the engines counted, limit by limit."""
    hours = found.planned
    parts = f"{hours.required:,.1f} required, {hours.leading:,.1f} lead, {hours.trailing:,.1f} trail"
    planned = f"Planned over all {found.hours:,.4g} hours: {hours.planned:,.1f} GPU-hours: {parts}."
    measured = next((line.measured for line in found.lines if line.measured is not None), None)
    if measured is None:
        return (planned,)
    limits = {name: format_duration(objective.limit) for name, objective in found.plan.workload.objectives.stated}
    shares = ", ".join(
        f"{name} within {limits[name]} {_bounds(kept.at_least, kept.at_most)}"
        for name, kept in measured.by_objective.items()
    )
    return (
        planned,
        f"Measured over {measured.requests:,.0f} finished requests: {shares}. How many kept all at once histograms "
        f"do not tell: {_bounds(measured.at_least, measured.at_most)}.",
    )


def left_out(found: Bill) -> tuple[str, ...]:
    """Hours in no line, and why."""
    zone = found.plan.zone
    return tuple(
        f"{local_time(span.start, zone)} to {local_time(span.end, zone)}: {span.why}" for span in found.left_out
    )


def remarks(found: Bill) -> tuple[str, ...]:
    """What each line is, and what else must be known to read them."""
    return tuple(f"{text}." for text in (*(f"{line.name}: {line.what}" for line in found.lines), *found.remarks))


def _bounds(at_least: float, at_most: float) -> str:
    low, high = _percent(at_least), _percent(at_most)
    return low if low == high else f"{low} to {high}"


def _percent(share: float) -> str:
    """Rounded down: 99.996 % are not all."""
    return f"{math.floor(share * 10_000 + _SMALLEST) / 100:.2f} %"
