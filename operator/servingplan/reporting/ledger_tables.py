"""Past decisions as people read them in a terminal.

In: a `Past`, or entries of a ledger. Out: renderables, which the command line prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from servingplan.planning.ledger import Entry
from servingplan.rendering.times import local_time
from servingplan.reporting.ledger import Past, PlanName, remarks, state
from servingplan.reporting.tables import plain_table, told_trail

ARROW = "→"


def past_view(found: Past) -> RenderableType:
    """What held at an instant, since when and until when, what is to be said of it, and the trail."""
    entry, zone = found.held.entry, found.plan.zone
    shown = entry.desired if found.held.current is None else found.held.current
    title = Text.assemble((found.plan.key, "bold"), f"  {local_time(found.at, zone)}: ")
    title.append(f"{_number(shown)} replicas", "bold green")
    title.append(f", {state(entry) or entry.because}")
    parts: list[RenderableType] = [title, "", _span(found), _counts(entry)]
    parts += [Text(remark, style="yellow") for remark in remarks(found)]
    if entry.trail:
        parts += ["", told_trail(entry.trail)]
    return Group(*parts)


def history_view(plan: PlanName, entries: Sequence[Entry]) -> RenderableType:
    """Entries as rows, the newest last."""
    table = plain_table("when", "replicas", "required", "set", "ready", "because", numbers=("required", "set", "ready"))
    for entry in entries:
        table.add_row(
            local_time(entry.time, plan.zone),
            f"{_number(entry.before)} {ARROW} {_number(entry.desired)}",
            _number(entry.required),
            _number(entry.current),
            _number(entry.ready),
            _why(entry),
        )
    return Group(Text(plan.key, style="bold"), table)


def _why(entry: Entry) -> str:
    return "; ".join(text for text in (entry.because, f"{entry.reason}: {entry.note}" if entry.reason else "") if text)


def _span(found: Past) -> str:
    zone, following = found.plan.zone, found.held.following
    decided = f"Decided {local_time(found.held.entry.time, zone)}"
    if following is None:
        return f"{decided}, and nothing else since."
    then = f"{_number(following.desired)}, {_why(following)}"
    return f"{decided}, in force until {local_time(following.time, zone)} (then {then})."


def _counts(entry: Entry) -> str:
    required, floor, desired, current, ready = (
        _number(value) for value in (entry.required, entry.floor, entry.desired, entry.current, entry.ready)
    )
    return (
        f"{required} had to be ready, the schedule asked for {floor}, with feedback {desired}; {current} were set and "
        f"{ready} ready at that moment. Generation {entry.generation} of the plan."
    )


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
