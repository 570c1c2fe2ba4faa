"""The operator on virtual time, for one plan: the same decision, the same memory, the same drain.

In: an `Observation` and an instant, again and again. Out: the decision, and as `Orders` what the operator would write
for it. Whatever the operator does between ``decide`` and ``/scale`` that is no I/O lies in `planning`, and both call
it; what a plan's status holds for the operator, `Operated` holds itself. Nobody else writes replicas here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from servingplan.planning.decision import Decision, decide
from servingplan.planning.drain import Idle, Mark, drain
from servingplan.planning.memory import missed, noted, remembered, scaled
from servingplan.planning.observation import History, Observation, Scale
from servingplan.planning.plan import Plan
from servingplan.planning.rises import advance

EXACT = timedelta(0)
"""How coarse the timestamps of virtual time are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What is to be done to the target: set the marks, then replicas.

    replicas: what is to run; None where there is no target yet and none is made. scaled: the change that this is, None
    where it is none. wait_until: when a drain ends by the clock alone.
    """

    replicas: int | None
    marks: tuple[Mark, ...] = ()
    scaled: Scale | None = None
    wait_until: datetime | None = None


class Operated:
    """An operator that has one plan.

    drain_timeout: how long a replica may drain; an owned engine states it itself, and without one nothing drains.
    history: what was remembered before the first look. Between two looks it is in `history`, what is to be done
    in `orders`.
    """

    def __init__(self, plan: Plan, *, drain_timeout: timedelta | None = None, history: History | None = None) -> None:
        self._plan = plan
        self._drain_timeout = plan.engine.drain_timeout if plan.engine is not None else drain_timeout
        self._idle: Mapping[str, Idle] = {}
        self._was_ready = False
        self._wake_at: datetime | None = None
        self.history = History() if history is None else history
        self.orders = Orders(replicas=None)

    @property
    def wake_at(self) -> datetime:
        """When to look again though nothing was heard: the first instant at which the clock alone changes something.

        The instant of the last look itself where that taught another lead. There is none before the first look.
        """
        if self._wake_at is None:
            raise ValueError("nothing was observed yet: step comes first")
        return self._wake_at

    def step(self, observation: Observation, now: datetime) -> Decision:
        """One look at `now` (aware): decide, say in `orders` what is to be done, and remember.

        Whoever calls it carries the orders out before the next look.
        """
        decision = decide(self._plan, observation, self.history, now)
        self.orders = self._ordered(decision, observation, now)
        before, self.history = self.history, self._remembered(decision, observation, now)
        learned = self.history.rises.samples != before.rises.samples
        ends = self.orders.wait_until
        self._wake_at = now if learned else min(decision.next_change_at, ends or decision.next_change_at)
        return decision

    def _ordered(self, decision: Decision, observation: Observation, now: datetime) -> Orders:
        """What follows from a decision: a fall waits until all that leave are idle; a suspended plan takes it back."""
        current = observation.current
        wanted = current or 0 if self._plan.suspend else decision.desired
        found = drain(self._plan, observation, desired=wanted, timeout=self._drain_timeout, idle=self._idle, now=now)
        self._idle = found.idle
        write = None if self._plan.suspend or found.may_lower_to > wanted or wanted == current else wanted
        return Orders(
            replicas=current if write is None else write,
            marks=found.marks,
            scaled=scaled(before=current or 0, write=write, because=decision.because, now=now),
            wait_until=found.wait_until,
        )

    def _remembered(self, decision: Decision, observation: Observation, now: datetime) -> History:
        """What the next decision must know once the orders are carried out."""
        before, made = self.history, self.orders.scaled
        after = replace(observation, current=self.orders.replicas)
        last_scale = before.last_scale
        if not self._plan.suspend:
            last_scale = noted(before.last_scale, made, current=after.current, now=now)
        rises = advance(
            before.rises,
            fingerprint=before.rises.fingerprint,
            remembered=before.last_scale,
            last_scale=last_scale,
            written=made is not None,
            observation=after,
            now=now,
            grain=EXACT,
        )
        required, ramp = decision.required.replicas, decision.ramp
        late = missed(before.ramp, was_ready=self._was_ready, ready=after.ready, required=required, now=now)
        self._was_ready = late is None and ramp is not None and after.ready >= ramp.needed
        return remembered(decision, missed=late, last_scale=last_scale, rises=rises)
