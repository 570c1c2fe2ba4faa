"""Feedback: what live observations add to the schedule. It can only raise.

In: what is due, what the engines say, what was raised before. Out: `extra` replicas above what is due, never negative,
at most `maxExtra`, with every signal's verdict, and what must be remembered. What was raised comes down when nothing
has asked for it for `scaleDown.stabilization`; while engines cannot be heard it stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from servingplan.planning.barriers import held_back
from servingplan.planning.demand import Requirement
from servingplan.planning.evidence import TEN_MINUTES, Case, Verdict, judge
from servingplan.planning.excess import complete, excess_after, rounded_up
from servingplan.planning.foreseen import foreseen
from servingplan.planning.observation import Excess, History, Observation, Raised
from servingplan.planning.plan import Feedback, Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.series import StepFunction
from servingplan.planning.signals import NoSignals, Signals
from servingplan.planning.units import format_duration

REACH_BACK = TEN_MINUTES + timedelta(minutes=15)
"""How far back the schedule is compared: ten minutes of arrivals, placed by readings that are minutes apart and old."""

ASKS = "feedback"
"""How the words for what feedback does begin."""

STEP_SHARE = 10
"""A signal that sizes nothing adds a tenth of the replicas, at least one: small enough to be wrong cheaply."""

MEMORY_GRAINS = 4
"""What evidence asked for is remembered to a quarter of the stabilization, or each poll would write a status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A rise above what the schedule asks for now, with its reason. `extra` >= 0.

    because: the words for a change that it makes. verdicts: what each signal said. raised, excess: what the next
    decision must be given in its history. again_at: when time alone changes it, None where it does not.
    """

    extra: int
    reason: Reason
    message: str
    because: str = ""
    verdicts: tuple[Verdict, ...] = ()
    raised: Raised | None = None
    excess: Excess | None = None
    again_at: datetime | None = None

    def __post_init__(self) -> None:
        """Feedback that lowers does not exist."""
        if self.extra < 0:
            raise ValueError(f"feedback can only raise, not by {self.extra}")


NO_FEEDBACK = Adjustment(extra=0, reason=Reason.FEEDBACK_OFF, message="no live signals: the schedule alone")


def adjust(
    plan: Plan,
    *,
    due: int,
    required: StepFunction[Requirement],
    lead: timedelta,
    observation: Observation,
    history: History,
    now: datetime,
) -> Adjustment:
    """How many replicas more than `due` (what the schedule needs within one `lead`) should run at `now`.

    required: the schedule from `REACH_BACK` ago until now. Without feedback in the plan nothing is added or remembered.
    """
    if plan.feedback is None:
        return NO_FEEDBACK
    held = _held(plan.feedback, due, history.raised)
    heard = observation.heard
    if not isinstance(heard, Signals):
        return _unheard(plan, heard, held, history, now)
    case = Case(
        plan=plan,
        when=plan.feedback.raise_when,
        signals=heard,
        required=required,
        due=due,
        held=held,
        now=now,
        learned=observation.learned,
    )
    verdicts = judge(case) if plan.foresight is None else (*judge(case), foreseen(case))
    barrier = held_back(case, observation, lead)
    total = _raised_total(case, verdicts, barrier, observation)
    raised = _remember(case, history.raised, verdicts, total)
    excess = excess_after(case, verdicts[0], history.excess, _grain(plan))
    extra = 0 if raised is None else raised.extra
    told = verdicts if barrier is None else (*verdicts, barrier)
    reason, message = _words(case, told, extra)
    return Adjustment(
        extra=extra,
        reason=reason,
        message=message,
        because=_because(verdicts),
        verdicts=told,
        raised=raised,
        excess=excess,
        again_at=_again_at(plan, raised, excess, now),
    )


def _held(feedback: Feedback, due: int, raised: Raised | None) -> int:
    """The extra still held. What the schedule itself has come to ask for meanwhile is no extra any more."""
    if raised is None:
        return 0
    return max(0, min(raised.extra, raised.replicas - due, feedback.max_extra))


def _unheard(plan: Plan, heard: NoSignals | None, held: int, history: History, now: datetime) -> Adjustment:
    """Nothing that is missing lowers: what was raised stays as it is until engines can be heard again."""
    raised = None if history.raised is None or held == 0 else replace(history.raised, extra=held)
    reason, why = NO_FEEDBACK.reason, "no live signals"
    if heard is not None:
        reason, why = heard.reason, f"no signals: {heard.message}"
    elif plan.foresight is not None:
        why += " and no past to look ahead from"
    return Adjustment(
        extra=held,
        reason=reason,
        message=f"{why}; {f'the {held} raised before stay' if held else 'the schedule alone'}",
        raised=raised,
        excess=history.excess,
        again_at=_again_at(plan, raised, history.excess, now),
    )


def _raised_total(case: Case, verdicts: tuple[Verdict, ...], barrier: Verdict | None, observation: Observation) -> int:
    """The total that evidence asks for now; at most what is held where it asks for no more.

    Arrivals size it. More than what is held already is raised only for what is sure, or noise would build a staircase.
    Signals without a size add a step to what is there, once it is verified.
    """
    present = case.due + case.held
    wants = max(verdict.wants for verdict in verdicts)
    if case.held and max(verdict.sure for verdict in verdicts) <= present:
        wants = min(wants, present)
    if barrier is None and any(verdict.fires for verdict in verdicts):
        there = max(present, observation.current or 0)
        wants = max(wants, there + max(1, math.ceil(there / STEP_SHARE)))
    return wants


def _remember(case: Case, raised: Raised | None, verdicts: tuple[Verdict, ...], total: int) -> Raised | None:
    """What is raised from now on: more, the same for as long as it was wanted lately, or less."""
    feedback = case.plan.feedback
    maximum = 0 if feedback is None else feedback.max_extra
    wanted_at = rounded_up(case.signals.at, _grain(case.plan))
    extra = min(total - case.due, maximum)
    if extra > case.held:
        since = raised.since if raised is not None and case.held else case.signals.at
        return Raised(extra=extra, replicas=case.due + extra, since=since, wanted_at=wanted_at)
    if raised is None or case.held == 0:
        return None
    kept = _kept(case, verdicts)
    if kept >= case.held:
        return replace(raised, extra=case.held, wanted_at=wanted_at)
    # A time that lies ahead of what could have been remembered means that the clock went back.
    wanted_before = min(raised.wanted_at, wanted_at)
    known = complete(case.signals) and not _unlearned(case)
    if not known or case.now < wanted_before + case.plan.scale_down.stabilization:
        return replace(raised, extra=case.held, wanted_at=wanted_before)
    if kept <= 0:
        return None
    return replace(raised, extra=kept, replicas=case.due + kept, wanted_at=wanted_at)


def _unlearned(case: Case) -> bool:
    """Whether the past has a say, and is not known yet, as after a restart: it may have asked for what is held."""
    return case.plan.foresight is not None and case.learned is None


def _kept(case: Case, verdicts: tuple[Verdict, ...]) -> int:
    """How much of what is held the evidence of now would keep. A signal that still fires keeps all of it."""
    if any(verdict.fires for verdict in verdicts):
        return case.held
    return max(verdict.keeps for verdict in verdicts) - case.due


def _grain(plan: Plan) -> timedelta:
    return plan.scale_down.stabilization / MEMORY_GRAINS


def _again_at(plan: Plan, raised: Raised | None, excess: Excess | None, now: datetime) -> datetime | None:
    """When what is remembered may end."""
    ends = [raised.wanted_at] if raised is not None else []
    ends += [excess.seen_at] if excess is not None else []
    later = [end + plan.scale_down.stabilization for end in ends if end + plan.scale_down.stabilization > now]
    return min(later, default=None)


_EXPLAINS = (
    Reason.START_STUCK,
    Reason.STARTING,
    Reason.SETTLING,
    Reason.IMBALANCED,
    Reason.PROMPTS_LONGER,
    Reason.TRANSIENT_BURST,
    Reason.ALREADY_DUE,
)
"""Why nothing was raised, what says most first. The first three only explain a signal that asked for a step."""


def _words(case: Case, told: tuple[Verdict, ...], extra: int) -> tuple[Reason, str]:
    """The reason and message of the outcome."""
    fires = [verdict for verdict in told if verdict.fires]
    sized = [verdict for verdict in told if verdict.wants > case.due]
    if extra > case.held:
        text = "; ".join(verdict.message for verdict in (sized or fires))
        return Reason.FEEDBACK_RAISES, f"{text}: {extra} more{_limited(case, told, extra)}"
    if extra:
        wanting = [*sized, *fires] or [verdict for verdict in told if verdict.keeps >= case.due + extra]
        if wanting:
            return Reason.FEEDBACK_RAISES, f"still wanted: {'; '.join(verdict.message for verdict in wanting)}"
        if _unlearned(case):
            return Reason.EXTRA_HELD, "kept until it is known what the last days say"
        stabilization = format_duration(case.plan.scale_down.stabilization)
        return Reason.EXTRA_HELD, f"kept until nothing has asked for it for {stabilization}"
    for reason in _EXPLAINS:
        found = [verdict for verdict in told if verdict.reason is reason]
        if found and (fires or found[0].signal != "step" or reason is Reason.IMBALANCED):
            return reason, found[0].message
    return told[0].reason, told[0].message


def _limited(case: Case, told: tuple[Verdict, ...], extra: int) -> str:
    wanted = max(verdict.wants for verdict in told) - case.due
    return f", {wanted} wanted: feedback.maxExtra limits it" if wanted > extra else ""


def _because(verdicts: tuple[Verdict, ...]) -> str:
    """Which signals ask for more, for those who read why replicas changed."""
    asking = [verdict.signal for verdict in verdicts if verdict.wants or verdict.fires]
    return f"{ASKS}: {', '.join(asking)}" if asking else ASKS
