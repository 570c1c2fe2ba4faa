"""Report: status, events, metrics and one log line of a reconcile.

In: a `Report`, what a reconcile found and did. Out: a status that is written only when it changes in meaning, counts
at most every 30 s; an event per change of replicas and per condition that turns; one structured line per decision.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.clock import Clock
from servingplan.controller.events import EventRecorder, EventType
from servingplan.controller.logging import FIELDS
from servingplan.controller.metrics import OperatorMetrics, PlanNumbers
from servingplan.controller.store import API_VERSION, KIND, Key, Store
from servingplan.planning.observation import Ramp, Scale
from servingplan.rendering.conditions import Situation
from servingplan.rendering.status import Figures, render_status, same_meaning, trail_to_wire

Object = Mapping[str, Any]

COUNTS_EVERY = timedelta(seconds=30)
"""How often status is written for counts and progress alone, on the plan's clock."""

QUIET_CONDITIONS = frozenset({"Reconciling", "ScalingLimited"})
"""True is no news here, and Ready or Stalled tell the rest."""

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


class Reporter:
    """Tells people and machines; the only writer of status."""

    def __init__(
        self,
        *,
        client: KubernetesClient,
        store: Store,
        clock: Clock,
        events: EventRecorder,
        metrics: OperatorMetrics,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._written: dict[Key, datetime] = {}
        self._margins: dict[Key, tuple[Ramp, float]] = {}

    def took(self, seconds: float) -> None:
        """Count one reconcile."""
        self._metrics.reconcile_took(seconds)

    def forget(self, key: Key) -> None:
        """Show nothing more of a plan that is gone."""
        self._metrics.forget_plan(key.namespace, key.name)
        self._written.pop(key, None)
        self._margins.pop(key, None)

    async def report(self, report: Report) -> float | None:
        """Write what has to be written. Returns the real seconds after which counts are due, None where none are."""
        old = report.document.get("status", {})
        new = render_status(report.situation, old, last_scale=report.last_scale, figures=report.figures)
        self._measure(report, new)
        if report.scaled is not None:
            self._tell_scale(report, report.scaled)
        if new == old:
            return None
        if same_meaning(new, old):
            due = self._written.get(report.key, report.situation.now - COUNTS_EVERY) + COUNTS_EVERY
            if report.situation.now < due:
                return self._clock.seconds_until(due)
        self._tell_conditions(report, old, new)
        await self._write(report, new)
        return None

    async def _write(self, report: Report, status: Object) -> None:
        metadata = report.document["metadata"]
        manifest = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": report.key.name, "namespace": report.key.namespace},
            "status": status,
        }
        live = await self._client.apply_status(manifest)
        self._written[report.key] = report.situation.now
        if live["metadata"]["uid"] == metadata["uid"]:
            self._store.put_plan(live)

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
        decision = report.situation.decision
        _log.info(
            "%s: replicas %d to %d: %s",
            report.key,
            scale.before,
            scale.after,
            scale.because,
            extra={FIELDS: {"plan": str(report.key), "trail": trail_to_wire(decision.trail if decision else ())}},
        )

    def _tell_conditions(self, report: Report, old: Object, new: Object) -> None:
        """An event for each condition that turned bad, or good again."""
        before = {condition["type"]: condition for condition in old.get("conditions", ())}
        for condition in new["conditions"]:
            kind, status = condition["type"], condition["status"]
            was = before.get(kind, {}).get("status")
            if kind in QUIET_CONDITIONS or status == was:
                continue
            bad = (status == "True") if kind == "Stalled" else (status == "False")
            if bad or was == "False":
                self._tell_condition(report, condition, bad=bad)

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
        change = s.decision.next_change
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
            ),
        )

    def _ramp_margin(self, key: Key, s: Situation) -> float | None:
        """Seconds between "all replicas of the ramp verified" and its start; kept until the next ramp."""
        if s.decision is None or s.observation is None:
            return None
        known = self._margins.get(key)
        ramp = s.decision.ramp
        if ramp is None or s.observation.ready < ramp.needed:
            return known[1] if known is not None else None
        if known is None or known[0].start != ramp.start:
            self._margins[key] = (ramp, (ramp.start - s.now).total_seconds())
        return self._margins[key][1]
