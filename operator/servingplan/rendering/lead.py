"""``status.leadTime``: the lead in effect, what was learned, and the rises that the next decision must remember.

In: an `EffectiveLead` and `Rises`. Out: plain JSON, and back. Durations are whole seconds; instants are absolute, so
that nothing in it moves by itself. At most 19 short entries of one engine: a new fingerprint starts an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from servingplan.planning.lead import STAGES, EffectiveLead, Rises, RiseSample, RunningRise, Stages
from servingplan.planning.units import format_duration, parse_duration
from servingplan.rendering.times import parse_wire_time, wire_time

Json = dict[str, Any]


def lead_to_wire(effective: EffectiveLead, rises: Rises) -> Json:
    """``leadTime`` as the API shows it; what is empty is left out."""
    wire: Json = {"effective": format_duration(_whole_seconds(effective.lead))}
    if effective.learned is not None:
        wire["learned"] = {"p95": format_duration(_whole_seconds(effective.learned)), "rises": effective.rises}
        if effective.slowest is not None:
            wire["learned"]["slowest"] = effective.slowest
    if rises.samples or rises.running:
        wire["fingerprint"] = rises.fingerprint
    if rises.samples:
        wire["samples"] = [_sample_to_wire(sample) for sample in rises.samples]
    if rises.running:
        wire["running"] = [
            {"decided": wire_time(rise.decided), "from": rise.before, "to": rise.after} for rise in rises.running
        ]
    return wire


def rises_from_wire(status: Mapping[str, Any]) -> Rises:
    """What a status remembers of rises; nothing where it was written before there was anything to remember."""
    wire = status.get("leadTime", {})
    return Rises(
        fingerprint=wire.get("fingerprint", ""),
        samples=tuple(_sample_from_wire(each) for each in wire.get("samples", ())),
        running=tuple(
            RunningRise(decided=parse_wire_time(each["decided"]), before=each["from"], after=each["to"])
            for each in wire.get("running", ())
        ),
    )


def _sample_to_wire(sample: RiseSample) -> Json:
    stages = {stage: format_duration(getattr(sample.stages, stage)) for stage in STAGES}
    return {"decided": wire_time(sample.decided), **stages}


def _sample_from_wire(wire: Mapping[str, str]) -> RiseSample:
    stages = Stages(**{stage: parse_duration(wire[stage]) for stage in STAGES})
    return RiseSample(decided=parse_wire_time(wire["decided"]), stages=stages)


def _whole_seconds(duration: timedelta) -> timedelta:
    return timedelta(seconds=round(duration.total_seconds()))
