"""The decision: how many replicas now, why, and when to ask again.

In: plan, observation, history, now. Out: a `Decision` with an ordered trail. The operator, the command line and
every benchmark call `decide`; nothing else decides. It is idempotent: the same four arguments give the same
decision, and asking again before `next_change_at` changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from servingplan.planning.demand import Requirement, requirements
from servingplan.planning.feedback import ASKS, NO_FEEDBACK, REACH_BACK, Adjustment, adjust
from servingplan.planning.lead import EffectiveLead, effective_lead
from servingplan.planning.observation import History, Observation, Ramp
from servingplan.planning.plan import Plan
from servingplan.planning.rises import stuck_from
from servingplan.planning.series import StepFunction
from servingplan.planning.stabilize import Limit, desired_replicas
from servingplan.planning.timeline import ENDS, Asked, Direction, Fold, Peak, converged_start, fold, peak_at, peaks
from servingplan.planning.trail import Step, trail
from servingplan.planning.units import scale_duration

HPA_PERIOD = timedelta(seconds=30)
"""In floor mode an autoscaler acts on its new minimum only at its next sync: rises go out that much earlier.
Twice the HPA's default sync period of 15 s."""

OUTLOOKS = (timedelta(hours=26), timedelta(days=8), timedelta(days=400))
"""How far a decision looks ahead for the next change, in turn: a day and its lead, a week, every yearly cron.
The last one only where something is rarer than weekly, and without a profile: a year of one takes a second."""

LOOK_BACK = timedelta(days=1)
"""How far a decision looks back, at most, for what ended when a fall began: a longer fall loses these words alone."""

COMES_DOWN = f"{ASKS} asks for it no more"
"""Why what feedback raised comes down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextChange:
    """The next change of asked-for replicas: when it begins and at how many it comes to rest."""

    time: datetime
    replicas: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What should run now, and why.

    desired: what to set. asked: what the schedule alone asks for, lead and scale-down rules applied (the floor).
    required: what must be ready now. adjustment: what feedback adds, and what the next decision must remember of it.
    lead: the lead in effect; learned: what rises taught of it.
    ramp: the rise in progress, if any. limit: set where a bound changed what was wanted.
    next_change: what comes next once `desired` runs. scheduled_change: what comes after the fall that is due, however
    long its steps have to wait.
    because: the words for a change to `desired`. next_change_at: the instant before which the same observation gives
    the same decision.
    """

    desired: int
    asked: int
    required: Requirement
    adjustment: Adjustment
    lead: timedelta
    learned: EffectiveLead
    ramp: Ramp | None
    limit: Limit | None
    because: str
    next_change: NextChange | None
    scheduled_change: NextChange | None
    next_change_at: datetime
    suspended: bool
    trail: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outlook:
    """The schedule around now: what is required, the peak within one lead, the fold from the present state.

    settled: the fold as if replicas were at the peak already. forgets_at: when what is required now has lasted for as
    long as is looked back, so that nobody knows any more what it followed; None where nobody does now.
    """

    required: StepFunction[Requirement]
    peak: StepFunction[Peak]
    changes: Sequence[Asked]
    settled: Sequence[Asked]
    forgets_at: datetime | None
    end: datetime


def decide(plan: Plan, observation: Observation, history: History, now: datetime) -> Decision:
    """The replicas that should run at `now` (aware), with the trail that explains them.

    observation.current None means that the target does not exist yet: it is created at the peak.
    """
    learned = effective_lead(plan.lead, history.rises, now)
    lead = lead_in_effect(plan, history, now)
    adjustment = _adjustment(plan, observation, history, lead, now)
    outlook = _look_ahead(plan, observation, history, lead, now, extra=adjustment.extra)
    required, peak, asked = outlook.required.at(now), outlook.peak.at(now), outlook.changes[0]
    desired = desired_replicas(
        asked=asked.replicas + _raised_now(observation, peak, adjustment.extra),
        due=peak.replicas,
        adjustment=adjustment,
        bounds=plan.bounds,
        ceiling=observation.maximum,
    )
    ramp = _ramp(outlook.required, history, lead, now)
    limit = _limit(outlook.required.at(peak.since), asked.replicas, desired, observation) or _limited_raise(
        peak, adjustment, desired
    )
    return Decision(
        desired=desired,
        asked=asked.replicas,
        required=required,
        adjustment=adjustment,
        lead=lead,
        learned=learned,
        ramp=ramp,
        limit=limit,
        because=_because(asked, adjustment, desired, observation, history),
        next_change=_next_change(outlook.changes),
        scheduled_change=_next_change(outlook.settled),
        next_change_at=_next_change_at(
            plan,
            outlook,
            ramp,
            now,
            history=history,
            again_at=(adjustment.again_at, learned.again_at, stuck_from(observation, learned.proven, now)),
        ),
        suspended=plan.suspend,
        trail=trail(plan, required, peak, asked, lead=lead, adjustment=adjustment, limit=limit, desired=desired),
    )


def lead_in_effect(plan: Plan, history: History, now: datetime) -> timedelta:
    """The plan's lead with what rises taught, or the longer one that the ramp in progress was started with.

    So a lead that shrinks while replicas are starting lowers nothing that was started.
    """
    lead, held = _planned_lead(plan, history, now), _held_lead(history)
    return held.lead if held is not None and held.lead > lead and held.start <= now < held.end else lead


def _planned_lead(plan: Plan, history: History, now: datetime) -> timedelta:
    """The declared or learned lead, in floor mode with the autoscaler's period on top."""
    floor = plan.target_ref is not None and plan.target_ref.is_floor
    return effective_lead(plan.lead, history.rises, now).lead + (HPA_PERIOD if floor else timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldLead:
    """The lead that a ramp was started with, which holds on [start, end) though the plan's be shorter."""

    lead: timedelta
    start: datetime
    end: datetime


def _held_lead(history: History) -> _HeldLead | None:
    # To a lead after the ramp: rises that close behind it were started too.
    ramp = history.ramp
    if ramp is None:
        return None
    lead = ramp.start - ramp.start_by
    return _HeldLead(lead=lead, start=ramp.start_by, end=ramp.start + lead)


def _adjustment(plan: Plan, observation: Observation, history: History, lead: timedelta, now: datetime) -> Adjustment:
    """What feedback adds to what is due now."""
    if plan.feedback is None:
        return NO_FEEDBACK
    # A moment more than the lead: a rise that begins exactly one lead from now is due now.
    required = requirements(plan, now - REACH_BACK, now + lead + timedelta(seconds=1))
    due = peak_at(required, now, now + lead).replicas
    return adjust(plan, due=due, required=required, lead=lead, observation=observation, history=history, now=now)


def _raised_now(observation: Observation, peak: Peak, extra: int) -> int:
    """How many of the current replicas are there by feedback: the schedule's own fold does not see these.

    Else it would announce a fall that feedback holds up, at another time with every decision.
    """
    if observation.current is None:
        return 0
    return min(extra, max(0, observation.current - peak.replicas))


def _look_ahead(
    plan: Plan, observation: Observation, history: History, lead: timedelta, now: datetime, *, extra: int
) -> _Outlook:
    """The shortest outlook that shows what comes next, and what comes after a fall that is due; at most the longest."""
    rarer = plan.profile is None and (plan.cron_windows or plan.calendars or plan.overrides)
    for length in OUTLOOKS if rarer else OUTLOOKS[:-1]:
        end = now + length
        start = max(converged_start(now, plan.scale_down, plan.bounds.maximum), now - LOOK_BACK)
        required = requirements(plan, start, end + lead)
        peak = peaks(required, lead, now, end)
        state = _state(observation, history, peak.at(now), extra, now)
        changes = fold(state, peak, required, plan.scale_down)
        level = peak.at(now).replicas
        settled = changes
        if state.replicas > level:
            settled = fold(Fold(replicas=level), peak, required, plan.scale_down)
        if len(changes) > 1 and len(settled) > 1:
            break
    begun = required.times[required.index(now)]
    return _Outlook(
        required=required,
        peak=peak,
        changes=changes,
        settled=settled,
        forgets_at=begun + (now - start) if begun > start else None,
        end=end,
    )


def _state(observation: Observation, history: History, peak: Peak, extra: int, now: datetime) -> Fold:
    """Where the fold stands: current replicas without those that feedback raised, and the last fall."""
    if observation.current is None:
        return Fold(replicas=peak.replicas)
    last = history.last_scale
    # A scale that lies in the future means that the clock went back: the fall starts anew rather than wait.
    fell = last is not None and last.after < last.before and last.time <= now
    replicas = observation.current - _raised_now(observation, peak, extra)
    return Fold(replicas=replicas, last_fall=last.time if last is not None and fell else None)


def _ramp(required: StepFunction[Requirement], history: History, lead: timedelta, now: datetime) -> Ramp | None:
    """The nearest rise within one lead: so many must be ready when it starts."""
    now_required = required.at(now).replicas
    for i in required.within(now, now + lead):
        start, needed = required.times[i], required.values[i].replicas
        if start > now and needed > now_required:
            begun = history.ramp if history.ramp is not None and history.ramp.start == start else None
            start_by = begun.start_by if begun is not None else start - lead
            return Ramp(start=start, needed=needed, start_by=min(start_by, start - lead))
    return None


def _limit(peak: Requirement, asked: int, desired: int, observation: Observation) -> Limit | None:
    """What a bound changed: the plan's own bounds at the peak, an autoscaler's maximum, or either for what runs."""
    if peak.unbounded != peak.replicas:
        return Limit(wanted=peak.unbounded, given=desired)
    if observation.maximum is not None and peak.replicas > observation.maximum:
        return Limit(wanted=peak.replicas, given=desired)
    return Limit(wanted=asked, given=desired) if asked > desired else None


def _limited_raise(peak: Peak, adjustment: Adjustment, desired: int) -> Limit | None:
    """Where a bound keeps down what feedback raises."""
    wanted = peak.replicas + adjustment.extra
    return Limit(wanted=wanted, given=desired) if adjustment.extra and wanted > desired else None


def _because(asked: Asked, adjustment: Adjustment, desired: int, observation: Observation, history: History) -> str:
    """The words for a change: the schedule's, unless feedback alone makes it."""
    current, last = observation.current, history.last_scale
    if current is None or desired == current:
        return asked.because
    if desired > current:
        return adjustment.because if adjustment.extra and asked.replicas <= current else asked.because
    # A replica drains before it goes: by then the raise may be remembered by the words of the last change alone.
    follows = history.raised is not None or (last is not None and last.because.startswith(ASKS))
    # Where the schedule itself falls, its own words say more.
    return COMES_DOWN if follows and not asked.because.endswith(ENDS) else asked.because


def _next_change(changes: Sequence[Asked]) -> NextChange | None:
    if len(changes) < 2:
        return None
    change = changes[1]
    return NextChange(time=change.time, replicas=change.level, because=change.because)


def _next_change_at(
    plan: Plan,
    outlook: _Outlook,
    ramp: Ramp | None,
    now: datetime,
    *,
    history: History,
    again_at: Sequence[datetime | None],
) -> datetime:
    """The first instant after now at which any part of the decision differs."""
    instants = [outlook.end, *(change.time for change in outlook.changes[1:2])]
    changes = (outlook.required.next_change(now), outlook.peak.next_change(now))
    instants += [change for change in changes if change is not None]
    if ramp is not None:
        instants += [at_risk_from(plan, ramp), ramp.start]
    if outlook.forgets_at is not None and any(change.direction is Direction.FALL for change in outlook.changes[:2]):
        instants.append(outlook.forgets_at)  # a fall is explained by what ended
    instants += [instant for instant in again_at if instant is not None]
    held = _held_lead(history)
    if held is not None and held.lead > _planned_lead(plan, history, now):
        instants += [held.start, held.end]
    if history.last_scale is not None:
        # In the future only where the clock went back: from then on it is known when the next step is due.
        instants.append(history.last_scale.time)
    return min(instant for instant in instants if instant > now)


def at_risk_from(plan: Plan, ramp: Ramp) -> datetime:
    """When a ramp whose replicas are not all verified is at risk: what a rise takes is spent, the margin is left.

    That is the declared lead, or what rises taught where they take longer.
    """
    lead = ramp.start - ramp.start_by
    expected = scale_duration(lead, 1 / (1 + plan.lead.margin))
    return ramp.start_by + max(min(plan.lead.declared, lead), expected)
