"""Watches: what kopf sees becomes what the store knows, and which plans to look at.

In: events of the API server and full lists. Out: the store brought up to date and keys for the queue. It decides
nothing and writes nothing.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from servingplan.api.references import API_VERSIONS, Kind
from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.clients.answers import KindNotServed
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.lists import Lists
from servingplan.controller.store import Key, Store, key_of, target_of
from servingplan.rendering.metadata import CONFIG_LABEL

Object = Mapping[str, Any]

HPA = ("autoscaling/v2", "HorizontalPodAutoscaler")
SCALED_OBJECT = ("keda.sh/v1alpha1", "ScaledObject")
NODE = ("v1", "Node")
NODES, SCALED_OBJECTS = "nodes", "scaledobjects"
"""The plurals of what is watched only where the cluster serves it and lets us read it."""

PODS_SETTLE_S = 0.3
"""Pods change in bursts: their plan is looked at once when a burst is over."""

_log = logging.getLogger(__name__)


class Watches:
    """Keeps the store up to date. `look`: called with a key and the real seconds after which to look at it."""

    def __init__(self, *, client: KubernetesClient, store: Store, look: Callable[[Key, float], None]) -> None:
        self._client = client
        self._store = store
        self._look = look
        self._lists = Lists(client)
        self._relisting = False
        self._meanwhile: list[Callable[[], None]] = []

    # ---- events ----

    def plan(self, kind: str | None, plan: Object) -> None:
        """A ServingPlan came, changed or went."""
        self._keep(partial(self.plan, kind, plan))
        key = key_of(plan)
        if kind == "DELETED":
            # Whoever reconciled it last may have dropped it already: its last state tells who waits for its target.
            self._store.drop_plan(key)
            self._look_at(self._store.plans_targeting(target_of(plan)) | {key})
            return
        before = self._store.plans.get(key, {}).get("metadata", {}).get("generation")
        self._store.put_plan(plan)
        if before != plan["metadata"]["generation"]:
            self._look(key, 0.0)

    def referred(self, of: Kind, kind: str | None, live: Object) -> None:
        """What plans may refer to (a labelled ConfigMap, a benchmark, an evaluation) came, changed or went."""
        self._keep(partial(self.referred, of, kind, live))
        changed = self._store.drop_content if kind == "DELETED" else self._store.put_content
        self._look_at(changed(of, live))

    def workload(self, live: Object) -> None:
        """A Deployment, StatefulSet or owned pod came, changed or went."""
        self._look_at(self._store.concerned(live), PODS_SETTLE_S)

    def autoscaler(self, kind: str | None, autoscaler: Object) -> None:
        """An HPA or ScaledObject came, changed or went."""
        self._keep(partial(self.autoscaler, kind, autoscaler))
        if kind == "DELETED":
            self._look_at(self._store.drop_autoscaler(ObjectRef.of(autoscaler)))
        else:
            self._look_at(self._store.put_autoscaler(autoscaler))

    def node(self, kind: str | None, node: Object) -> None:
        """A node came, changed or went: every plan's accelerators may differ."""
        self._keep(partial(self.node, kind, node))
        if kind == "DELETED":
            changed = self._store.nodes.pop(node["metadata"]["name"], None) is not None
        else:
            changed = self._store.put_node(node)
        if changed:
            self._look_at(frozenset(self._store.plans), PODS_SETTLE_S)

    def _keep(self, event: Callable[[], None]) -> None:
        """Keep an event that comes during a relist: the lists may be older than it."""
        if self._relisting:
            self._meanwhile.append(event)

    def _look_at(self, keys: frozenset[Key], after_s: float = 0.0) -> None:
        for key in sorted(keys):
            self._look(key, after_s)

    # ---- kinds that a cluster may not have ----

    async def optional_kinds(self) -> frozenset[str]:
        """The plurals of the kinds that not every cluster serves or lets us read, as far as this one does.

        Who may look at the whole cluster sees its kinds come and go: kopf watches ScaledObjects from the moment that
        KEDA is installed. Others find them with the relist.
        """
        await self._lists.optional(*NODE, ("",))
        if NODE[1] not in self._lists.denied:
            return frozenset({NODES, SCALED_OBJECTS})
        with contextlib.suppress(KindNotServed):
            await self._client.resolve(*SCALED_OBJECT)
            return frozenset({SCALED_OBJECTS})
        return frozenset()

    # ---- relist ----

    async def relist(self, namespaces: Sequence[str]) -> None:
        """Read everything again and look at every plan: the safety net under the watches.

        After a restore of etcd a watch goes blind without an error. Raises ClusterError where plans cannot be read.
        """
        self._relisting = True
        try:
            await self._relist(namespaces)
        finally:
            self._relisting = False
            meanwhile, self._meanwhile = self._meanwhile, []
        for event in meanwhile:
            event()

    async def _relist(self, namespaces: Sequence[str]) -> None:
        plans = await self._lists.all(API_VERSION, KIND, namespaces)
        contents = {kind: await self._contents(kind, namespaces) for kind in Kind}
        autoscalers = [
            *await self._lists.optional(*HPA, namespaces),
            *await self._lists.optional(*SCALED_OBJECT, namespaces),
        ]
        nodes = await self._lists.optional(*NODE, ("",))
        gone = self._store.plans.keys() - {key_of(plan) for plan in plans}
        self._store.replace(plans, contents, autoscalers, nodes)
        self._look_at(frozenset(self._store.plans) | gone)

    async def _contents(self, kind: Kind, namespaces: Sequence[str]) -> list[Object]:
        if kind is Kind.CONFIG_MAP:
            return await self._lists.all(API_VERSIONS[kind], kind, namespaces, f"{CONFIG_LABEL}=true")
        return await self._lists.optional(API_VERSIONS[kind], kind, namespaces)
