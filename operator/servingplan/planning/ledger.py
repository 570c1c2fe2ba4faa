"""The ledger: what was decided for a plan and when, so that past instants can be explained.

In: entries, one for each decision that means something else than the one before it. Out: which of them was in force
at an instant, since when things stood so, and the replicas that were set, as a step function. Decides nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from servingplan.planning.series import StepFunction, step_function


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One decision; None where nobody knew: a plan that does not resolve has no decision and counts no replicas.

    generation: of the plan's spec. before, desired: what was asked for until then, and from then on. required: what
    had to be ready. floor: what the schedule alone asked for. current: what the target was set to afterwards. ready:
    how many served. reason, note: what kept the operator from doing what it decided; empty where nothing did.
    trail: the decision's steps as the API shows them. behind: the newest instant that was written down already,
    where the clock had gone back behind it.
    """

    time: datetime
    generation: int
    before: int | None = None
    desired: int | None = None
    required: int | None = None
    floor: int | None = None
    current: int | None = None
    ready: int | None = None
    because: str = ""
    reason: str = ""
    note: str = ""
    trail: Sequence[Mapping[str, str]] = field(default=())
    behind: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The entry that held at an instant.

    since: when things began to stand so, for the same reason. current: what the target was set to, as far as anybody
    knew. following: what came next, None where nothing did yet.
    """

    entry: Entry
    since: datetime
    current: int | None
    following: Entry | None

    @property
    def unwritten(self) -> bool:
        """Whether something came between this entry and the next that was not written down."""
        return self.following is not None and self.following.before != self.entry.desired


def in_order(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries by instant; what was written while the clock had gone back says so."""
    return tuple(sorted(entries, key=lambda entry: entry.time))


def in_force(entries: Sequence[Entry], instant: datetime) -> InForce | None:
    """The entry that held at an instant, of entries in order; None before the first."""
    place = bisect_right(entries, instant, key=lambda entry: entry.time) - 1
    if place < 0:
        return None
    first = place
    while first and entries[first - 1].reason == entries[place].reason != "":
        first -= 1
    known = (entry.current for entry in reversed(entries[: place + 1]) if entry.current is not None)
    return InForce(
        entry=entries[place],
        since=entries[first].time,
        current=next(known, None),
        following=entries[place + 1] if place + 1 < len(entries) else None,
    )


def entries_since(entries: Sequence[Entry], instant: datetime) -> tuple[Entry, ...]:
    """What was in force at an instant, of entries in order, and all that came after."""
    held = in_force(entries, instant)
    first = instant if held is None else held.entry.time
    return tuple(entry for entry in entries if entry.time >= first)


def after(newest: datetime | None, entry: Entry) -> Entry:
    """The entry as it is written after what is there: marked where the clock had gone back."""
    return entry if newest is None or newest <= entry.time else replace(entry, behind=newest)


def replicas_held(entries: Sequence[Entry], end: datetime) -> StepFunction[int] | None:
    """What the target was set to, from the first entry that tells until `end`; None where none does before it.

    An entry that does not tell, as that of a plan that does not resolve, changes nothing: the replicas stay.
    """
    points = [(entry.time, entry.current) for entry in entries if entry.current is not None and entry.time < end]
    return (
        step_function([(time, current) for time, current in points if current is not None], end=end) if points else None
    )
