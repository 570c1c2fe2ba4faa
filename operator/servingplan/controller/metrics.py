"""What Prometheus scrapes from the operator.

In: values of reconciles, requests and leadership. Out: the text of ``/metrics``. What belongs to a plan goes
when the plan goes. Conditions and instants here may change by themselves; those in status may not.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST

PLAN = ("namespace", "name")
STATUSES = ("True", "False", "Unknown")
RECONCILE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From a reconcile that writes nothing to one whose every request runs into its time-out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNumbers:
    """One plan as its last reconcile left it. None: not known, or nothing comes.

    ramp_margin_s: seconds from the moment that all replicas of the last ramp were verified, or now, to its
    start; negative when it was missed. learned_at, learned_days: when foresight last learned, and from how many days.
    """

    desired: int
    required: int
    current: int
    ready: int
    reserve: int
    next_change_at: datetime | None = None
    ramp_margin_s: float | None = None
    learned_at: datetime | None = None
    learned_days: float | None = None


class OperatorMetrics:
    """All metrics of one operator process, in a registry of their own."""

    def __init__(self, *, version: str, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._plans: dict[tuple[str, str], frozenset[str]] = {}
        self._desired = self._gauge("desired_replicas", "Replicas that the operator asks for now.")
        self._required = self._gauge("required_replicas", "Replicas that the schedule needs ready now.")
        self._current = self._gauge("current_replicas", "Replicas that exist, starting ones included.")
        self._ready = self._gauge("ready_replicas", "Replicas that serve. Below required: users notice.")
        self._reserve = self._gauge("reserve_replicas", "Replicas beyond the need in what is required now.")
        self._next_change = self._gauge(
            "next_change_timestamp_seconds", "When the operator acts next by schedule, on its clock."
        )
        self._ramp_margin = self._gauge(
            "ramp_margin_seconds", "Start of the ramp minus all its replicas ready. Negative: missed."
        )
        self._learned_at = self._gauge(
            "foresight_learned_timestamp_seconds",
            "When foresight last learned from the past. Older than a day: it fails.",
        )
        self._learned_days = self._gauge("foresight_learned_days", "Days of arrivals that foresight learned from.")
        self._condition = self._gauge(
            "plan_condition", "1 for the status that a plan's condition has, else 0.", "type", "status"
        )
        self._build(version)

    def _build(self, version: str) -> None:
        self._scales = Counter(
            "servingplan_scale_operations",
            "Writes of replicas or of an autoscaler's minimum. Many in an hour: a second writer.",
            (*PLAN, "direction"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "servingplan_reconcile_duration_seconds",
            "Duration of a reconcile, failed ones included.",
            buckets=RECONCILE_BUCKETS_S,
            registry=self.registry,
        )
        self._errors = Counter(
            "servingplan_reconcile_errors",
            "Reconciles that failed, by the kind of error; they are repeated with backoff.",
            ("reason",),
            registry=self.registry,
        )
        self._requests = Counter(
            "servingplan_api_requests",
            "Requests to the API server. Writes without a change in any plan: a defect.",
            ("verb", "resource", "code"),
            registry=self.registry,
        )
        self._queries = Counter(
            "servingplan_signal_queries",
            "Queries for signals, and scrapes of pods (source pods), by how they ended.",
            ("source", "outcome"),
            registry=self.registry,
        )
        self._ledger_errors = Counter(
            "servingplan_ledger_errors",
            "Decisions that could not be written down, by the kind of error; they wait for the next one.",
            ("reason",),
            registry=self.registry,
        )
        self._leader = Gauge("servingplan_leader_status", "1 while this process leads, else 0.", registry=self.registry)
        build = Gauge(
            "servingplan_build_info",
            "Always 1; what runs is in the labels.",
            ("version", "python"),
            registry=self.registry,
        )
        build.labels(version, platform.python_version()).set(1)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"servingplan_{name}", text, (*PLAN, *labels), registry=self.registry)

    def plan_reconciled(self, namespace: str, name: str, numbers: PlanNumbers) -> None:
        """Show a plan's numbers."""
        self._plans.setdefault((namespace, name), frozenset())
        self._desired.labels(namespace, name).set(numbers.desired)
        self._required.labels(namespace, name).set(numbers.required)
        self._current.labels(namespace, name).set(numbers.current)
        self._ready.labels(namespace, name).set(numbers.ready)
        self._reserve.labels(namespace, name).set(numbers.reserve)
        for gauge, at in ((self._next_change, numbers.next_change_at), (self._learned_at, numbers.learned_at)):
            _set_or_remove(gauge, namespace, name, at.timestamp() if at is not None else None)
        _set_or_remove(self._learned_days, namespace, name, numbers.learned_days)
        _set_or_remove(self._ramp_margin, namespace, name, numbers.ramp_margin_s)

    def conditions(self, namespace: str, name: str, statuses: Mapping[str, str]) -> None:
        """Show a plan's conditions (type to True, False or Unknown); those that it no longer has, go."""
        before = self._plans.get((namespace, name), frozenset())
        for gone in sorted(before - set(statuses)):
            self._forget_condition(namespace, name, gone)
        for kind, present in statuses.items():
            for status in STATUSES:
                self._condition.labels(namespace, name, kind, status).set(int(status == present))
        self._plans[namespace, name] = frozenset(statuses)

    def forget_plan(self, namespace: str, name: str) -> None:
        """Show nothing more of a plan that was deleted."""
        for kind in sorted(self._plans.pop((namespace, name), frozenset())):
            self._forget_condition(namespace, name, kind)
        for gauge in (self._desired, self._required, self._current, self._ready, self._reserve):
            _set_or_remove(gauge, namespace, name, None)
        for gauge in (self._next_change, self._ramp_margin, self._learned_at, self._learned_days):
            _set_or_remove(gauge, namespace, name, None)
        for direction in ("up", "down"):
            self._scales.remove_by_labels({"namespace": namespace, "name": name, "direction": direction})

    def scaled(self, namespace: str, name: str, *, up: bool) -> None:
        """Count one write of replicas."""
        self._scales.labels(namespace, name, "up" if up else "down").inc()

    def reconcile_took(self, seconds: float) -> None:
        """Count one reconcile."""
        self._duration.observe(seconds)

    def reconcile_failed(self, reason: str) -> None:
        """Count one failed reconcile. reason: the error's class, so that there are few."""
        self._errors.labels(reason).inc()

    def request_done(self, *, verb: str, resource: str, code: str, seconds: float) -> None:  # noqa: ARG002  RequestObserver
        """Count one request to the API server; a `RequestObserver`."""
        self._requests.labels(verb, resource, code).inc()

    def query_done(self, *, source: str, outcome: str) -> None:
        """Count one query for signals; a `QueryObserver`."""
        self._queries.labels(source, outcome).inc()

    def ledger_failed(self, reason: str) -> None:
        """Count one decision that could not be written down. reason: the error's class, so that there are few."""
        self._ledger_errors.labels(reason).inc()

    def leading(self, *, leads: bool) -> None:
        """Show whether this process leads."""
        self._leader.set(int(leads))

    def render(self) -> bytes:
        """Write all metrics in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self.registry)

    def _forget_condition(self, namespace: str, name: str, kind: str) -> None:
        labels = {"namespace": namespace, "name": name, "type": kind}
        self._condition.remove_by_labels(labels)


def _set_or_remove(gauge: Gauge, namespace: str, name: str, value: float | None) -> None:
    if value is None:
        gauge.remove_by_labels({"namespace": namespace, "name": name})
    else:
        gauge.labels(namespace, name).set(value)
