"""Reconcile: one plan, once. Observe, decide, render, apply, report.

In: the key of a plan. Out: the cluster and the plan's status as the decision wants them, and when to look again.
It reads like the data flow; each verb is a module of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from servingplan.api.references import referenced
from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.act import Actor, Outcome
from servingplan.controller.capacity import with_capacity
from servingplan.controller.clock import Clock
from servingplan.controller.decided import LastDecisions
from servingplan.controller.drain import serve_again, undrained
from servingplan.controller.learner import Learner
from servingplan.controller.observe import TARGET_PODS_EVERY_S, UNWATCHED_EVERY_S, Observer, Seen
from servingplan.controller.report import Report, Reporter
from servingplan.controller.resolved import Resolved, ResolvedPlans, coming_midnight, highest_requirement
from servingplan.controller.rises import track
from servingplan.controller.signals import SignalPoller, following
from servingplan.controller.store import Key, Store
from servingplan.controller.targets import is_watched
from servingplan.errors import Conflict, Problem, Refused
from servingplan.planning.decision import Decision, decide
from servingplan.planning.drain import drains
from servingplan.planning.excess import Change, change
from servingplan.planning.lead import Rises, effective_lead
from servingplan.planning.memory import remembered
from servingplan.planning.observation import History, Trouble
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.running import is_edited, is_settled
from servingplan.rendering.situation import Rollout, Situation
from servingplan.rendering.status import Figures, contest_from_wire, history_from_wire
from servingplan.reporting.hours import counted_gpus

Object = Mapping[str, Any]

REFUSED_RETRY_S = 60.0
"""A refusal is repeated slowly: it takes a person, or a quota that is freed, to change the answer."""

CONFLICT_RETRY_S, CONFLICT_RETRY_MAX_S = 0.2, 5.0
"""Somebody wrote between our look and our write, as a Deployment's own controller does all the time: look again, after
twice the time where it happens again."""


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a reconcile works with, made once per process."""

    client: KubernetesClient
    store: Store
    clock: Clock
    observer: Observer
    actor: Actor
    poller: SignalPoller
    learner: Learner
    reporter: Reporter
    wake_at: Callable[[Key, datetime | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a plan whose target can be acted on: what was seen and decided, before anything is written.

    remembered: what status tells of before. found: what the cluster holds, as an outcome that nothing was written for.
    """

    key: Key
    document: Object
    resolved: Resolved
    plan: Plan
    seen: Seen
    situation: Situation
    remembered: History
    found: Outcome
    decision: Decision

    @property
    def acts(self) -> bool:
        """Whether anything is to be written to the target and its objects."""
        return not self.plan.suspend and self.seen.autoscaler is None

    @property
    def keeps(self) -> bool:
        """Whether the Deployment stays as it is, but its replicas: a variant is held, and what runs cannot be told."""
        return self.seen.variant is not None and self.seen.variant.unreadable


class Reconciler:
    """Reconciles plans, one at a time per key."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._plans = ResolvedPlans()
        self._conflicts: dict[Key, int] = {}
        self._decided = LastDecisions(poller=parts.poller, clock=parts.clock)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one plan's target and status up to date. Returns the real seconds after which to do it again."""
        began = time.monotonic()
        conflicts = self._conflicts.pop(key, 0)
        try:
            document = await self._p.client.find(_ref(key))
            if document is None or document["metadata"].get("deletionTimestamp"):
                await self._abandon(key)
                self._forget(key)
                return None
            self._p.store.put_plan(document)
            return await self._reconcile(key, document)
        except Conflict:
            self._conflicts[key] = min(conflicts + 1, 16)
            return min(CONFLICT_RETRY_S * 2.0**conflicts, CONFLICT_RETRY_MAX_S)
        finally:
            self._p.reporter.took(time.monotonic() - began)

    def _forget(self, key: Key) -> None:
        self._p.store.drop_plan(key)
        self._plans.forget(key)
        self._p.observer.forget(key)
        self._p.poller.forget(key)
        self._p.learner.forget(key)
        self._p.actor.forget(key)
        self._p.reporter.forget(key)
        self._p.wake_at(key, None)

    async def _reconcile(self, key: Key, document: Object) -> float | None:
        wanted = referenced(document)
        try:
            references = await self._p.observer.references(key, wanted)
        except Refused as refusal:
            problem = Problem(path="spec", reason=Reason.READ_REFUSED.value, message=str(refusal))
            return await self._report_invalid(key, document, (problem,), again=REFUSED_RETRY_S)
        again = None if self._p.observer.watches_all(key, wanted) else UNWATCHED_EVERY_S
        resolved = self._plans.get(key, document, references)
        if resolved.plan is None:
            await self._abandon(key)
            return await self._report_invalid(key, document, resolved.problems, again=again)
        return _sooner(again, await self._plan(key, document, resolved, resolved.plan))

    async def _report_invalid(
        self, key: Key, document: Object, problems: Sequence[Problem], *, again: float | None
    ) -> float | None:
        situation = Situation(
            generation=document["metadata"]["generation"],
            now=self._p.clock.now(),
            plan=None,
            problems=problems,
            previous=_conditions(document),
        )
        return _sooner(again, await self._p.reporter.report(Report(key=key, document=document, situation=situation)))

    async def _plan(self, key: Key, document: Object, resolved: Resolved, plan: Plan) -> float | None:
        generation, previous = document["metadata"]["generation"], _conditions(document)
        try:
            seen = await self._p.observer.observe(key, plan, document)
        except Refused as refusal:
            trouble = Trouble(reason=Reason.READ_REFUSED, message=str(refusal))
            now = self._p.clock.now()
            situation = Situation(generation=generation, now=now, plan=plan, target_trouble=trouble, previous=previous)
            return await self._report_trouble(key, document, situation)
        now = self._p.clock.now()
        seen = self._listened(key, plan, seen, history_from_wire(document.get("status", {})).rises, now)
        heard = None if seen.observation is None else seen.observation.heard
        plan, currency = with_capacity(seen.plan, seen, heard, document.get("status", {}))
        resolved = self._plans.acting(key, resolved, plan)
        situation = Situation(
            generation=generation,
            now=now,
            plan=plan,
            target_name=str(seen.view.ref),
            target_trouble=seen.trouble,
            autoscaler=seen.autoscaler,
            rollout=seen.view.rollout,
            accelerators=seen.accelerators,
            peak=None if seen.accelerators is None else highest_requirement(plan, now),
            variant=seen.variant,
            currency=currency,
            previous=previous,
        )
        look = self._decide(key, document, resolved, seen, situation)
        return await self._report_trouble(key, document, situation) if look is None else await self._act(look)

    def _listened(self, key: Key, plan: Plan, seen: Seen, rises: Rises, now: datetime) -> Seen:
        """What was seen, with what the engines say, and what their past taught where the plan asks for that."""
        followed = following(plan)
        if plan.foresight is None:
            self._p.learner.forget(key)
        if followed is None:
            self._p.poller.forget(key)
            return seen
        if seen.observation is None:
            return seen
        heard = self._p.poller.heard(key, followed, seen.serving, now)
        observation = replace(seen.observation, heard=heard)
        if plan.foresight is not None:
            start = effective_lead(plan.lead, rises, now).proven
            learned, trouble = self._p.learner.known(key, plan, start=start, pods=seen.serving)
            observation = replace(observation, learned=learned, not_learned=trouble)
        return replace(seen, observation=observation)

    def changes_by_signals(self, key: Key) -> bool:
        """Whether what the engines say now would change what is written: else a poll costs no look at the cluster."""
        return self._decided.changes_by_signals(key)

    async def _report_trouble(self, key: Key, document: Object, situation: Situation) -> float | None:
        report = Report(key=key, document=document, situation=situation)
        return _sooner(REFUSED_RETRY_S, await self._p.reporter.report(report))

    async def _act(self, look: Look) -> float | None:
        outcome = await self._carry_out(look)
        rises = self._rises(look, outcome)
        report = _told(look, outcome, rises)
        history = remembered(look.decision, missed=report.situation.missed, last_scale=outcome.last_scale, rises=rises)
        self._decided.remember(
            look.key,
            look.plan,
            look.seen,
            outcome,
            decision=look.decision,
            history=history,
            currency=look.situation.currency,
        )
        self._p.wake_at(look.key, _next_look(look, outcome))
        again = await self._p.reporter.report(report)
        if rises.samples != look.remembered.rises.samples:
            return 0.0  # the lead may be another one now, and with it everything that was just decided
        return _sooner(again, _again_after(look, outcome))

    def _decide(self, key: Key, document: Object, resolved: Resolved, seen: Seen, situation: Situation) -> Look | None:
        """The decision, and what it is made from; None where there is nothing to act on."""
        plan, observation, now = situation.plan, seen.observation, situation.now
        if plan is None or observation is None:
            return None
        status = document.get("status", {})
        remembered, contest = history_from_wire(status), contest_from_wire(status)
        last_scale = self._p.actor.last_scale(seen.view, remembered.last_scale, contest, now)
        return Look(
            key=key,
            document=document,
            resolved=resolved,
            plan=plan,
            seen=seen,
            situation=situation,
            remembered=remembered,
            found=Outcome(observation=observation, last_scale=last_scale, contest=contest),
            decision=decide(plan, observation, replace(remembered, last_scale=last_scale), now),
        )

    async def _carry_out(self, look: Look) -> Outcome:
        """Act on a decision; what is found stays where the plan or an autoscaler keeps us from it."""
        observation = look.found.observation
        if not look.acts:
            return await self._stand_back(look) if drains(observation) else look.found
        if look.decision.desired != observation.current or drains(observation):
            self._p.observer.forget(look.key)  # pods may be patched now: the next look must see it
        return await self._p.actor.act(
            look.plan,
            look.document,
            look.seen.view,
            look.found,
            look.decision,
            now=look.situation.now,
            keep=look.keeps,
        )

    async def _stand_back(self, look: Look) -> Outcome:
        """End a drain that may not end in fewer replicas; nothing else is written."""
        self._p.observer.forget(look.key)
        try:
            await serve_again(self._p.client, look.found.observation, look.key.namespace)
        except Refused as refusal:
            return replace(look.found, refused=Trouble(reason=Reason.APPLY_REFUSED, message=str(refusal)))
        return look.found

    async def _abandon(self, key: Key) -> None:
        """End the drain of a plan that tells no more what is wanted: it is gone, or makes no sense."""
        known = self._decided.observed(key)
        if known is not None and drains(known):
            try:
                await serve_again(self._p.client, known, key.namespace)
            except Refused as refusal:
                _log.warning("%s: what drained stays out of its Service: %s", key, refusal)
        self._decided.forget(key)

    def _rises(self, look: Look, outcome: Outcome) -> Rises:
        return track(
            look.remembered.rises,
            look.plan,
            look.seen.view,
            remembered=look.remembered.last_scale,
            last_scale=outcome.last_scale,
            written=outcome.observation.current != look.found.observation.current,
            observation=outcome.observation,
            clock=self._p.clock,
            now=look.situation.now,
        )


def _change(plan: Plan, decision: Decision, document: Object) -> Change | None:
    """What would hold against the excess of arrivals, where there is one."""
    excess = decision.adjustment.excess
    if excess is None:
        return None
    return change(plan, decision.required, excess.rate, document["spec"]["schedule"])


def _told(look: Look, outcome: Outcome, rises: Rises) -> Report:
    """What there is to tell after the writes."""
    plan, decision = look.plan, look.decision
    return Report(
        key=look.key,
        document=look.document,
        situation=replace(
            look.situation,
            decision=decision,
            observation=outcome.observation,
            found=look.found.observation.current,
            contest=outcome.contest,
            rises=rises,
            undrained=None if plan.feedback is None else undrained(plan, look.seen.view),
            change=_change(plan, decision, look.document),
            begun=look.remembered.ramp,
            apply_trouble=outcome.refused,
            rollout=_rollout(look, outcome),
        ),
        last_scale=outcome.last_scale,
        scaled=outcome.scaled,
        figures=_figures(look.resolved, plan),
    )


def _again_after(look: Look, outcome: Outcome) -> float | None:
    """The real seconds after which to look again although nothing may have told of a change; None where something will.

    A refusal and a conflict are tried again, and pods of a named target are not watched while they come or go.
    """
    moving = look.decision.ramp is not None or outcome.observation.ready != outcome.observation.current
    by_itself = look.plan.engine is not None or (is_watched(look.seen.view.ref) and not moving)
    delay = None if by_itself else TARGET_PODS_EVERY_S
    if outcome.refused is not None:
        delay = _sooner(delay, REFUSED_RETRY_S)
    return _sooner(delay, CONFLICT_RETRY_S) if outcome.unfinished else delay


def _next_look(look: Look, outcome: Outcome) -> datetime:
    """The first instant at which the clock alone changes something."""
    now = look.situation.now
    instants = [look.decision.next_change_at, coming_midnight(look.plan, now)]
    if outcome.again_at is not None:
        instants.append(outcome.again_at)
    return max(min(instants), now + timedelta(milliseconds=1))


def _rollout(look: Look, outcome: Outcome) -> Rollout:
    """Where the template stands after this reconcile.

    A Deployment takes a moment to say that it rolls: it does from the edit of the engine on that was applied just now,
    and until it has seen what was applied. Otherwise whoever waits for the plan is told in between that all is done.
    """
    situation, plan, view = look.situation, look.plan, look.seen.view
    held = situation.was("EngineUpToDate", Reason.TEMPLATE_HELD) if outcome.unfinished else outcome.held
    rollout, live = replace(view.rollout, held=held), view.live
    if plan.engine is None or live is None or not look.acts or look.keeps or outcome.refused is not None:
        return rollout
    goes_on = not is_settled(live) and situation.was("Reconciling", Reason.ROLLING_UPDATE)
    began = is_edited(live, plan.engine) or goes_on
    return replace(rollout, rolling=rollout.rolling or began)


def _figures(resolved: Resolved, plan: Plan) -> Figures | None:
    """The nominal month; the plan as it was resolved may not know yet how many GPUs its target's pods take."""
    month = resolved.month
    if month is None:
        return None
    share = counted_gpus(plan) / month.gpus_per_replica
    return Figures(hours_planned=round(month.planned * share), hours_flat=round(month.flat_peak * share))


def _conditions(document: Object) -> dict[str, dict[str, str]]:
    return {condition["type"]: condition for condition in document.get("status", {}).get("conditions", ())}


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((delay for delay in (one, other) if delay is not None), default=None)


def _ref(key: Key) -> ObjectRef:
    return ObjectRef(api_version=API_VERSION, kind=KIND, name=key.name, namespace=key.namespace)
