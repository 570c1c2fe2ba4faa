"""Reconcile: one plan, once. Observe, decide, render, apply, report.

In: the key of a plan. Out: the cluster and the plan's status as the decision wants them, and when to look again.
It reads like the data flow; each verb is a module of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from servingplan.api.config_maps import referenced_config_maps
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.act import Actor, Outcome
from servingplan.controller.clock import Clock
from servingplan.controller.drain import undrained
from servingplan.controller.observe import CONFIG_MAPS_EVERY_S, TARGET_PODS_EVERY_S, Observer, Seen
from servingplan.controller.report import Report, Reporter
from servingplan.controller.resolved import Resolved, ResolvedPlans, coming_midnight, highest_requirement
from servingplan.controller.rises import track
from servingplan.controller.signals import EnginePod, SignalPoller, following
from servingplan.controller.store import API_VERSION, KIND, Key, Store
from servingplan.controller.targets import is_watched
from servingplan.errors import Conflict, Problem, Refused
from servingplan.planning.decision import Decision, decide
from servingplan.planning.excess import Change, change
from servingplan.planning.lead import Rises
from servingplan.planning.observation import History, Observation, Trouble
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, NoSignals
from servingplan.rendering.engine import engine_hash
from servingplan.rendering.metadata import ENGINE_ANNOTATION
from servingplan.rendering.situation import Rollout, Situation
from servingplan.rendering.status import Figures, contest_from_wire, history_from_wire
from servingplan.reporting.hours import counted_gpus

Object = Mapping[str, Any]

REFUSED_RETRY_S = 60.0
"""A refusal is repeated slowly: it takes a person, or a quota that is freed, to change the answer."""

CONFLICT_RETRY_S, CONFLICT_RETRY_MAX_S = 0.2, 5.0
"""Somebody wrote between our look and our write, as a Deployment's own controller does all the time: look again, after
twice the time where it happens again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a reconcile works with, made once per process."""

    client: KubernetesClient
    store: Store
    clock: Clock
    observer: Observer
    actor: Actor
    poller: SignalPoller
    reporter: Reporter
    wake_at: Callable[[Key, datetime | None], None]


class Reconciler:
    """Reconciles plans, one at a time per key."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._plans = ResolvedPlans()
        self._conflicts: dict[Key, int] = {}
        self._decided: dict[Key, Decided] = {}

    async def reconcile(self, key: Key) -> float | None:
        """Bring one plan's target and status up to date. Returns the real seconds after which to do it again."""
        began = time.monotonic()
        conflicts = self._conflicts.pop(key, 0)
        try:
            document = await self._p.client.find(_ref(key))
            if document is None or document["metadata"].get("deletionTimestamp"):
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
        self._p.actor.forget(str(key))
        self._decided.pop(key, None)
        self._p.reporter.forget(key)
        self._p.wake_at(key, None)

    async def _reconcile(self, key: Key, document: Object) -> float | None:
        names = referenced_config_maps(document)
        try:
            config = await self._p.observer.config(key, names)
        except Refused as refusal:
            problem = Problem(path="spec.schedule", reason=Reason.READ_REFUSED.value, message=str(refusal))
            return await self._report_invalid(key, document, (problem,), again=REFUSED_RETRY_S)
        again = None if self._p.observer.watches_all(key, names) else CONFIG_MAPS_EVERY_S
        resolved = self._plans.get(key, document, config)
        if resolved.plan is None:
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
        situation = Situation(
            generation=generation,
            now=now,
            plan=_with_gpus(plan, seen),
            target_name=str(seen.view.ref),
            target_trouble=seen.trouble,
            autoscaler=seen.autoscaler,
            rollout=seen.view.rollout,
            accelerators=seen.accelerators,
            peak=None if seen.accelerators is None else highest_requirement(plan, now),
            previous=previous,
        )
        if seen.observation is None:
            return await self._report_trouble(key, document, situation)
        return await self._act(key, document, resolved, seen, situation)

    def _heard(self, key: Key, plan: Plan, seen: Seen, now: datetime) -> Heard | None:
        followed = following(plan)
        if followed is None:
            self._p.poller.forget(key)
            return None
        return self._p.poller.heard(key, followed, seen.serving, now)

    def _remember(
        self, key: Key, plan: Plan, seen: Seen, outcome: Outcome, *, decision: Decision, rises: Rises
    ) -> None:
        """Keep what the next signals are compared with; nothing where nobody listens."""
        if plan.feedback is None:
            self._decided.pop(key, None)
            return
        history = History(
            last_scale=outcome.last_scale,
            ramp=decision.ramp,
            raised=decision.adjustment.raised,
            excess=decision.adjustment.excess,
            rises=rises,
        )
        self._decided[key] = Decided(
            plan=plan,
            serving=seen.serving,
            observation=outcome.observation,
            history=history,
            decision=decision,
            draining=bool(outcome.draining) or _drains(outcome.observation),
        )

    def changes_by_signals(self, key: Key) -> bool:
        """Whether what the engines say now would change what is written: else a poll costs no look at the cluster."""
        known, followed = self._decided.get(key), None
        if known is not None:
            followed = following(known.plan)
        if known is None or followed is None:
            return False
        now = self._p.clock.now()
        heard = self._p.poller.heard(key, followed, known.serving, now)
        decision = decide(known.plan, replace(known.observation, heard=heard), known.history, now)
        return known.draining or _telling(decision, heard) != _telling(known.decision, known.observation.heard)

    async def _report_trouble(self, key: Key, document: Object, situation: Situation) -> float | None:
        report = Report(key=key, document=document, situation=situation)
        return _sooner(REFUSED_RETRY_S, await self._p.reporter.report(report))

    async def _act(
        self, key: Key, document: Object, resolved: Resolved, seen: Seen, situation: Situation
    ) -> float | None:
        plan, observation, now = situation.plan, seen.observation, situation.now
        if plan is None or observation is None:
            raise ValueError(f"{key}: nothing to act on")
        status = document.get("status", {})
        remembered = history_from_wire(status)
        contest = contest_from_wire(status)
        last_scale = self._p.actor.last_scale(seen.view, remembered.last_scale, contest, now)
        history = replace(remembered, last_scale=last_scale)
        observation = replace(observation, heard=self._heard(key, plan, seen, now))
        decision = decide(plan, observation, history, now)
        outcome = Outcome(observation=observation, last_scale=last_scale, contest=contest)
        if not plan.suspend and seen.autoscaler is None:
            if decision.desired != observation.current or _drains(observation):
                self._p.observer.forget(key)  # pods may be patched now: the next look must see it
            outcome = await self._p.actor.act(
                plan,
                document,
                seen.view,
                observation,
                decision,
                last_scale=last_scale,
                contest=contest,
                now=now,
            )
        rises = track(
            remembered.rises,
            plan,
            seen.view,
            remembered=remembered.last_scale,
            last_scale=outcome.last_scale,
            written=outcome.observation.current != observation.current,
            observation=outcome.observation,
            clock=self._p.clock,
            now=now,
        )
        self._remember(key, plan, seen, outcome, decision=decision, rises=rises)
        self._p.wake_at(key, _next_look(plan, decision, outcome, now))
        report = Report(
            key=key,
            document=document,
            situation=replace(
                situation,
                decision=decision,
                observation=outcome.observation,
                found=observation.current,
                contest=outcome.contest,
                rises=rises,
                undrained=None if plan.feedback is None else undrained(plan, seen.view),
                change=_change(plan, decision, document),
                begun=remembered.ramp,
                apply_trouble=outcome.refused,
                rollout=_rollout(situation, plan, seen, outcome),
            ),
            last_scale=outcome.last_scale,
            scaled=outcome.scaled,
            figures=_figures(resolved, plan),
        )
        return _sooner(await self._p.reporter.report(report), _again_after(plan, seen, decision, outcome))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a plan's last decision was made from and what it was, to tell whether new signals would change it.

    draining: a replica is waited for, so that every reading counts.
    """

    plan: Plan
    serving: tuple[EnginePod, ...]
    observation: Observation
    history: History
    decision: Decision
    draining: bool


def _drains(observation: Observation) -> bool:
    return any(replica.draining is not None for replica in observation.replicas)


def _change(plan: Plan, decision: Decision, document: Object) -> Change | None:
    """What would hold against the excess of arrivals, where there is one."""
    excess = decision.adjustment.excess
    if excess is None:
        return None
    return change(plan, decision.required, excess.rate, document["spec"]["schedule"])


def _telling(decision: Decision, heard: Heard | None) -> tuple[object, ...]:
    """What of a decision and its signals people or the cluster see; the numbers themselves move with every poll."""
    adjustment = decision.adjustment
    return (decision.desired, adjustment.reason, adjustment.raised, adjustment.excess, _silent(heard))


def _silent(heard: Heard | None) -> object:
    """Whom the condition MetricsAvailable names, and why; the words beside it may move with every poll."""
    if heard is None or isinstance(heard, NoSignals):
        return None if heard is None else heard.reason
    return {pod: trouble.reason for pod, trouble in heard.missing.items()}


def _again_after(plan: Plan, seen: Seen, decision: Decision, outcome: Outcome) -> float | None:
    """The real seconds after which to look again although nothing may have told of a change; None where something will.

    A refusal and a conflict are tried again, and pods of a named target are not watched while they come or go.
    """
    moving = decision.ramp is not None or outcome.observation.ready != outcome.observation.current
    by_itself = plan.engine is not None or (is_watched(seen.view.ref) and not moving)
    delay = None if by_itself else TARGET_PODS_EVERY_S
    if outcome.refused is not None:
        delay = _sooner(delay, REFUSED_RETRY_S)
    return _sooner(delay, CONFLICT_RETRY_S) if outcome.unfinished else delay


def _next_look(plan: Plan, decision: Decision, outcome: Outcome, now: datetime) -> datetime:
    """The first instant at which the clock alone changes something."""
    instants = [decision.next_change_at, coming_midnight(plan, now)]
    if outcome.again_at is not None:
        instants.append(outcome.again_at)
    return max(min(instants), now + timedelta(milliseconds=1))


def _rollout(situation: Situation, plan: Plan, seen: Seen, outcome: Outcome) -> Rollout:
    """Where the template stands after this reconcile.

    A Deployment takes a moment to say that it rolls: it does from the edit of the engine on that was applied just now,
    and until it has seen what was applied. Otherwise whoever waits for the plan is told in between that all is done.
    """
    held = situation.was("EngineUpToDate", Reason.TEMPLATE_HELD) if outcome.unfinished else outcome.held
    rollout, live = replace(seen.view.rollout, held=held), seen.view.live
    acted = not plan.suspend and seen.autoscaler is None and outcome.refused is None
    if plan.engine is None or live is None or not acted:
        return rollout
    metadata = live["metadata"]
    edited = metadata.get("annotations", {}).get(ENGINE_ANNOTATION) != engine_hash(plan.engine)
    unseen = live.get("status", {}).get("observedGeneration") != metadata.get("generation")
    began = edited or (unseen and situation.was("Reconciling", Reason.ROLLING_UPDATE))
    return replace(rollout, rolling=rollout.rolling or began)


def _with_gpus(plan: Plan, seen: Seen) -> Plan:
    """A named target's pods tell how many GPUs a replica takes, where the plan does not."""
    if plan.gpus_per_replica is not None or seen.view.gpus is None:
        return plan
    return replace(plan, gpus_per_replica=seen.view.gpus)


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
