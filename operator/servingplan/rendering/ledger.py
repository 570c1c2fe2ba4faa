"""The decision ledger as it is kept: a ConfigMap of the plan's, one entry a line, one key a day.

In: a `Situation` and the statuses before and after it; the data of a live ConfigMap. Out: an `Entry`, and what to
write. A day's lines are compressed: a ledger is written with every decision, and five weeks of one are a few
kilobytes then. No clock, no I/O.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from servingplan.planning.ledger import Entry, after, in_order
from servingplan.planning.observation import Scale
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import (
    INSTALLATION_LABEL,
    MANAGER,
    PLAN_LABEL,
    Manifest,
    Owner,
    owner_reference,
)
from servingplan.rendering.situation import Situation
from servingplan.rendering.status import substance, trail_to_wire
from servingplan.rendering.times import parse_wire_time, wire_time

LARGEST_BYTES = 256 * 1024
"""The most that a ledger's data may take: a quarter of what a ConfigMap may hold. The oldest days go first."""

LARGEST_DAY_BYTES = 1024 * 1024
"""The most of one day, not compressed: a thousand decisions, as no schedule makes them. The oldest go first."""

MOST_LINES = 5000
"""The most entries of one day that are kept, and read: one every 17 seconds."""

LONGEST_TEXT = 512
"""The most characters of one message that are kept."""

_GZIP = 31
"""How zlib is told that it unpacks gzip, with the largest window."""

_COUNTS = ("before", "desired", "required", "floor", "current", "ready")
_TEXTS = ("because", "reason", "note")
_STEP = ("name", "value", "reason", "message")

Pages = Mapping[str, str]
"""``binaryData`` of the ConfigMap: by day in UTC, its lines, compressed and in base64."""

Change = dict[str, str | None]
"""What to change of the pages: None takes a day away."""


def ledger_name(plan_name: str) -> str:
    """The name of a plan's ledger."""
    return f"{plan_name}-decisions"


def ledger_manifest(plan_name: str, namespace: str, owner: Owner, installation: str, pages: Change) -> Manifest:
    """A new ledger. It goes with its plan, and no watch for profiles and calendars selects it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ledger_name(plan_name),
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/component": "decisions",
                "app.kubernetes.io/instance": plan_name,
                "app.kubernetes.io/managed-by": MANAGER,
                PLAN_LABEL: plan_name,
                INSTALLATION_LABEL: installation,
            },
            "ownerReferences": [owner_reference(owner)],
        },
        "binaryData": pages,
    }


def is_ledger_of(live: Mapping[str, Any], uid: str) -> bool:
    """Whether a ConfigMap with a ledger's name is the ledger of the plan with that UID."""
    return any(owner["uid"] == uid for owner in live["metadata"].get("ownerReferences", ()))


# ---- an entry ----


def entry_of(situation: Situation, old: Mapping[str, Any], scaled: Scale | None) -> Entry:
    """What is written down of a reconcile. old: the status before it. scaled: the change of replicas that it made."""
    decision, observation = situation.decision, situation.observation
    reason, note = _hindrance(situation)
    before = old.get("desiredReplicas")
    if decision is None or observation is None:
        return Entry(
            time=situation.now,
            generation=situation.generation,
            before=before,
            desired=before,
            reason=reason,
            note=note[:LONGEST_TEXT],
        )
    return Entry(
        time=situation.now,
        generation=situation.generation,
        before=before,
        desired=decision.desired,
        required=decision.required.replicas,
        floor=decision.asked,
        current=observation.current or 0,
        ready=observation.ready,
        because=(decision if scaled is None else scaled).because,
        reason=reason,
        note=note[:LONGEST_TEXT],
        trail=[{**step, "message": step["message"][:LONGEST_TEXT]} for step in trail_to_wire(decision.trail)],
    )


def meaning(entry: Entry) -> tuple[object, ...]:
    """What makes an entry another one than the one before it: not when, nor what moves while replicas start."""
    numbers = (entry.desired, entry.required, entry.floor, entry.current)
    return (entry.generation, entry.reason, *numbers, *substance(entry.trail))


def _hindrance(s: Situation) -> tuple[str, str]:
    """What keeps the operator from doing what it decides; empty words where nothing does."""
    if s.plan is None:
        return Reason.INVALID, "; ".join(f"{problem.path}: {problem.message}" for problem in s.problems)
    trouble = s.target_trouble or s.apply_trouble
    if trouble is not None:
        return trouble.reason, trouble.message
    if s.plan.suspend:
        return Reason.SUSPENDED, "the plan is suspended: nothing is written"
    if s.autoscaler is not None:
        return Reason.SCALED_BY_HPA, f"{s.autoscaler} scales the target: nothing is written"
    if s.contest is not None:
        return Reason.SECOND_WRITER, f"{s.contest.manager} writes replicas too, and last set {s.contest.value}"
    return "", ""


# ---- pages ----


def entries_of(pages: Pages) -> tuple[Entry, ...]:
    """All entries, in order. What cannot be read (somebody wrote it by hand) is passed over."""
    return in_order([entry for page in pages.values() for entry in map(_entry, _lines(page)) if entry is not None])


def last_entry(pages: Pages) -> Entry | None:
    """The newest entry: the last line of the last day that can be read. No other day is unpacked for it."""
    lines = _lines(pages[max(pages)]) if pages else []
    return next((entry for entry in map(_entry, reversed(lines)) if entry is not None), None)


def with_entries(pages: Pages, entries: Sequence[Entry], *, days: int) -> Change:
    """The change of the pages that adds entries, at least one, and keeps the last so many days that have any.

    Days far ahead go too: a clock was wrong then. It takes nothing else away, however far it was off.
    """
    newest = last_entry(pages)
    known = None if newest is None else newest.time
    by_day: dict[str, list[Entry]] = {}
    for entry in entries:
        by_day.setdefault(_day(entry.time), []).append(after(known, entry))
        known = entry.time if known is None else max(known, entry.time)
    written = {day: _page_with(pages.get(day, ""), added) for day, added in by_day.items()}
    horizon = _day(entries[-1].time + timedelta(days=days))
    others = sorted((day for day in pages if day not in written), reverse=True)
    ahead = [day for day in others if day > horizon]
    room, dropped, left = LARGEST_BYTES - _size(written), list[str](), days - len(written)
    for day in others[len(ahead) :]:
        room, left = room - len(day) - len(pages[day]), left - 1
        if room < 0 or left < 0:
            dropped.append(day)
    return {**written, **dict.fromkeys([*ahead, *dropped])}


def _size(pages: Pages) -> int:
    return sum(len(day) + len(page) for day, page in pages.items())


def _day(instant: datetime) -> str:
    return instant.astimezone(UTC).date().isoformat()


def _page_with(page: str, added: Sequence[Entry]) -> str:
    """A day with more entries, each in its place. Lines that are there are not read unless one goes before them."""
    lines = [*_lines(page), *map(_line, added)]
    if any(entry.behind is not None for entry in added):
        lines = [_line(entry) for entry in in_order([entry for entry in map(_entry, lines) if entry is not None])]
    lines = lines[-MOST_LINES:]
    size = sum(map(len, lines)) + len(lines)
    first = 0
    while size > LARGEST_DAY_BYTES:
        size -= len(lines[first]) + 1
        first += 1
    # The same lines are the same bytes: no instant in the header.
    packed = gzip.compress("\n".join(lines[first:]).encode(), mtime=0)
    return base64.b64encode(packed).decode()


def _lines(page: str) -> list[str]:
    """The lines of a page; of what no ledger wrote, no more than a ledger could hold."""
    try:
        packed = base64.b64decode(page)
        text = zlib.decompressobj(_GZIP).decompress(packed, LARGEST_DAY_BYTES)
        return text.decode().splitlines()[-MOST_LINES:]
    except (zlib.error, ValueError):
        return []


def _line(entry: Entry) -> str:
    counts = {name: getattr(entry, name) for name in _COUNTS if getattr(entry, name) is not None}
    texts = {name: getattr(entry, name) for name in _TEXTS if getattr(entry, name)}
    wire: dict[str, Any] = {"time": wire_time(entry.time), "generation": entry.generation, **counts, **texts}
    if entry.behind is not None:
        wire["behind"] = wire_time(entry.behind)
    if entry.trail:
        wire["trail"] = [[step[key] for key in _STEP] for step in entry.trail]
    return json.dumps(wire, separators=(",", ":"))


def _entry(line: str) -> Entry | None:
    try:
        wire = json.loads(line)
        counts = {name: int(wire[name]) for name in _COUNTS if name in wire}
        texts = {name: str(wire[name]) for name in _TEXTS if name in wire}
        return Entry(
            time=_instant(wire["time"]),
            generation=int(wire["generation"]),
            before=counts.get("before"),
            desired=counts.get("desired"),
            required=counts.get("required"),
            floor=counts.get("floor"),
            current=counts.get("current"),
            ready=counts.get("ready"),
            **texts,
            trail=tuple(dict(zip(_STEP, map(str, step), strict=True)) for step in wire.get("trail", ())),
            behind=_instant(wire["behind"]) if "behind" in wire else None,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _instant(text: str) -> datetime:
    """An instant with its offset. Raises ValueError, and OverflowError for one that UTC does not reach."""
    instant = parse_wire_time(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} has no offset")
    return instant.astimezone(UTC)
