"""The operator's own parts around a small API server and a still clock: everything but kopf and the network."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry

from planning.loop import berlin
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.act import Actor
from servingplan.controller.apply import Applier
from servingplan.controller.drain import Drainer
from servingplan.controller.events import EventRecorder
from servingplan.controller.learner import Learner
from servingplan.controller.ledger import LedgerKeeper
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.observe import Observer
from servingplan.controller.reconcile import Parts, Reconciler
from servingplan.controller.report import Reporter
from servingplan.controller.signals import SignalPoller
from servingplan.controller.store import Key, Store
from servingplan.rendering.metadata import DEFAULT_INSTALLATION, SERVING_LABEL
from support.api_server import FIELD_MANAGER, FORCED, ApiServer
from support.live import StillClock
from support.specs import document, targeting

KEY = Key("llm", "support-chat")
PLAN = ObjectRef(api_version="servingplan.dev/v1alpha1", kind="ServingPlan", name="support-chat", namespace="llm")
TARGET = ObjectRef(api_version="apps/v1", kind="Deployment", name="vllm", namespace="llm")
ENGINE = ObjectRef(api_version="apps/v1", kind="Deployment", name="support-chat", namespace="llm")


class Events:
    """Keeps the events that are posted, as ``Warning Ready is False: ...``."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        self.said.append(f"{manifest['type']} {manifest['reason']}: {manifest['note']}")
        return dict(manifest)

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body}


class SmallOperator:
    """One plan's operator: ``await operator.look("2026-12-01T07:48")`` reconciles at an instant of Berlin's clock."""

    def __init__(self, at: str = "2026-12-01T07:00", *, demo_clock: str = "", ledger_days: int = 0) -> None:
        self.server, self.store, self.clock = ApiServer(), Store(), StillClock(berlin(at), demo_clock)
        self.events = Events()
        self.metrics = OperatorMetrics(version="1", registry=CollectorRegistry())
        self.ledger_days = ledger_days
        self.wakes_at: datetime | None = None
        self.recorder = EventRecorder(client=self.events, controller="servingplan.dev/operator", instance="operator-0")
        self.restart()

    def restart(self) -> None:
        """Forget everything that is not in the cluster."""
        client = cast("KubernetesClient", self.server)
        self.applier = Applier(client=client, installation=DEFAULT_INSTALLATION)
        self.ledger = self._ledger(client)
        self.reporter = Reporter(
            client=client,
            store=self.store,
            clock=self.clock,
            events=self.recorder,
            metrics=self.metrics,
            ledger=self.ledger,
        )
        self.observer = Observer(client=client, store=self.store, clock=self.clock, installation=DEFAULT_INSTALLATION)
        self.poller = SignalPoller(
            sources={},
            clock=self.clock,
            observe=self.metrics.query_done,
            on_polled=lambda key: None,
            real_now=self.clock.now,
            user_agent="servingplan/test",
        )
        self.learner = Learner(client=self.poller.client, clock=self.clock, on_learned=lambda key: None)
        parts = Parts(
            client=client,
            store=self.store,
            clock=self.clock,
            observer=self.observer,
            actor=Actor(
                applier=self.applier, drainer=Drainer(client=client), clock=self.clock, field_manager=FIELD_MANAGER
            ),
            poller=self.poller,
            learner=self.learner,
            reporter=self.reporter,
            wake_at=self._wake_at,
        )
        self.reconciler = Reconciler(parts)

    def _ledger(self, client: KubernetesClient) -> LedgerKeeper | None:
        if not self.ledger_days:
            return None
        return LedgerKeeper(
            client=client,
            events=self.recorder,
            metrics=self.metrics,
            installation=DEFAULT_INSTALLATION,
            days=self.ledger_days,
        )

    def _wake_at(self, key: Key, when: datetime | None) -> None:
        assert key == KEY
        self.wakes_at = when

    async def look(self, at: str | None = None) -> float | None:
        """Reconcile, now or at an instant."""
        if at is not None:
            self.clock.instant = berlin(at)
        again = await self.reconciler.reconcile(KEY)
        await self.recorder.flush()
        return again

    def apply_plan(self, **changes: Any) -> None:
        """Apply the worked example with other fields, for a named Deployment unless they say otherwise."""
        self.server.put(document(**{**targeting(), **changes}))

    def run_target(self, replicas: int, ready: int | None = None, gpus: int = 1) -> None:
        """A Deployment of somebody's, with so many replicas, whose pods can leave their Service."""
        container = {"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
        self.server.put({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": TARGET.name, "namespace": TARGET.namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "vllm"}},
                "template": {"metadata": {"labels": {SERVING_LABEL: "true"}}, "spec": {"containers": [container]}},
            },
        })  # fmt: skip
        self.server.make_ready(TARGET, ready)

    @property
    def status(self) -> Mapping[str, Any]:
        """The plan's status in the cluster."""
        return self.server.objects[PLAN].get("status", {})

    def replicas(self, ref: ObjectRef = TARGET) -> int:
        """What a target is set to."""
        return int(self.server.objects[ref]["spec"]["replicas"])

    def said(self, type_: str) -> str:
        """``True AsPlanned``: status and reason of a condition."""
        found = next((c for c in self.status["conditions"] if c["type"] == type_), None)
        return f"{found['status']} {found['reason']}" if found else "absent"

    def message(self, type_: str) -> str:
        """What a condition tells."""
        return next(str(c["message"]) for c in self.status["conditions"] if c["type"] == type_)

    def wrote(self) -> list[str]:
        """The verbs of the writes since this was asked last."""
        writes, self.server.writes = [verb.removesuffix(FORCED) for verb, *_ in self.server.writes], []
        return writes
