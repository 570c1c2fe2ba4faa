"""The plan's status: what the decision and the observation mean, as plain JSON.

In: a `Situation` and the status that is there. Out: the status to apply, and whether it differs in meaning from the
one that is there. Times of transition move only when a condition's status flips; counts that change by themselves
while pods come up are told apart from changes of meaning, so that they can be written less often.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from servingplan.planning.decision import Decision
from servingplan.planning.evidence import GROUPS
from servingplan.planning.lead import effective_lead
from servingplan.planning.observation import History, Observation, Ramp, Scale
from servingplan.planning.ownership import Contest
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.trail import Step
from servingplan.rendering.acceptance import variant_to_wire
from servingplan.rendering.capacity import capacity_to_wire
from servingplan.rendering.conditions import conditions
from servingplan.rendering.feedback import excess_from_wire, feedback_to_wire, raised_from_wire
from servingplan.rendering.lead import lead_to_wire, rises_from_wire
from servingplan.rendering.situation import Condition, Situation
from servingplan.rendering.times import local_weekday_time, parse_wire_time, wire_time

COUNTS = ("readyReplicas", "availableReplicas", "currentReplicas")
"""Fields that move while pods come and go, without any decision."""

TRAIL_LENGTH = 12
"""The most steps of a trail that the status keeps."""

REMEMBERED = (
    "desiredReplicas", "floorReplicas", "reserveReplicas", "lastScale", "ramp", "contested",
    "leadTime", "capacity", "gpuHours", "decision", "raised", "excess",
)  # fmt: skip
"""What stays while nothing can be decided: what was decided last, and what the next decision must remember. What
would speak of now or of the future does not: nobody counts replicas then, and what was announced will not happen."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """GPU-hours of a nominal month: as planned, and with the peak round the clock."""

    hours_planned: int
    hours_flat: int


def render_status(
    situation: Situation,
    previous: Mapping[str, Any],
    *,
    last_scale: Scale | None = None,
    figures: Figures | None = None,
    demo_clock: str = "",
) -> Json:
    """The status to apply. Where nothing can be decided, what is `REMEMBERED` stays beside the conditions."""
    status: Json = {
        "observedGeneration": situation.generation,
        "conditions": merged_conditions(
            conditions(situation), previous.get("conditions", ()), generation=situation.generation, now=situation.now
        ),
    }
    if demo_clock:
        status["demoClock"] = demo_clock
    plan, decision, observation = situation.plan, situation.decision, situation.observation
    if plan is None or decision is None or observation is None:
        return status | _remembered(previous)
    status |= _replicas(decision, observation) | _schedule(plan, decision, observation) | _figures(plan, figures)
    ramp = situation.missed or decision.ramp
    if ramp is not None and not plan.suspend:
        status["ramp"] = _ramp(ramp, observation)
    if last_scale is not None:
        status["lastScale"] = scale_to_wire(last_scale)
    if situation.contest is not None:
        status["contested"] = contest_to_wire(situation.contest)
    # With the rise that this very look found complete, not as the decision before it knew them.
    learned = effective_lead(plan.lead, situation.rises, situation.now)
    status |= {"leadTime": lead_to_wire(learned, situation.rises)} | feedback_to_wire(decision)
    status |= variant_to_wire(situation.variant)
    return status | {"decision": _trail(decision, previous, situation.generation)}


def _remembered(previous: Mapping[str, Any]) -> Json:
    """What stays while nothing can be decided. A rise that is disturbed tells nothing about the next one."""
    kept = {key: previous[key] for key in REMEMBERED if key in previous}
    if "leadTime" in kept:
        kept["leadTime"] = {key: value for key, value in kept["leadTime"].items() if key != "running"}
    return kept


def _replicas(decision: Decision, observation: Observation) -> Json:
    return {
        "desiredReplicas": decision.desired,
        "currentReplicas": observation.current or 0,
        "readyReplicas": observation.ready,
        "availableReplicas": observation.available,
        "floorReplicas": decision.asked,
        "reserveReplicas": decision.required.reserve,
    }


def _schedule(plan: Plan, decision: Decision, observation: Observation) -> Json:
    """What counts now and what comes next.

    A fall that is decided but not carried out (a replica drains; suspended, contested, refused) goes on whenever it
    may: its next step has no instant, and one that is shown would move with every look. What comes after it has one.
    """
    source = decision.required.source
    part: Json = {"window": source.name or source.reason.value.lower()}
    held = observation.current is not None and observation.current > decision.desired
    change = decision.scheduled_change if held else decision.next_change
    if change is not None:
        local = local_weekday_time(change.time, plan.zone)
        part["nextChange"] = {
            "time": wire_time(change.time),
            "replicas": change.replicas,
            "because": change.because,
            "summary": f"{change.replicas} at {local}",
        }
    return part


def _figures(plan: Plan, figures: Figures | None) -> Json:
    """What follows from the plan alone."""
    part: Json = {
        "capacity": capacity_to_wire(plan.capacity),
    }
    if figures is not None:
        part["gpuHours"] = {"monthPlanned": figures.hours_planned, "monthFlat": figures.hours_flat}
    return part


def _ramp(ramp: Ramp, observation: Observation) -> Json:
    return {
        "start": wire_time(ramp.start),
        "needed": ramp.needed,
        "verified": min(observation.ready, ramp.needed),
        "startBy": wire_time(ramp.start_by),
    }


def _trail(decision: Decision, previous: Mapping[str, Any], generation: int) -> list[Json]:
    """The trail of the last change: kept while the plan and the decision stay what they were."""
    new, old = trail_to_wire(decision.trail), list(previous.get("decision", ()))
    unknown = untold(new)
    same = previous.get("observedGeneration") == generation and substance(old, unknown) == substance(new, unknown)
    return old if same else new


_AWAITED = frozenset({Reason.NOT_KNOWN, Reason.METRICS_AWAITED})
"""What an operator that has just started says of signals: nothing yet."""

_SIZES = frozenset({"arrivals", "foresight"})
"""The signals that what was raised is held for, until they are known."""


def untold(trail: Sequence[Json]) -> frozenset[str]:
    """The steps that tell nothing yet, as after a restart: what signals said last stands until they do."""
    names = {step["name"] for step in trail if step["reason"] in _AWAITED}
    held = any(step["name"] == "extra" and step["reason"] == Reason.EXTRA_HELD for step in trail)
    return frozenset({"extra", *GROUPS} if "extra" in names or (held and names & _SIZES) else names & set(GROUPS))


def substance(trail: Sequence[Mapping[str, str]], unknown: Collection[str] = ()) -> list[tuple[str, str, str]]:
    """What tells one decision from another, of a trail as the API shows it; the steps that are `unknown` left out.

    How `asked` came about is true of the change alone, not of later looks; what signals measure moves with every poll.
    """
    return [
        (
            step["name"],
            "" if step["name"] in GROUPS else step["value"],
            "" if step["name"] == "asked" else step["reason"],
        )
        for step in trail
        if step["name"] not in unknown
    ]


def trail_to_wire(trail: Sequence[Step]) -> list[Json]:
    """The trail as the API shows it, at most `TRAIL_LENGTH` steps."""
    return [
        {"name": step.name, "value": step.value, "reason": step.reason.value, "message": step.message}
        for step in trail[:TRAIL_LENGTH]
    ]


def merged_conditions(
    found: Sequence[Condition], previous: Sequence[Mapping[str, Any]], *, generation: int, now: datetime
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
                "observedGeneration": generation,
                "lastTransitionTime": wire_time(now.replace(microsecond=0))
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
        raised=raised_from_wire(status),
        excess=excess_from_wire(status),
        rises=rises_from_wire(status),
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
