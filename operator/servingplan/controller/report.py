"""Report: status, events, metrics and one log line of a reconcile.

In: a `Report`, what a reconcile found and did. Out: a status that is written only when it changes in meaning, counts
at most every 30 s; with it an entry of the ledger where the decision is another one; an event per change of replicas
and per condition that turns; one structured line of the log per decision, with its whole trail.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import Clock
from servingplan.controller.events import EventRecorder, EventType
from servingplan.controller.ledger import LedgerKeeper
from servingplan.controller.logging import FIELDS
from servingplan.controller.metrics import OperatorMetrics, PlanNumbers
from servingplan.controller.store import Key, Store
from servingplan.errors import Conflict, NotFound
from servingplan.planning.observation import Ramp, Scale
from servingplan.planning.reasons import Reason
from servingplan.rendering.ledger import entry_of
from servingplan.rendering.situation import Situation
from servingplan.rendering.status import Figures, render_status, same_meaning, trail_to_wire

Object = Mapping[str, Any]

COUNTS_EVERY = timedelta(seconds=30)
"""How often status is written for counts and progress alone, on the plan's clock."""

QUIET_CONDITIONS = frozenset({"Reconciling", "ScalingLimited"})
"""No news: an edit or a bound is somebody's own doing."""

TOLD_BY_READY = frozenset({Reason.RESERVE_MISSING, Reason.RESERVE_READY})
"""Whenever the reserve is not there, fewer are ready than required: Ready turns with it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one reconcile found and did."""

    key: Key
    document: Object
    situation: Situation
    last_scale: Scale | None = None
    scaled: Scale | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Margin:
    """How long before the start of a ramp its replicas were ready; open: it began, and they still are not."""

    ramp: Ramp
    seconds: float
    open: bool


class Reporter:
    """Tells people and machines; the only writer of status. ledger: None where no decisions are written down."""

    def __init__(
        self,
        *,
        client: KubernetesClient,
        store: Store,
        clock: Clock,
        events: EventRecorder,
        metrics: OperatorMetrics,
        ledger: LedgerKeeper | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._ledger = ledger
        self._written: dict[Key, datetime] = {}
        self._margins: dict[Key, _Margin] = {}

    def took(self, seconds: float) -> None:
        """Count one reconcile."""
        self._metrics.reconcile_took(seconds)

    def forget(self, key: Key) -> None:
        """Show nothing more of a plan that is gone."""
        self._metrics.forget_plan(key.namespace, key.name)
        self._written.pop(key, None)
        self._margins.pop(key, None)
        if self._ledger is not None:
            self._ledger.forget(key)

    async def report(self, report: Report) -> float | None:
        """Write what has to be written. Returns the real seconds after which counts are due, None where none are."""
        old = report.document.get("status", {})
        new = render_status(
            report.situation,
            old,
            last_scale=report.last_scale,
            figures=report.figures,
            demo_clock=self._clock.describe(),
        )
        self._measure(report, new)
        if report.scaled is not None:
            self._tell_scale(report, report.scaled)
        if new == old:
            return None
        if same_meaning(new, old):
            now, written = report.situation.now, self._written.get(report.key)
            if written is not None and written <= now < written + COUNTS_EVERY:
                return self._clock.seconds_until(written + COUNTS_EVERY)
        if self._ledger is not None:
            # Before the status: a stop in between leaves an entry that the next process finds, and none is lost.
            await self._ledger.note(report.key, report.document, entry_of(report.situation, old, report.scaled))
        await self._write(report, new)
        self._tell_decision(report, old, new)
        self._tell_conditions(report, old, new)
        return None

    async def _write(self, report: Report, status: Object) -> None:
        """Write a status over the one that it was made from. Raises Conflict where another process wrote one."""
        try:
            try:
                live = await self._apply(report.document, status)
            except Conflict:
                document = await self._client.get(ObjectRef.of(report.document))
                if document.get("status", {}) != report.document.get("status", {}):
                    raise
                live = await self._apply(document, status)  # the user wrote in between, which the next look sees
        except NotFound:
            return  # the plan went while it was reconciled
        self._written[report.key] = report.situation.now
        self._store.put_plan(live)

    async def _apply(self, document: Object, status: Object) -> Object:
        """Apply a status to that very state of a plan."""
        kept = ("name", "namespace", "resourceVersion")
        metadata = {field: document["metadata"][field] for field in kept}
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}
        return await self._client.apply_status(manifest)

    # ---- events ----

    def _tell_scale(self, report: Report, scale: Scale) -> None:
        up = scale.after > scale.before
        self._metrics.scaled(report.key.namespace, report.key.name, up=up)
        contested = report.situation.contest is not None
        self._events.record(
            report.document,
            reason="ScaledUp" if up else "ScaledDown",
            note=f"replicas {scale.before} to {scale.after}: {scale.because}{self._demo()}",
            action="Scale",
            event_type=EventType.WARNING if contested else EventType.NORMAL,
        )
        self._log_decision(report, f"replicas {scale.before} to {scale.after}: {scale.because}")

    def _tell_decision(self, report: Report, old: Object, new: Object) -> None:
        """A decision that is new and changed no replicas; one that did was told with the change."""
        decision = report.situation.decision
        if decision is not None and report.scaled is None and new["decision"] != old.get("decision"):
            self._log_decision(report, f"{decision.desired} desired: {decision.because}")

    def _log_decision(self, report: Report, text: str) -> None:
        decision = report.situation.decision
        fields = {"plan": str(report.key), "trail": trail_to_wire(decision.trail if decision else ())}
        _log.info("%s: %s", report.key, text, extra={FIELDS: fields})

    def _tell_conditions(self, report: Report, old: Object, new: Object) -> None:
        """An event for each condition that turned bad, is bad for another reason, or is good again.

        One event where several conditions say the same.
        """
        before = {condition["type"]: condition for condition in old.get("conditions", ())}
        told: set[tuple[str, str]] = set()
        for condition in new["conditions"]:
            was = before.get(condition["type"], {})
            words = (condition["reason"], condition["message"])
            if condition["type"] in QUIET_CONDITIONS or words in told or not _is_news(condition, was):
                continue
            told.add(words)
            self._tell_condition(report, condition, bad=_is_bad(condition))

    def _tell_condition(self, report: Report, condition: Object, *, bad: bool) -> None:
        text = f"{condition['type']} is {condition['status']}: {condition['message']}"
        self._events.record(
            report.document,
            reason=condition["reason"],
            note=text + self._demo(),
            action="Assess",
            event_type=EventType.WARNING if bad else EventType.NORMAL,
        )
        _log.log(
            logging.WARNING if bad else logging.INFO,
            "%s: %s",
            report.key,
            text,
            extra={FIELDS: {"plan": str(report.key), "reason": condition["reason"]}},
        )

    def _demo(self) -> str:
        return " (demo clock)" if self._clock.describe() else ""

    # ---- metrics ----

    def _measure(self, report: Report, status: Object) -> None:
        key, s = report.key, report.situation
        statuses = {condition["type"]: condition["status"] for condition in status["conditions"]}
        self._metrics.conditions(key.namespace, key.name, statuses)
        if s.decision is None or s.observation is None:
            return
        change, learned = s.decision.next_change, s.observation.learned
        self._metrics.plan_reconciled(
            key.namespace,
            key.name,
            PlanNumbers(
                desired=s.decision.desired,
                required=s.decision.required.replicas,
                current=s.observation.current or 0,
                ready=s.observation.ready,
                reserve=s.decision.required.reserve,
                next_change_at=None if change is None else change.time,
                ramp_margin_s=self._ramp_margin(key, s),
                learned_at=None if learned is None else learned.at,
                learned_days=None if learned is None else learned.days,
            ),
        )

    def _ramp_margin(self, key: Key, s: Situation) -> float | None:
        """Seconds between "all replicas of the ramp verified" and its start; kept until the next ramp.

        While a ramp is missed, and once more when it is complete at last, the seconds since its start, negative.
        """
        if s.decision is None or s.observation is None:
            return None
        known, ramp = self._margins.get(key), s.decision.ramp
        if s.missed is not None:
            known = _margin(s.missed, s.now, is_open=True)
        elif known is not None and known.open:
            known = _margin(known.ramp, s.now, is_open=False)  # complete at last, or not required any more
        elif (
            ramp is not None
            and s.observation.ready >= ramp.needed
            and (known is None or known.ramp.start != ramp.start)
        ):
            known = _margin(ramp, s.now, is_open=False)
        if known is None:
            return None
        self._margins[key] = known
        return known.seconds


def _margin(ramp: Ramp, now: datetime, *, is_open: bool) -> _Margin:
    return _Margin(ramp=ramp, seconds=(ramp.start - now).total_seconds(), open=is_open)


def _is_bad(condition: Object) -> bool:
    return bool(condition["status"] == ("True" if condition["type"] == "Stalled" else "False"))


def _is_news(condition: Object, was: Object) -> bool:
    """Whether a condition turned bad, is bad for another reason than before, or is not bad any more."""
    if {condition["reason"], was.get("reason")} <= TOLD_BY_READY | {None}:
        return False
    if condition["status"] == was.get("status"):
        return _is_bad(condition) and condition["reason"] != was["reason"]
    return _is_bad(condition) or was.get("status") == "False"
