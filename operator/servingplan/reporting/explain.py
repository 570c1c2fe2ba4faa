"""Why this many replicas: the decision's trail as a document.

In: a plan, an instant and where the schedule stands there. Out: the same decision that the operator makes, as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from servingplan.planning.decision import Decision, decide
from servingplan.planning.observation import History, Observation, Scale
from servingplan.planning.plan import Plan
from servingplan.planning.timeline import Direction
from servingplan.planning.units import format_duration
from servingplan.rendering.status import trail_to_wire
from servingplan.rendering.times import wire_time
from servingplan.reporting.hours import course, longest_fall

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is decided for a plan at an instant."""

    plan: Plan
    at: datetime
    decision: Decision


def explain(plan: Plan, at: datetime) -> Explanation:
    """The decision at `at` (aware) where the cluster followed the schedule until then."""
    changes = course(plan, at - longest_fall(plan.scale_down, plan.bounds.maximum) - _MOMENT, at).asked
    state = changes[-1]
    observation = Observation(current=state.replicas, ready=state.replicas, available=state.replicas)
    falling = state.direction is Direction.FALL and len(changes) > 1
    last = (
        Scale(time=state.time, before=changes[-2].replicas, after=state.replicas, because=state.because)
        if falling
        else None
    )
    return Explanation(plan=plan, at=at, decision=decide(plan, observation, History(last_scale=last), at))


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON; instants in UTC."""
    plan, decision = explanation.plan, explanation.decision
    document: dict[str, Any] = {
        "plan": {"namespace": plan.namespace, "name": plan.name},
        "timeZone": plan.zone.key,
        "at": wire_time(explanation.at),
        "desired": decision.desired,
        "asked": decision.asked,
        "required": decision.required.replicas,
        "because": decision.because,
        "lead": format_duration(decision.lead),
        "suspended": decision.suspended,
        "trail": trail_to_wire(decision.trail),
    }
    if decision.ramp is not None:
        ramp = decision.ramp
        document["ramp"] = {
            "start": wire_time(ramp.start),
            "needed": ramp.needed,
            "startBy": wire_time(ramp.start_by),
        }
    if decision.next_change is not None:
        change = decision.next_change
        document["nextChange"] = {
            "time": wire_time(change.time),
            "replicas": change.replicas,
            "because": change.because,
        }
    return document
