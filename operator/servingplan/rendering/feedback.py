"""Conditions and status of the check against reality: whether engines are heard, and the demand within the plan.

In: a `Situation`. Out: two conditions, and what the next decision must remember of feedback, as JSON and back. Messages
hold what was rounded and dated by the planning layer, so that nothing in them moves with every poll.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from servingplan.planning.decision import Decision
from servingplan.planning.excess import Change
from servingplan.planning.learned import FEWEST_DAYS
from servingplan.planning.observation import Excess, Observation, Raised, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NOT_ASKED, NoSignals
from servingplan.planning.units import format_rate
from servingplan.rendering.situation import Condition, Situation, Status
from servingplan.rendering.times import local_time, parse_wire_time, wire_time

Json = dict[str, Any]

LONGEST_PATCH = 800
"""A patch that is longer is not for a condition's message; the CLI and the documentation say how to make it."""


def metrics_available(s: Situation) -> Condition | None:
    """False while engines, or the past that foresight needs, cannot be heard: nothing falls that was raised."""
    if s.plan is None or s.plan.feedback is None or s.observation is None:
        return None
    heard, young = s.observation.heard, _young(s, s.plan.feedback.stale_after)
    if heard is None:
        return None
    if heard == NOT_ASKED and (said := _said(s)) is not None:
        return said
    if isinstance(heard, NoSignals):
        return _silent(heard, all_young=bool(young) and young >= _ready(s))
    silent = {pod: trouble for pod, trouble in heard.missing.items() if pod not in young}
    if silent:
        pod, trouble = min(silent.items())
        more = f" (and {len(silent) - 1} more pods)" if len(silent) > 1 else ""
        message = f"pod {pod}: {trouble.message}{more}; the others count, and nothing is lowered"
        return _available(Status.FALSE, trouble.reason, message)
    return _of_the_past(s, s.plan, s.observation)


def _said(s: Situation, *reasons: Reason) -> Condition | None:
    """What was said last, for one of these reasons where some are given; it stands while nothing better is known."""
    said = s.previous.get("MetricsAvailable")
    if said is None or (reasons and said["reason"] not in reasons):
        return None
    return _available(Status(said["status"]), Reason(said["reason"]), said["message"])


HEARD = "every ready pod is heard"


def _of_the_past(s: Situation, plan: Plan, observation: Observation) -> Condition:
    """Every pod is heard: whether the past that foresight needs is known too. A restart changes nothing of it."""
    learned, trouble = observation.learned, observation.not_learned
    if plan.foresight is None:
        return _available(Status.TRUE, Reason.METRICS_HEARD, HEARD)
    if trouble is not None and trouble.reason is Reason.HISTORY_UNREADABLE:
        kept = "what was learned before counts" if learned is not None else "nothing falls that was raised"
        message = f"{HEARD}, but the last days cannot be read: {trouble.message}; {kept}"
        return _available(Status.FALSE, Reason.HISTORY_UNREADABLE, message)
    if learned is None:
        said = _said(s, Reason.METRICS_HEARD, Reason.HISTORY_SHORT, Reason.HISTORY_UNREADABLE)
        return said or _available(Status.UNKNOWN, Reason.HISTORY_AWAITED, f"{HEARD}; the last days are not read yet")
    if learned.days < FEWEST_DAYS:
        without = "no usual day" if learned.rising is not None else "no say"
        message = f"{HEARD}; fewer than two days of arrivals are known by the minute: foresight has {without} yet"
        return _available(Status.TRUE, Reason.HISTORY_SHORT, message)
    return _available(Status.TRUE, Reason.METRICS_HEARD, HEARD)


def _available(status: Status, reason: Reason, message: str) -> Condition:
    return Condition(type="MetricsAvailable", status=status, reason=reason, message=message)


def _silent(heard: NoSignals, *, all_young: bool) -> Condition:
    """Nobody is heard; of pods that are all young nothing else can be expected."""
    if all_young and heard.reason is Reason.METRICS_MISSING:
        message = "its pods have just become ready: they are heard with the next scrapes"
        heard = NoSignals(reason=Reason.METRICS_AWAITED, message=message)
    status = Status.UNKNOWN if heard.reason is Reason.METRICS_AWAITED else Status.FALSE
    return _available(status, heard.reason, heard.message)


def _young(s: Situation, stale_after: timedelta) -> frozenset[str]:
    """Pods that were not ready long enough to be missed: every rise has some, and none of them is news."""
    replicas = s.observation.replicas if s.observation is not None else ()
    return frozenset(
        replica.name
        for replica in replicas
        if replica.milestones.ready is not None and s.now - replica.milestones.ready < stale_after
    )


def _ready(s: Situation) -> frozenset[str]:
    ready = s.observation.in_stage(Stage.READY) if s.observation is not None else ()
    return frozenset(replica.name for replica in ready)


def demand_within_plan(s: Situation) -> Condition | None:
    """False while more requests arrive than the plan expects."""
    if s.plan is None or s.plan.feedback is None or s.decision is None:
        return None
    excess = s.decision.adjustment.excess
    if excess is None:
        return Condition(
            type="DemandWithinPlan",
            status=Status.TRUE,
            reason=Reason.DEMAND_AS_PLANNED,
            message="no more requests arrive than the plan expects",
        )
    message = (
        f"up to {format_rate(excess.rate)}/s arrive where {excess.source} plans {format_rate(excess.planned)}/s, since "
        f"{local_time(excess.since, s.plan.zone)}{_remedy(s.change)}"
    )
    return Condition(type="DemandWithinPlan", status=Status.FALSE, reason=Reason.DEMAND_ABOVE_PLAN, message=message)


def _remedy(change: Change | None) -> str:
    """What to write into the plan, as a patch that kubectl takes."""
    if change is None:
        return ""
    if change.patch is None:
        return f". Raise it in the profile's ConfigMap: {change.replicas} replicas would serve it"
    patch = json.dumps(change.patch, separators=(",", ":"))
    if len(patch) > LONGEST_PATCH:
        return f". Plan for {format_rate(change.rate)}/s there: {change.replicas} replicas would serve it"
    return f". To plan for it ({change.replicas} replicas): kubectl patch --type=merge -p '{patch}'"


# ---- status -----------------------------------------------------------------------------------------------


def feedback_to_wire(decision: Decision) -> Json:
    """``raised`` and ``excess`` as the API shows them; what is empty is left out."""
    wire: Json = {}
    raised, excess = decision.adjustment.raised, decision.adjustment.excess
    if raised is not None:
        wire["raised"] = {
            "extra": raised.extra,
            "replicas": raised.replicas,
            "since": wire_time(raised.since),
            "wantedAt": wire_time(raised.wanted_at),
        }
    if excess is not None:
        wire["excess"] = {
            "since": wire_time(excess.since),
            "seenAt": wire_time(excess.seen_at),
            "requestsPerSecond": float(excess.rate),
            "planned": float(excess.planned),
            "source": excess.source,
        }
    return wire


def raised_from_wire(status: Mapping[str, Any]) -> Raised | None:
    """What feedback raised and still holds."""
    wire = status.get("raised")
    if wire is None:
        return None
    return Raised(
        extra=wire["extra"],
        replicas=wire["replicas"],
        since=parse_wire_time(wire["since"]),
        wanted_at=parse_wire_time(wire["wantedAt"]),
    )


def excess_from_wire(status: Mapping[str, Any]) -> Excess | None:
    """The excess of arrivals that is remembered."""
    wire = status.get("excess")
    if wire is None:
        return None
    return Excess(
        since=parse_wire_time(wire["since"]),
        seen_at=parse_wire_time(wire["seenAt"]),
        rate=Decimal(str(wire["requestsPerSecond"])),
        planned=Decimal(str(wire["planned"])),
        source=wire["source"],
    )
