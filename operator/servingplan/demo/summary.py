"""What a demo showed, in figures: one document for programs, and the same as lines for people.

In: a record, the writes that were counted, and where it played. Out: plain JSON, or text. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from servingplan.demo.narration import hour_and_minute
from servingplan.demo.places import Access
from servingplan.demo.record import Record, minutes
from servingplan.planning.units import format_duration
from servingplan.rendering.times import wire_time
from servingplan.reporting.hours import GpuHours
from servingplan.reporting.local import short_date
from servingplan.reporting.outlook import hours_document

Json = dict[str, Any]

_KINDS = (("replicas", "/scale"), ("status", "/status"), ("events", "events."))
"""What a write was about, by a part of its resource's name; all else creates or changes objects."""


def summary(record: Record, *, factor: float, writes: Mapping[str, int]) -> Json:
    """The document of ``demo -o json``. Instants are those of the demo clock."""
    story = record.story
    return {
        "plan": {"namespace": story.plan.namespace, "name": story.plan.name},
        "timeZone": story.zone.key,
        "day": story.ramp_at.astimezone(story.zone).date().isoformat(),
        "demoClock": {"factor": factor, "parts": [[wire_time(p.start), wire_time(p.end)] for p in story.parts]},
        "ramp": _ramp(record),
        "fall": _fall(record),
        "restart": _restart(record),
        "gpuHours": {"day": hours_document(story.day.hours), "month": hours_document(story.outlook.month)},
        "writes": writes_by_kind(writes),
    }


def _ramp(record: Record) -> Json:
    story, asked_at, margin = record.story, record.asked_at, record.margin
    return {
        "time": wire_time(story.ramp_at),
        "from": story.rise.before,
        "to": story.rise.after,
        "leadTime": format_duration(story.outlook.course.lead),
        "askedAt": _second(asked_at),
        "readyAt": _second(record.ready_at),
        "marginMinutes": None if margin is None else round(minutes(margin), 1),
        "onTime": record.on_time,
    }


def _second(instant: datetime | None) -> str | None:
    return None if instant is None else wire_time(instant.replace(microsecond=0))


def _fall(record: Record) -> Json | None:
    fall = record.story.fall
    if fall is None:
        return None
    return {
        "start": wire_time(fall.start),
        "end": wire_time(fall.end),
        "from": fall.before,
        "to": fall.after,
        "readyAtEnd": record.ready,
    }


def _restart(record: Record) -> Json | None:
    """What the operator wrote after its restart, until the next change was due."""
    return {"writes": writes_by_kind(record.restart_writes)} if record.restarts else None


def writes_by_kind(writes: Mapping[str, int]) -> Json:
    """Writes of the operator: of replicas, of status, of events, of objects."""
    found = dict.fromkeys((*(kind for kind, _ in _KINDS), "objects"), 0)
    for resource, count in writes.items():
        kind = next((kind for kind, part in _KINDS if part in resource), "objects")
        found[kind] += count
    return {**found, "total": sum(found.values())}


def in_words(record: Record, document: Json) -> list[str]:
    """The same for people."""
    story = record.story
    day = short_date(story.ramp_at.astimezone(story.zone).date())
    return [
        f"What {story.plan.key} did on {day} ({document['demoClock']['factor']:g} times as fast)",
        "",
        *_rows(
            ("ramp", _ramp_words(record)),
            ("fall", _fall_words(record)),
            ("restart", _restart_words(record)),
            ("that day", _hours_words(story.day.hours)),
            ("a month", _hours_words(story.outlook.month)),
            ("writes", _writes_words(document["writes"])),
        ),
    ]


def _rows(*rows: tuple[str, str]) -> list[str]:
    return [f"  {name:<9} {words}" for name, words in rows if words]


def _ramp_words(record: Record) -> str:
    story, zone, margin = record.story, record.story.zone, record.margin
    asked = "not asked for" if record.asked_at is None else f"asked {hour_and_minute(record.asked_at, zone)}"
    ramp = hour_and_minute(story.ramp_at, zone)
    if record.ready_at is None or margin is None:
        return f"{story.rise.after} {asked}, never all ready: the ramp at {ramp} was MISSED"
    ready = hour_and_minute(record.ready_at, zone)
    how = f"{minutes(margin):.1f} min before" if record.on_time else f"{-minutes(margin):.1f} min AFTER"
    return f"{story.rise.after} {asked}, all ready {ready}: {how} the ramp at {ramp}"


def _fall_words(record: Record) -> str:
    fall, zone = record.story.fall, record.story.zone
    if fall is None:
        return ""
    span = f"from {hour_and_minute(fall.start, zone)} to {hour_and_minute(fall.end, zone)}"
    return f"{fall.before} to {fall.after} in steps {span}, never early"


def _restart_words(record: Record) -> str:
    if not record.restarts:
        return ""
    count = writes_by_kind(record.restart_writes)["replicas"]
    return f"the operator ended and began again: {count or 'no'} writes of replicas"


def _hours_words(hours: GpuHours) -> str:
    saved = 100 * (1 - hours.required / hours.flat_peak) if hours.flat_peak else 0
    return (
        f"{hours.required:,.0f} GPU-hours + {hours.leading:,.1f} lead + {hours.trailing:,.1f} trail "
        f"(flat {hours.flat_peak:,.0f}: {saved:.0f} % less)"
    )


def _writes_words(writes: Mapping[str, int]) -> str:
    words = ", ".join(f"{count} {kind}" for kind, count in writes.items() if kind != "total")
    return f"{writes['total']} by the operator: {words}"


def next_steps(record: Record, access: Access | None) -> Sequence[tuple[str, str]]:
    """What to try next: a command and what it does. access: to the cluster, where it still runs."""
    plan = record.story.plan
    if access is None:
        return (
            ("servingplan demo --keep", "the same, and the cluster stays to be played with"),
            ("servingplan demo --start-time 15m", "starts that outlast the lead: named before the ramp"),
            ("servingplan plan examples/worked-example.yaml", "two weeks of this plan at a glance"),
        )
    scoped = f"{access.kubectl} -n {plan.namespace}"
    name = plan.name
    return (
        *(((access.setup, "in another terminal, for all of the following"),) if access.setup is not None else ()),
        (f"{scoped} get splan", "the plan at a glance"),
        (f"{scoped} describe splan {name}", "its conditions, and why so many replicas"),
        (f"{scoped} scale deployment {name} --replicas=1", "break something: it is noticed and put right"),
        (f'{scoped} patch splan {name} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'', "the plan lets go"),
    )
