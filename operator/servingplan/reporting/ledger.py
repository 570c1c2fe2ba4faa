"""Past decisions, from a plan's ledger: what was in force at an instant and why, and what was decided since.

In: the entries of a ledger, an instant, the plan's zone. Out: a `Past` and documents; no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.errors import InputError, Problem
from servingplan.planning.ledger import Entry, InForce, in_force
from servingplan.planning.reasons import Reason
from servingplan.rendering.times import local_time, wire_time

Document = dict[str, Any]

_STATES = {Reason.SUSPENDED.value: "suspended", Reason.INVALID.value: "invalid"}
"""What a plan was, in one word, where the operator did not act; others are told by their reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanName:
    """Which plan, and the zone that its people live in."""

    namespace: str
    name: str
    zone: ZoneInfo

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def document(self) -> Document:
        """How every document begins."""
        return {"plan": {"namespace": self.namespace, "name": self.name}, "timeZone": self.zone.key}


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was in force at an instant, which lies in the past."""

    plan: PlanName
    at: datetime
    held: InForce


def past(plan: PlanName, entries: Sequence[Entry], at: datetime) -> Past:
    """The decision that was in force at `at`. Raises InputError where the ledger begins later, or is empty."""
    held = in_force(entries, at)
    if held is not None:
        return Past(plan=plan, at=at, held=held)
    when = local_time(at, plan.zone)
    if not entries:
        message = (
            f"{plan.key} has no ledger, so nothing is known of {when}: it begins with the first decision after the "
            "operator got one (--ledger-days above 0, rights on ConfigMaps)"
        )
        raise InputError(Problem(path="", reason="NoLedger", message=message))
    first = entries[0]
    was = "" if first.before is None else f" Until then {first.before} were asked for."
    message = f"the ledger of {plan.key} begins {local_time(first.time, plan.zone)}, after {when}.{was}"
    raise InputError(Problem(path="", reason="BeforeLedger", message=message))


def state(entry: Entry) -> str:
    """Why an entry's decision was not carried out, in one word or two; empty where it was."""
    return entry.reason and _STATES.get(entry.reason, f"not acting ({entry.reason})")


def remarks(found: Past) -> Iterator[str]:
    """What the numbers alone do not tell, in sentences."""
    held, zone = found.held, found.plan.zone
    entry = held.entry
    if entry.reason:
        yield f"{state(entry)} since {local_time(held.since, zone)}: {entry.note}"
    if entry.current is None:
        kept = "what was set" if held.current is None else f"the {held.current} that were set"
        yield f"nothing could be decided: {kept} stayed, as far as nobody else scaled"
    elif entry.current != entry.desired:
        yield f"{entry.desired} were asked for, {entry.current} were set"
    if entry.behind is not None:
        yield f"the clock had gone back: {local_time(entry.behind, zone)} was written down before this"
    if held.unwritten and held.following is not None:
        yield f"what came between this and {local_time(held.following.time, zone)} was not written down"


def past_document(found: Past) -> Document:
    """A past decision as JSON; instants in UTC."""
    held = found.held
    return {
        **found.plan.document,
        "at": wire_time(found.at),
        "entry": entry_document(held.entry),
        "since": wire_time(held.since),
        "until": None if held.following is None else wire_time(held.following.time),
        "next": None if held.following is None else entry_document(held.following),
        "remarks": list(remarks(found)),
    }


def history_document(plan: PlanName, entries: Sequence[Entry]) -> Document:
    """A ledger as JSON, the oldest entry first."""
    return {**plan.document, "entries": [entry_document(entry) for entry in entries]}


def entry_document(entry: Entry) -> Document:
    """An entry as JSON; what nobody knew is left out."""
    fields = {
        "time": wire_time(entry.time),
        "generation": entry.generation,
        "before": entry.before,
        "desired": entry.desired,
        "required": entry.required,
        "floor": entry.floor,
        "current": entry.current,
        "ready": entry.ready,
        "because": entry.because or None,
        "reason": entry.reason or None,
        "note": entry.note or None,
        "behind": None if entry.behind is None else wire_time(entry.behind),
        "trail": [dict(step) for step in entry.trail] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
