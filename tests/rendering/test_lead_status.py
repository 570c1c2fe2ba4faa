"""``status.leadTime`` on the wire and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from servingplan.planning.lead import Rises, RiseSample, RunningRise, Stages, effective_lead
from servingplan.planning.plan import Lead
from servingplan.rendering.lead import lead_to_wire, rises_from_wire

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
LEAD = Lead(declared=timedelta(minutes=10), margin=Fraction(20, 100), maximum=timedelta(minutes=30))


def test_what_was_learned_is_shown_and_read_back() -> None:
    stages = Stages(scheduling=timedelta(seconds=4), pulling=timedelta(minutes=1), engine=timedelta(minutes=14))
    sample = RiseSample(decided=datetime(2026, 12, 1, 6, 48, tzinfo=UTC), stages=stages)
    running = RunningRise(decided=datetime(2026, 12, 1, 11, 58, 0, 250_000, tzinfo=UTC), before=2, after=5)
    rises = Rises(fingerprint="0123456789abcdef", samples=(sample,), running=(running,))
    wire = lead_to_wire(effective_lead(LEAD, rises, NOW), rises)
    assert wire == {
        "effective": "18m5s",
        "learned": {"p95": "15m4s", "rises": 1, "slowest": "engine"},
        "fingerprint": "0123456789abcdef",
        "samples": [
            {"decided": "2026-12-01T06:48:00Z", "scheduling": "4s", "pulling": "1m", "engine": "14m"},
        ],
        "running": [{"decided": "2026-12-01T11:58:00.250000Z", "from": 2, "to": 5}],
    }
    assert rises_from_wire({"leadTime": wire}) == rises


def test_where_nothing_was_learned_only_the_lead_is_shown() -> None:
    wire = lead_to_wire(effective_lead(LEAD, Rises(), NOW), Rises(fingerprint="0123456789abcdef"))
    assert wire == {"effective": "12m"}
    assert rises_from_wire({"leadTime": wire}) == rises_from_wire({}) == Rises()


def test_what_is_read_back_from_a_status_never_changes_again() -> None:
    odd = Stages(scheduling=timedelta(seconds=4.4), pulling=timedelta(0), engine=timedelta(minutes=9, seconds=0.7))
    rises = Rises(fingerprint="a", samples=(RiseSample(decided=NOW, stages=odd),))
    once = lead_to_wire(effective_lead(LEAD, rises, NOW), rises)
    again = rises_from_wire({"leadTime": once})
    assert lead_to_wire(effective_lead(LEAD, again, NOW), again)["samples"] == once["samples"]
