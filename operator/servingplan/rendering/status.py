"""The plan's status: what the decision and the observation mean, as plain JSON.

In: a `Situation` and the status that is there. Out: the status to apply, and whether it differs in meaning from the
one that is there. Times of transition move only when a condition's status flips; counts that change by themselves
while pods come up are told apart from changes of meaning, so that they can be written less often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servingplan.planning.decision import Decision, Step
from servingplan.planning.observation import History, Observation, Ramp, Scale
from servingplan.planning.ownership import Contest
from servingplan.planning.plan import Plan
from servingplan.planning.units import format_duration
from servingplan.rendering.conditions import Condition, Situation, conditions
from servingplan.rendering.times import local_weekday_time, parse_wire_time, wire_time

COUNTS = ("readyReplicas", "availableReplicas", "currentReplicas")
"""Fields that move while pods come and go, without any decision."""

TRAIL_LENGTH = 12
"""The most steps of a trail that the status keeps."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the status shows beside the decision. hours: GPU-hours of a nominal month, planned and flat."""

    hours_planned: int
    hours_flat: int
    demo_clock: str = ""


def render_status(
    situation: Situation, previous: Mapping[str, Any], *, last_scale: Scale | None, figures: Figures | None
) -> Json:
    """The status to apply. A plan that does not resolve keeps what was last known beside its conditions."""
    found = conditions(situation)
    status: Json = {
        "observedGeneration": situation.generation,
        "conditions": merged_conditions(found, previous.get("conditions", ()), situation),
    }
    plan, decision, observation = situation.plan, situation.decision, situation.observation
    if plan is None or decision is None or observation is None:
        kept = {key: value for key, value in previous.items() if key not in status}
        return {**kept, **status}
    status |= _replicas(decision, observation)
    status |= _schedule(plan, decision)
    ramp = situation.missed or decision.ramp
    if ramp is not None and not plan.suspend:
        status["ramp"] = _ramp(ramp, observation)
    status["leadTime"] = {"effective": format_duration(plan.lead.effective)}
    status["capacity"] = {
        "requestsPerSecond": float(plan.capacity.points[0].requests_per_second),
        "source": "plan",
    }
    status["decision"] = _trail(decision, previous)
    if last_scale is not None:
        status["lastScale"] = scale_to_wire(last_scale)
    if situation.contest is not None:
        status["contested"] = contest_to_wire(situation.contest)
    if figures is not None:
        status["gpuHours"] = {"monthPlanned": figures.hours_planned, "monthFlat": figures.hours_flat}
        if figures.demo_clock:
            status["demoClock"] = figures.demo_clock
    return status


def _replicas(decision: Decision, observation: Observation) -> Json:
    return {
        "desiredReplicas": decision.desired,
        "currentReplicas": observation.current or 0,
        "readyReplicas": observation.ready,
        "availableReplicas": observation.available,
        "floorReplicas": decision.asked,
        "reserveReplicas": decision.required.reserve,
    }


def _schedule(plan: Plan, decision: Decision) -> Json:
    source = decision.required.source
    part: Json = {"window": source.name or source.reason.value.lower()}
    if decision.next_change is not None:
        change = decision.next_change
        local = local_weekday_time(change.time, plan.zone)
        part["nextChange"] = {
            "time": wire_time(change.time),
            "replicas": change.replicas,
            "because": change.because,
            "summary": f"{change.replicas} at {local}",
        }
    return part


def _ramp(ramp: Ramp, observation: Observation) -> Json:
    return {
        "start": wire_time(ramp.start),
        "needed": ramp.needed,
        "verified": min(observation.ready, ramp.needed),
        "startBy": wire_time(ramp.start_by),
    }


def _trail(decision: Decision, previous: Mapping[str, Any]) -> list[Json]:
    """The trail of the last change: kept while the decision stays what it was."""
    new = trail_to_wire(decision.trail)
    old = list(previous.get("decision", ()))
    same = previous.get("desiredReplicas") == decision.desired and previous.get("floorReplicas") == decision.asked
    return old if same and old and _demand(old) == _demand(new) else new


def _demand(trail: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    return (trail[0].get("value", ""), trail[0].get("message", ""))


def trail_to_wire(trail: Sequence[Step]) -> list[Json]:
    """The trail as the API shows it, at most `TRAIL_LENGTH` steps."""
    return [
        {"name": step.name, "value": step.value, "reason": step.reason.value, "message": step.message}
        for step in trail[:TRAIL_LENGTH]
    ]


def merged_conditions(
    found: Sequence[Condition], previous: Sequence[Mapping[str, Any]], situation: Situation
) -> list[Json]:
    """Conditions with their times: a time moves only when the status flips."""
    before = {condition["type"]: condition for condition in previous}
    merged = []
    for condition in found:
        old = before.get(condition.type)
        flipped = old is None or old.get("status") != condition.status.value
        merged.append(
            {
                "type": condition.type,
                "status": condition.status.value,
                "reason": condition.reason.value,
                "message": condition.message[:MESSAGE_LENGTH],
                "observedGeneration": situation.generation,
                "lastTransitionTime": wire_time(situation.now.replace(microsecond=0))
                if flipped or old is None
                else old["lastTransitionTime"],
            }
        )
    return merged


MESSAGE_LENGTH = 2048
"""The most that a condition's message may hold; Kubernetes allows 32,768, a person reads less."""


def same_meaning(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """True where nothing but counts, and the words about them, differs."""
    return _meaning(new) == _meaning(old)


def _meaning(status: Mapping[str, Any]) -> Json:
    """The status without what moves by itself while pods come up."""
    meaning = {key: value for key, value in status.items() if key not in COUNTS}
    meaning["ramp"] = {key: value for key, value in status.get("ramp", {}).items() if key != "verified"}
    meaning["conditions"] = [
        (condition["type"], condition["status"], condition["reason"], condition.get("observedGeneration"))
        for condition in status.get("conditions", ())
    ]
    return meaning


def scale_to_wire(scale: Scale) -> Json:
    """``lastScale`` as the API shows it."""
    return {
        "time": wire_time(scale.time),
        "from": scale.before,
        "to": scale.after,
        "because": scale.because,
    }


def contest_to_wire(contest: Contest) -> Json:
    """``contested`` as the API shows it."""
    wire: Json = {
        "manager": contest.manager,
        "since": wire_time(contest.since),
        "lastWrite": wire_time(contest.last_write),
        "value": contest.value,
        "raises": contest.raises,
    }
    if contest.last_raise is not None:
        wire["lastRaise"] = wire_time(contest.last_raise)
    return wire


def history_from_wire(status: Mapping[str, Any]) -> History:
    """What the next decision must remember."""
    last, ramp = status.get("lastScale"), status.get("ramp")
    return History(
        last_scale=None
        if last is None
        else Scale(time=parse_wire_time(last["time"]), before=last["from"], after=last["to"], because=last["because"]),
        ramp=None
        if ramp is None
        else Ramp(
            start=parse_wire_time(ramp["start"]),
            needed=ramp["needed"],
            start_by=parse_wire_time(ramp["startBy"]),
        ),
    )


def contest_from_wire(status: Mapping[str, Any]) -> Contest | None:
    """How the contest over replicas stood."""
    contested = status.get("contested")
    if contested is None:
        return None
    last_raise = contested.get("lastRaise")
    return Contest(
        manager=contested["manager"],
        since=parse_wire_time(contested["since"]),
        last_write=parse_wire_time(contested["lastWrite"]),
        value=contested["value"],
        raises=contested["raises"],
        last_raise=None if last_raise is None else parse_wire_time(last_raise),
    )
