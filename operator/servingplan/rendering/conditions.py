"""Conditions: what a person on call reads, as views of the decision and the observation.

In: a `Situation`, everything that one reconcile found out. Out: conditions, each by one small rule. A rule returns
None where its feature is not configured. Messages hold absolute instants only: nothing in them changes by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from servingplan.planning.decision import at_risk_from
from servingplan.planning.observation import Observation, Ramp, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.units import format_duration
from servingplan.rendering.acceptance import engine_up_to_date, variant_accepted
from servingplan.rendering.capacity import capacity_current
from servingplan.rendering.drain import drain
from servingplan.rendering.feedback import demand_within_plan, metrics_available
from servingplan.rendering.progress import first_trouble, hold_up, progress, stuck_replicas
from servingplan.rendering.situation import Condition, Situation, Status
from servingplan.rendering.times import local_time

Rule = Callable[[Situation], Condition | None]


def conditions(situation: Situation) -> tuple[Condition, ...]:
    """All conditions that apply, in a fixed order."""
    found = (rule(situation) for rule in RULES)
    return tuple(condition for condition in found if condition is not None)


def plan_valid(s: Situation) -> Condition:
    """False where the plan does not resolve; Unknown where a calendar has run out."""
    if s.plan is None:
        more = f" (and {len(s.problems) - 5} more)" if len(s.problems) > 5 else ""
        text = "; ".join(str(problem) for problem in s.problems[:5]) + more
        return _false("PlanValid", Reason.INVALID, f"{text}. The replicas stay as they are.")
    expired = [c for c in s.plan.calendars if c.valid_until is not None and _has_passed(c.valid_until, s)]
    if expired:
        text = ", ".join(f"{c.name} ended on {c.valid_until}" for c in expired)
        message = f"calendar {text}: later dates are treated as ordinary days. Extend it and its validUntil."
        return _unknown("PlanValid", Reason.CALENDAR_EXPIRED, message)
    if s.plan.warnings:
        text = "; ".join(str(warning) for warning in s.plan.warnings[:5])
        return _true("PlanValid", Reason.WARNINGS, f"the plan acts, but: {text}")
    return _true("PlanValid", Reason.RESOLVED, "the plan resolves")


def _has_passed(day: date, s: Situation) -> bool:
    return s.plan is not None and s.now.astimezone(s.plan.zone).date() > day


def target_resolved(s: Situation) -> Condition | None:
    """False where the target is missing, cannot be scaled, or belongs to somebody else."""
    if s.target_trouble is not None:
        return _false("TargetResolved", s.target_trouble.reason, s.target_trouble.message)
    if s.plan is None or s.observation is None:
        return None
    return _true("TargetResolved", Reason.TARGET_FOUND, f"{s.target_name} is held by this plan")


def replicas_owned(s: Situation) -> Condition | None:
    """False while somebody else writes replicas too."""
    if s.plan is None or s.target_trouble is not None:
        return None
    if s.autoscaler is not None:
        remedy = (
            "Delete it: the replicas of an engine are the plan's"
            if s.plan.engine is not None
            else f"Point spec.targetRef of a new plan at {s.autoscaler} to let the plan set its minimum, or delete it"
        )
        message = f"{s.autoscaler} scales {s.target_name} too, so nothing is written. {remedy}."
        return _false("ReplicasOwned", Reason.SCALED_BY_HPA, message)
    if s.contest is not None:
        message = (
            f"{s.contest.manager} wrote replicas too, last seen {local_time(s.contest.last_write, s.plan.zone)}. "
            "Until it has been quiet for 15m the operator raises to what the plan asks for and never lowers. "
            "To run fewer than the plan: spec.suspend, or an override."
        )
        return _false("ReplicasOwned", Reason.SECOND_WRITER, message)
    if s.plan.target_ref is not None and s.plan.target_ref.is_floor:
        return _true("ReplicasOwned", Reason.FLOOR_HELD, f"the minimum of {s.target_name} is set by this plan")
    return _true("ReplicasOwned", Reason.SOLE_WRITER, "nobody else writes replicas")


def ready_by_next_ramp(s: Situation) -> Condition | None:
    """From the start of a ramp's lead on, whether its replicas come up in time, and what holds them up."""
    if s.plan is None or s.decision is None or s.observation is None or s.plan.suspend:
        return None
    ramp = s.decision.ramp
    if s.missed is not None:
        start = local_time(s.missed.start, s.plan.zone)
        message = f"{progress(s.observation, s.missed.needed)} for the ramp that began at {start}{hold_up(s)}"
        return _false("ReadyByNextRamp", Reason.RAMP_MISSED, message)
    if s.decision.learned.capped:
        return _false("ReadyByNextRamp", Reason.LEAD_CAPPED, s.decision.learned.cap_message)
    if ramp is None:
        return _true("ReadyByNextRamp", Reason.NO_RAMP_DUE, "no ramp within the lead")
    if s.observation.ready >= ramp.needed:
        message = f"{ramp.needed} of {ramp.needed} verified for {local_time(ramp.start, s.plan.zone)}"
        return _true("ReadyByNextRamp", Reason.RAMP_READY, message)
    return _ramp_in_progress(s, s.plan, s.observation, ramp)


def _ramp_in_progress(s: Situation, plan: Plan, observation: Observation, ramp: Ramp) -> Condition:
    """A ramp whose replicas are not all verified: asked for too late, held up, at risk, or starting."""
    start = local_time(ramp.start, plan.zone)
    message = f"{progress(observation, ramp.needed)} for the ramp at {start}{hold_up(s)}"
    if _came_late(s, ramp):
        message += f". It came closer than the lead: it should have started by {local_time(ramp.start_by, plan.zone)}"
        return _false("ReadyByNextRamp", Reason.LEAD_TOO_SHORT, message)
    if trouble := first_trouble(observation):
        return _false("ReadyByNextRamp", trouble.reason, message)
    if stuck_replicas(s):
        return _false("ReadyByNextRamp", Reason.START_STUCK, message)
    if s.now >= at_risk_from(plan, ramp):
        return _false("ReadyByNextRamp", Reason.RAMP_AT_RISK, message)
    return _unknown("ReadyByNextRamp", Reason.STARTING, message)


LATE_AFTER = timedelta(minutes=1)
"""A rise that is first seen so long after its start-by came closer than the lead; less is the operator's own delay."""


def _came_late(s: Situation, ramp: Ramp) -> bool:
    """Whether a ramp came closer than its lead: said when it is first seen, and as long as it is the same ramp.

    Replicas that were there before it was seen were asked for in time, by the ramp before it or by a fall.
    """
    if s.begun is not None and s.begun.start == ramp.start and s.begun.needed >= ramp.needed:
        return s.was("ReadyByNextRamp", Reason.LEAD_TOO_SHORT)
    asked_before = s.found is not None and s.found >= ramp.needed
    return not asked_before and s.now - ramp.start_by > LATE_AFTER


def reserve_intact(s: Situation) -> Condition | None:
    """False where the reserve is not there, or where one node holds more than the reserve can replace."""
    if s.plan is None or s.decision is None or s.observation is None or s.plan.suspend:
        return None
    required, ready = s.decision.required, s.observation.ready
    if required.reserve == 0:
        return None
    if ready < required.replicas:
        spare = max(0, ready - required.need)
        message = f"{spare} of {required.reserve} in reserve: {progress(s.observation, required.replicas)}{hold_up(s)}"
        return _false("ReserveIntact", Reason.RESERVE_MISSING, message)
    if concentrated := _concentration(s, s.observation, required.need):
        return _false("ReserveIntact", Reason.NODE_CONCENTRATION, concentrated)
    return _true("ReserveIntact", Reason.RESERVE_READY, f"{required.reserve} beyond the need of {required.need}")


def _concentration(s: Situation, observation: Observation, need: int) -> str | None:
    """What to say where one node holds more of the ready replicas than can be spared; None where none does."""
    nodes = Counter(r.node for r in observation.in_stage(Stage.READY) if r.node is not None)
    if sum(nodes.values()) != observation.ready:
        # Pods and the target's own count were not seen at the same instant: what was said last stands until they were.
        known = s.was("ReserveIntact", Reason.NODE_CONCENTRATION)
        return s.previous["ReserveIntact"]["message"] if known else None
    node, held = min(nodes.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    if observation.ready - held >= need:
        return None
    return (
        f"node {node} holds {held} of {observation.ready} ready replicas; without it fewer than the need of "
        f"{need} are left. Spread the replicas over more nodes."
    )


def gpu_capacity_sufficient(s: Situation) -> Condition | None:
    """False where replicas find no GPU, or where the coming week asks for more than the nodes have."""
    if s.plan is None or s.accelerators is None or s.observation is None or s.peak is None:
        return None
    gpus = s.plan.gpus_per_replica or 1
    unschedulable = [
        replica
        for replica in s.observation.replicas
        if replica.trouble is not None and replica.trouble.reason is Reason.UNSCHEDULABLE
    ]
    wanted, there = s.peak * gpus, s.accelerators.allocatable
    if not unschedulable and wanted <= there:
        message = f"{there} allocatable, the coming week asks for {wanted}"
        return _true("GPUCapacitySufficient", Reason.GPUS_SUFFICIENT, message)
    parts = [f"the coming week asks for {wanted} GPUs, the ready nodes have {there}"] if wanted > there else []
    parts += [f"{r.name}: {r.trouble.message.rstrip('.')}" for r in unschedulable if r.trouble is not None]
    message = "; ".join(parts)
    if s.accelerators.elastic:
        message += "; an autoscaler may add nodes"
        return _unknown("GPUCapacitySufficient", Reason.NODES_ELASTIC, message)
    message = f"{message.rstrip('.')}. Add nodes with free GPUs, or ask for fewer (bounds.maxReplicas)"
    return _false("GPUCapacitySufficient", Reason.GPUS_MISSING, message)


def drain_safe(s: Situation) -> Condition | None:
    """Whether there is time for the longest answer before a pod is killed."""
    if s.plan is None or s.target_trouble is not None:
        return None
    if s.plan.engine is None:
        return None if s.undrained is None else _false("DrainSafe", Reason.NOT_DRAINED, s.undrained)
    found = drain(s.plan)
    if found.needed is None or found.given is None or found.longest is None:
        message = found.unknown or "not known"
        return _unknown("DrainSafe", Reason.DRAIN_UNKNOWN, message)
    message = (
        f"engine.drainTimeout is {format_duration(found.given)}; the longest answer ({found.longest.tokens} tokens by "
        f"{found.longest.stated_by}) takes {format_duration(found.needed)} at the objectives"
    )
    if found.fits:
        return _true("DrainSafe", Reason.DRAIN_FITS, message)
    message += ". Raise drainTimeout, or cap the output with --override-generation-config in engine.extraArgs."
    return _false("DrainSafe", Reason.DRAIN_TOO_SHORT, message)


def scaling_limited(s: Situation) -> Condition | None:
    """True where a bound changed what was wanted."""
    if s.plan is None or s.decision is None:
        return None
    limit, bounds = s.decision.limit, s.plan.bounds
    if limit is None:
        message = f"within {bounds.minimum} to {bounds.maximum}"
        return _false("ScalingLimited", Reason.WITHIN_BOUNDS, message)
    if limit.wanted < limit.given:
        message = f"the schedule asks for {limit.wanted}, bounds.minReplicas keeps {bounds.minimum}"
        return _true("ScalingLimited", Reason.MIN_REPLICAS, message)
    ceiling = s.observation.maximum if s.observation is not None else None
    if ceiling is not None and ceiling < bounds.maximum:
        message = f"the schedule asks for {limit.wanted}, {ceiling} is the maximum of {s.target_name}: raise it there"
    else:
        message = f"the schedule asks for {limit.wanted}, {bounds.maximum} is the most: raise bounds.maxReplicas"
    return _true("ScalingLimited", Reason.MAX_REPLICAS, message)


def ready(s: Situation) -> Condition:
    """False only when the plan is invalid, its target or objects are not as they should be, or too few are ready.

    Between an edit and the reconcile that applies it, ``observedGeneration`` below ``metadata.generation`` says so,
    as kstatus reads it: nothing is written for that alone.
    """
    refusal = _not_acting(s)
    if refusal is not None:
        return refusal
    if s.plan is not None and s.plan.suspend:
        return _true("Ready", Reason.SUSPENDED, "suspended: status is kept, nothing else is written")
    if s.decision is None or s.observation is None:
        return _false("Ready", Reason.GENERATION_NOT_APPLIED, "the plan is not applied yet")
    required = s.decision.required.replicas
    if s.observation.ready < required:
        message = f"{progress(s.observation, required)}, {required} required now{hold_up(s)}"
        return _false("Ready", Reason.BELOW_REQUIRED, message)
    return _true("Ready", Reason.AS_PLANNED, f"at least the {required} required now are ready")


def _not_acting(s: Situation) -> Condition | None:
    """Ready is False because the plan, the target or the objects do not let the operator act."""
    if s.plan is None:
        return _false("Ready", Reason.INVALID, plan_valid(s).message)
    trouble = s.target_trouble or s.apply_trouble
    return None if trouble is None else _false("Ready", trouble.reason, trouble.message)


def reconciling(s: Situation) -> Condition | None:
    """Present while pods of an older template are replaced."""
    if s.rollout.rolling and s.rollout.stalled is None:
        return _true("Reconciling", Reason.ROLLING_UPDATE, "pods of an older template are being replaced")
    return None


def stalled(s: Situation) -> Condition | None:
    """Present where nothing moves on without a person."""
    refusal = _not_acting(s)
    if refusal is not None:
        return _true("Stalled", refusal.reason, refusal.message)
    if s.rollout.stalled is not None:
        return _true("Stalled", Reason.ROLLING_UPDATE, f"{s.rollout.stalled}{hold_up(s)}")
    return None


RULES: Sequence[Rule] = (
    ready,
    reconciling,
    stalled,
    plan_valid,
    target_resolved,
    ready_by_next_ramp,
    reserve_intact,
    metrics_available,
    demand_within_plan,
    capacity_current,
    gpu_capacity_sufficient,
    drain_safe,
    replicas_owned,
    scaling_limited,
    variant_accepted,
    engine_up_to_date,
)


def _true(type_: str, reason: Reason, message: str) -> Condition:
    return Condition(type=type_, status=Status.TRUE, reason=reason, message=message)


def _false(type_: str, reason: Reason, message: str) -> Condition:
    return Condition(type=type_, status=Status.FALSE, reason=reason, message=message)


def _unknown(type_: str, reason: Reason, message: str) -> Condition:
    return Condition(type=type_, status=Status.UNKNOWN, reason=reason, message=message)
