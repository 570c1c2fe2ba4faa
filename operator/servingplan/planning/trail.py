"""The trail: a decision as ordered steps, in the words that people read.

In: what each part of the decision found. Out: `Step` values, at most twelve. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from servingplan.planning.demand import Requirement
from servingplan.planning.evidence import GROUPS, Verdict
from servingplan.planning.feedback import Adjustment
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.sizing import capacity_per_replica
from servingplan.planning.stabilize import Limit
from servingplan.planning.timeline import Asked, Direction, Peak
from servingplan.planning.units import format_duration, format_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the trail."""

    name: str
    value: str
    reason: Reason
    message: str


def trail(
    plan: Plan,
    required: Requirement,
    peak: Peak,
    asked: Asked,
    *,
    lead: timedelta,
    adjustment: Adjustment,
    limit: Limit | None,
    desired: int,
) -> tuple[Step, ...]:
    """The steps in the order in which they were taken."""
    extra = Step(name="extra", value=str(adjustment.extra), reason=adjustment.reason, message=adjustment.message)
    return (
        _demand(required),
        _need(plan, required),
        _reserve(plan, required),
        _required(plan, required),
        _peak(peak, required, lead),
        _asked(plan, asked, peak),
        *_signals(adjustment),
        extra,
        _desired(plan, limit, desired),
    )


def _demand(required: Requirement) -> Step:
    if required.rate is None:
        value = f"{required.replicas} replicas"
        message = f"{required.source} states the total"
    else:
        value = f"{format_rate(required.rate)}/s"
        message = f"{required.source} asks for {value}"
    return Step(name="demand", value=value, reason=required.source.reason, message=message)


def _need(plan: Plan, required: Requirement) -> Step:
    if required.rate is None:
        message = "the stated total less the reserve"
        return Step(name="need", value=str(required.need), reason=Reason.TOTAL_STATED, message=message)
    per_replica = float(capacity_per_replica(plan.capacity, max(1, required.need)))
    message = (
        f"{format_rate(required.rate)}/s at {per_replica:g}/s a replica: {required.need} "
        f"replica{'' if required.need == 1 else 's'}"
    )
    return Step(name="need", value=str(required.need), reason=Reason.CAPACITY, message=message)


def _reserve(plan: Plan, required: Requirement) -> Step:
    quiet = required.rate is not None and required.reserve != plan.reserve.replicas
    message = "in quiet hours" if quiet else "for a lost node or a rolling update"
    reason = Reason.QUIET_RESERVE if quiet else Reason.RESERVE
    return Step(name="reserve", value=str(required.reserve), reason=reason, message=message)


def _required(plan: Plan, required: Requirement) -> Step:
    if required.unbounded > required.replicas:
        reason, message = Reason.MAX_REPLICAS, f"bounds.maxReplicas limits {required.unbounded}"
    elif required.unbounded < required.replicas:
        reason, message = Reason.MIN_REPLICAS, f"bounds.minReplicas raises {required.unbounded}"
    else:
        reason, message = Reason.WITHIN_BOUNDS, f"within {plan.bounds.minimum} to {plan.bounds.maximum}"
    return Step(name="required", value=str(required.replicas), reason=reason, message=message)


def _peak(peak: Peak, required: Requirement, lead: timedelta) -> Step:
    if peak.replicas > required.replicas:
        message = f"{peak.source} needs {peak.replicas} within the lead of {format_duration(lead)}"
        return Step(name="peak", value=str(peak.replicas), reason=Reason.READY_BEFORE_RAMP, message=message)
    message = f"nothing higher within the lead of {format_duration(lead)}"
    return Step(name="peak", value=str(peak.replicas), reason=Reason.AT_LEVEL, message=message)


def _asked(plan: Plan, asked: Asked, peak: Peak) -> Step:
    if asked.replicas > peak.replicas:
        rules = plan.scale_down
        message = f"falling to {peak.replicas} by {rules.step} every {format_duration(rules.every)}"
        reason = Reason.FALLING
    elif asked.direction is Direction.RISE:
        reason, message = Reason.READY_BEFORE_RAMP, asked.because
    else:
        reason, message = Reason.AT_LEVEL, f"as {peak.source} asks"
    return Step(name="asked", value=str(asked.replicas), reason=reason, message=message)


def _signals(adjustment: Adjustment) -> Iterator[Step]:
    """What signals said, in the groups that a trail has room for."""
    for name, signals in GROUPS.items():
        verdicts = [verdict for verdict in adjustment.verdicts if verdict.signal in signals]
        if verdicts:
            used = [verdict for verdict in verdicts if verdict.reason is not Reason.NOT_USED] or verdicts[:1]
            leading = max(used, key=_weight)
            yield Step(
                name=name,
                value="raise" if leading.fires or leading.wants else "quiet",
                reason=leading.reason,
                message="; ".join(verdict.message for verdict in used),
            )


def _weight(verdict: Verdict) -> int:
    """What raises says most, then what would but for a reason of its own; the first of equals."""
    if verdict.fires or verdict.wants:
        return 2
    return int(verdict.reason not in {Reason.WITHIN_PLAN, Reason.WITHIN_LIMIT, Reason.NOT_KNOWN, Reason.NOT_USED})


def _desired(plan: Plan, limit: Limit | None, desired: int) -> Step:
    if plan.suspend:
        message = f"suspended: {desired} would be set, nothing is written"
        return Step(name="desired", value=str(desired), reason=Reason.SUSPENDED, message=message)
    if limit is not None:
        low = limit.wanted < limit.given
        bound = plan.bounds.minimum if low else limit.given
        reason = Reason.MIN_REPLICAS if low else Reason.MAX_REPLICAS
        message = f"{limit.wanted} wanted, at {'least' if low else 'most'} {bound} within the bounds"
        return Step(name="desired", value=str(desired), reason=reason, message=message)
    return Step(name="desired", value=str(desired), reason=Reason.WITHIN_BOUNDS, message="max(asked, peak + extra)")
