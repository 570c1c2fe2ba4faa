"""What was decided last of each plan, so that a poll of its engines costs a look at the cluster only if that changes.

In: what a reconcile decided and found, and what the engines say now. Out: whether another decision would come of it.
Nothing here acts, and nothing that is lost with the process matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from servingplan.controller.act import Outcome
from servingplan.controller.clock import Clock
from servingplan.controller.observe import Seen
from servingplan.controller.signals import EnginePod, SignalPoller, following
from servingplan.controller.store import Key
from servingplan.planning.decision import Decision, decide
from servingplan.planning.drain import drains
from servingplan.planning.observation import History, Observation
from servingplan.planning.plan import Plan
from servingplan.planning.signals import Heard, NoSignals
from servingplan.rendering.currency import Case, capacity_current
from servingplan.rendering.serving import RunningPod
from servingplan.rendering.situation import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a plan's last decision was made from and what it was.

    draining: a replica is waited for, so that every reading counts.
    """

    plan: Plan
    serving: tuple[EnginePod, ...]
    running: tuple[RunningPod, ...]
    currency: Condition | None
    observation: Observation
    history: History
    decision: Decision
    draining: bool


class LastDecisions:
    """The last decision of each plan that listens to its engines."""

    def __init__(self, *, poller: SignalPoller, clock: Clock) -> None:
        self._poller = poller
        self._clock = clock
        self._decided: dict[Key, Decided] = {}

    def observed(self, key: Key) -> Observation | None:
        """The target as it was after the last decision; None where nobody listens."""
        known = self._decided.get(key)
        return None if known is None else known.observation

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a plan that is gone."""
        self._decided.pop(key, None)

    def remember(
        self,
        key: Key,
        plan: Plan,
        seen: Seen,
        outcome: Outcome,
        *,
        decision: Decision,
        history: History,
        currency: Condition | None,
    ) -> None:
        """Keep what the next signals are compared with; nothing where nobody listens."""
        if plan.feedback is None:
            self.forget(key)
            return
        self._decided[key] = Decided(
            plan=plan,
            serving=seen.serving,
            running=seen.running,
            currency=currency,
            observation=outcome.observation,
            history=history,
            decision=decision,
            draining=bool(outcome.draining) or drains(outcome.observation),
        )

    def changes_by_signals(self, key: Key) -> bool:
        """Whether what the engines say now would change what is written."""
        known = self._decided.get(key)
        followed = None if known is None else following(known.plan)
        if known is None or followed is None:
            return False
        now = self._clock.now()
        heard = self._poller.heard(key, followed, known.serving, now)
        decision = decide(known.plan, replace(known.observation, heard=heard), known.history, now)
        if known.draining or _telling(decision, heard) != _telling(known.decision, known.observation.heard):
            return True
        said = {} if known.currency is None else known.currency.said
        case = Case(plan=known.plan, running=known.running, heard=heard, previous=said)
        return capacity_current(case) != known.currency


def _telling(decision: Decision, heard: Heard | None) -> tuple[object, ...]:
    """What of a decision and its signals people or the cluster see; the numbers themselves move with every poll."""
    adjustment = decision.adjustment
    return (decision.desired, adjustment.reason, adjustment.raised, adjustment.excess, _silent(heard))


def _silent(heard: Heard | None) -> object:
    """Whom the condition MetricsAvailable names, and why; the words beside it may move with every poll."""
    if heard is None or isinstance(heard, NoSignals):
        return None if heard is None else heard.reason
    return {pod: trouble.reason for pod, trouble in heard.missing.items()}
