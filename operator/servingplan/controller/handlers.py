"""kopf at the edge: which kinds are watched, and nothing else.

In: a registry, the login and the watches. Out: the registry with ``on.event`` handlers alone: no finalizers, no
annotations, no timers, so that nothing of the operator's own bookkeeping is ever written to an object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

import kopf

from servingplan.api.references import Kind
from servingplan.controller.evidence_kinds import EVIDENCE_KINDS
from servingplan.controller.evidence_watches import EvidenceWatches
from servingplan.controller.login import Login
from servingplan.controller.watches import NODES, SCALED_OBJECTS, Watches
from servingplan.rendering.metadata import CONFIG_LABEL, EVIDENCE_LABEL, PLAN_LABEL

Event = Any


_KEDA = f"'{SCALED_OBJECTS}'"


class _WithoutKeda(logging.Filter):
    """kopf warns of a kind that is not served, and begins to watch it when it is: without KEDA that is no news."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let through what names anything else."""
        message = record.getMessage()
        return not (message.startswith("Unresolved resources") and message.count("Selector(") == 1 and _KEDA in message)


_WITHOUT_KEDA = _WithoutKeda()
_OF_KINDS = logging.getLogger("kopf._core.reactor.observation")


def register(
    registry: kopf.OperatorRegistry,
    login: Login,
    watches: Watches,
    evidence: EvidenceWatches,
    optional: Collection[str],
) -> None:
    """Watch every kind that decides. optional: the plurals of those that not every cluster offers us."""
    kopf.on.login(registry=registry)(login)
    _OF_KINDS.addFilter(_WITHOUT_KEDA)

    @kopf.on.event("servingplan.dev", "v1alpha1", "servingplans", registry=registry)
    async def plan(event: Event, **_: Any) -> None:
        watches.plan(event["type"], event["object"])

    @kopf.on.event("", "v1", "configmaps", registry=registry)
    async def config_map(event: Event, **_: Any) -> None:
        watches.referred(Kind.CONFIG_MAP, event["type"], event["object"])

    @kopf.on.event("servingplan.dev", "v1alpha1", "modelevaluations", registry=registry)
    async def evaluation(event: Event, **_: Any) -> None:
        watches.referred(Kind.MODEL_EVALUATION, event["type"], event["object"])

    @kopf.on.event("servingplan.dev", "v1alpha1", "capacitybenchmarks", registry=registry, id="results")
    async def benchmark(event: Event, **_: Any) -> None:
        watches.referred(Kind.BENCHMARK, event["type"], event["object"])

    for group, version, plural in (("apps", "v1", "deployments"), ("apps", "v1", "statefulsets")):
        kopf.on.event(group, version, plural, registry=registry, id=plural)(_workload(watches))
    kopf.on.event("", "v1", "pods", registry=registry, id="pods")(_workload(watches))
    kopf.on.event("autoscaling", "v2", "horizontalpodautoscalers", registry=registry)(_autoscaler(watches))
    if NODES in optional:
        kopf.on.event("", "v1", NODES, registry=registry)(_node(watches))
    if SCALED_OBJECTS in optional:
        kopf.on.event("keda.sh", "v1alpha1", SCALED_OBJECTS, registry=registry)(_autoscaler(watches))
    _register_evidence(registry, evidence)


def _register_evidence(registry: kopf.OperatorRegistry, evidence: EvidenceWatches) -> None:
    """Watch evidence, the plans that it names, and what runs for it. Each has its own handler beside that of plans."""

    @kopf.on.event("servingplan.dev", "v1alpha1", "servingplans", registry=registry)
    async def named_plan(event: Event, **_: Any) -> None:
        evidence.plan(event["type"], event["object"])

    async def found(event: Event, **_: Any) -> None:
        evidence.evidence(event["type"], event["object"])

    async def work(event: Event, **_: Any) -> None:
        evidence.work(event["object"])

    for kind in EVIDENCE_KINDS.values():
        plural = kind.kind.plural
        kopf.on.event("servingplan.dev", "v1alpha1", plural, registry=registry, id=f"work-of-{plural}")(found)
    kopf.on.event("batch", "v1", "jobs", registry=registry, id="runners")(work)
    kopf.on.event("apps", "v1", "deployments", registry=registry, id="trials")(work)


def _node(watches: Watches) -> Callable[..., Any]:
    async def node(event: Event, **_: Any) -> None:
        watches.node(event["type"], event["object"])

    return node


def _workload(watches: Watches) -> Callable[..., Any]:
    async def workload(event: Event, **_: Any) -> None:
        watches.workload(event["object"])

    return workload


def _autoscaler(watches: Watches) -> Callable[..., Any]:
    async def autoscaler(event: Event, **_: Any) -> None:
        watches.autoscaler(event["type"], event["object"])

    return autoscaler


def kopf_settings(optional: Collection[str]) -> kopf.OperatorSettings:
    """Settings that make kopf a watch engine alone: it posts nothing, and the server sends only what decides.

    optional: as for `register`; who may not read nodes may not read what else belongs to the whole cluster.
    """
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = NODES not in optional
    # It would kill the process ten minutes after its watch has ended, although the watch is started again.
    settings.process.ultimate_exiting_timeout = None
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.server_timeout = 270
    settings.watching.client_timeout = 300
    settings.watching.label_selectors["configmaps"] = f"{CONFIG_LABEL}=true"
    settings.watching.label_selectors["pods"] = PLAN_LABEL
    settings.watching.label_selectors["jobs"] = EVIDENCE_LABEL
    return settings
