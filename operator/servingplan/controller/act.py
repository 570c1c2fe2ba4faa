"""Act: from a decision to the writes that carry it out, in the order that survives a stop at any point.

In: a plan, what was seen, the decision, the history. Out: an `Outcome`, what the cluster holds afterwards. Decides
nothing about how many; who may write is ``planning.ownership``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from servingplan.controller.apply import Applier
from servingplan.controller.clock import Clock
from servingplan.controller.drain import Drainer
from servingplan.controller.field_owners import field_owners, only_main_entry
from servingplan.controller.store import Key
from servingplan.controller.targets import TargetView, kind_of
from servingplan.errors import Conflict, Refused
from servingplan.planning.decision import Decision
from servingplan.planning.drain import Drain, DrainingReplica
from servingplan.planning.memory import TAKEN_OVER, noted, scaled
from servingplan.planning.observation import Observation, Scale, Trouble
from servingplan.planning.ownership import Contest, FieldOwner, Verdict, judge
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import Owner

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the cluster holds after the writes.

    scaled: the change of replicas that was made, None where none was. again_at: when the verdict on who may write
    can change by the clock alone. refused: what the API server did not let through. unfinished: replicas are written
    and the other objects are not yet.
    """

    observation: Observation
    last_scale: Scale | None
    scaled: Scale | None = None
    contest: Contest | None = None
    held: bool = False
    draining: tuple[DrainingReplica, ...] = ()
    again_at: datetime | None = None
    refused: Trouble | None = None
    unfinished: bool = False


OBJECT_TRIES = 3
"""How often the objects beside the replicas are tried once these are written: what was done must be told."""


class Actor:
    """Carries out decisions, one plan at a time."""

    def __init__(self, *, applier: Applier, drainer: Drainer, clock: Clock, field_manager: str) -> None:
        self._applier = applier
        self._drainer = drainer
        self._clock = clock
        self._manager = field_manager

    def last_scale(
        self, view: TargetView, remembered: Scale | None, contest: Contest | None, now: datetime
    ) -> Scale | None:
        """The last change of ours: as remembered, or, where a stop kept it from being written down, as the field tells.

        A value that nobody but us owns and that status does not know was ours too; when it was written the server
        does not say, so it counts as written now: the next step down comes late rather than early. What another
        manager owns too may be its value, as it is in a contest. What we did to an object that is gone counts no more.
        """
        if view.live is None or (remembered is not None and self._created(view.live) > remembered.time):
            remembered = None
        owners = self._owners(view)
        ours = contest is None and bool(owners) and all(owner.ours for owner in owners)
        if not ours or view.current is None or (remembered is not None and remembered.after == view.current):
            return remembered
        before = view.current if remembered is None else remembered.after
        because = TAKEN_OVER if remembered is None else remembered.because
        return Scale(time=now, before=before, after=view.current, because=because)

    async def act(
        self,
        plan: Plan,
        document: Object,
        view: TargetView,
        found: Outcome,
        decision: Decision,
        *,
        now: datetime,
        keep: bool = False,
    ) -> Outcome:
        """Carry out a decision, from what was found on. keep: leave an engine's Deployment as it is, but its replicas.

        Raises Conflict, before anything is written, and Unreachable: look and decide again.
        """
        outcome, owner = found, Owner.of(document)
        try:
            if plan.engine is not None and view.live is None:
                view = await self._applier.create_engine(plan, owner, decision.desired)
            verdict = self._judge(view, decision, found, now)
            drain = await self._drain(plan, view, found.observation, verdict, now)
            if verdict.write is not None and drain.may_lower_to > verdict.write:
                verdict = replace(verdict, write=None, again_at=_earlier(verdict.again_at, drain.wait_until))
            outcome = replace(outcome, draining=drain.draining)
            before = 0 if self._is_new(plan, view) else found.observation.current or 0
            view = await self._applier.write_replicas(view, verdict)
            outcome = _after(outcome, verdict, view, decision, now, before=before)
            if plan.engine is not None:
                written = verdict.write is not None
                outcome = await self._apply_objects(plan, owner, view, outcome, written=written, keep=keep)
        except Refused as refusal:
            trouble = Trouble(reason=Reason.APPLY_REFUSED, message=str(refusal))
            return replace(outcome, refused=trouble)
        return outcome

    async def _drain(
        self, plan: Plan, view: TargetView, observation: Observation, verdict: Verdict, now: datetime
    ) -> Drain:
        """Replicas leave the Service and become idle before they are removed; those that stay serve again."""
        current = view.current or 0
        desired = current if verdict.write is None else verdict.write
        seen = replace(observation, current=current)
        return await self._drainer.step(plan, view, seen, desired=desired, now=now)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a plan that is gone."""
        self._drainer.forget(str(key))
        self._applier.forget(key.namespace, key.name)

    async def _apply_objects(
        self, plan: Plan, owner: Owner, view: TargetView, outcome: Outcome, *, written: bool, keep: bool
    ) -> Outcome:
        """Apply an engine's objects. Raises Conflict only where nothing was written before.

        A conflict is no more than the Deployment's own controller at work, which a change of replicas sets off. If it
        ended the reconcile, nobody would be told of the change, or of the contest that it was made in.
        """
        for attempt in range(1, OBJECT_TRIES + 1):
            try:
                applied = await self._applier.apply_objects(plan, owner, view, keep=keep)
            except Conflict:
                if not written:
                    raise
                if attempt < OBJECT_TRIES:
                    view = await self._applier.look_again(view)
            else:
                return replace(outcome, held=applied.held, refused=applied.trouble)
        return replace(outcome, unfinished=True)

    def _judge(self, view: TargetView, decision: Decision, found: Outcome, now: datetime) -> Verdict:
        current = view.current or 0
        verdict = judge(
            desired=decision.desired,
            current=current,
            owners=self._owners(view),
            last_scale=found.last_scale,
            contest=found.contest,
            now=now,
        )
        if verdict.write == current and not kind_of(view.ref).applied:
            # A patch that changes nothing gains no ownership: it would go out again with every reconcile.
            return replace(verdict, write=None)
        return verdict

    def _is_new(self, plan: Plan, view: TargetView) -> bool:
        """True from the creation of an engine to its first ``/scale``, however many looks that takes.

        A conflict or a stop in between must not make of the creation a value that was found.
        """
        return plan.engine is not None and only_main_entry(view.owners, self._manager)

    def _created(self, live: Object) -> datetime:
        return self._clock.from_real(datetime.fromisoformat(live["metadata"]["creationTimestamp"]))

    def _owners(self, view: TargetView) -> tuple[FieldOwner, ...]:
        subresource = kind_of(view.ref).subresource
        return field_owners(view.owners, manager=self._manager, clock=self._clock, subresource=subresource)


def _after(
    outcome: Outcome, verdict: Verdict, view: TargetView, decision: Decision, now: datetime, *, before: int
) -> Outcome:
    """What is remembered after the write that a verdict asked for. before: the replicas that ran until then."""
    current = verdict.write if verdict.write is not None else view.current
    made = scaled(before=before, write=verdict.write, because=decision.because, now=now)
    ended = outcome.contest is not None and verdict.contest is None
    return replace(
        outcome,
        observation=replace(outcome.observation, current=current),
        last_scale=noted(outcome.last_scale, made, current=current, ended=ended, now=now),
        scaled=made,
        contest=verdict.contest,
        again_at=verdict.again_at,
    )


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((instant for instant in (one, other) if instant is not None), default=None)
