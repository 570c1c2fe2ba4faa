"""Watches of evidence: which evidence objects an event concerns.

In: events of evidence objects, of plans that they name, of their Jobs and trial pools; and full lists. Out: keys for
the queue. It decides nothing and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servingplan.api.kinds import API_VERSION
from servingplan.api.referenced import referenced_plans
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.evidence_kinds import EVIDENCE_KINDS, EvidenceKey
from servingplan.controller.lists import Lists
from servingplan.rendering.metadata import EVIDENCE_KIND_LABEL, EVIDENCE_LABEL, TRIAL_LABEL

Object = Mapping[str, Any]

SETTLE_S = 0.3
"""Jobs and pools change in bursts: their evidence is looked at once when a burst is over."""

_log = logging.getLogger(__name__)


class EvidenceWatches:
    """Knows the evidence objects. `look`: called with a key and the real seconds after which to look at it."""

    def __init__(self, *, client: KubernetesClient, look: Callable[[EvidenceKey, float], None]) -> None:
        self._look = look
        self._known: dict[EvidenceKey, Object] = {}
        self._plans: dict[tuple[str, str], object] = {}
        self._lists = Lists(client)

    @property
    def keys(self) -> tuple[EvidenceKey, ...]:
        """All evidence objects that are known."""
        return tuple(sorted(self._known))

    def evidence(self, kind: str | None, evidence: Object) -> None:
        """An evidence object came, changed or went."""
        key = evidence_key(evidence)
        if kind == "DELETED":
            self._known.pop(key, None)
            return
        before = self._known.get(key)
        self._known[key] = _trimmed(evidence)
        if before is None or _version(before) != _version(evidence):
            self._look(key, 0.0)

    def plan(self, kind: str | None, plan: Object) -> None:
        """A ServingPlan came, changed or went: who names it looks again where its spec is another one."""
        metadata = plan["metadata"]
        where = (metadata["namespace"], metadata["name"])
        new = None if kind == "DELETED" else _version(plan)
        if self._plans.get(where) == new:
            return
        if new is None:
            self._plans.pop(where, None)
        else:
            self._plans[where] = new
        for key, known in sorted(self._known.items(), key=lambda entry: entry[0]):
            if key.namespace == where[0] and where[1] in referenced_plans(known):
                self._look(key, 0.0)

    def work(self, live: Object) -> None:
        """A Job or a trial pool came, changed or went."""
        metadata = live["metadata"]
        labels = metadata.get("labels", {})
        name = labels.get(EVIDENCE_LABEL) or labels.get(TRIAL_LABEL)
        if name and labels.get(EVIDENCE_KIND_LABEL) in EVIDENCE_KINDS:
            key = EvidenceKey(labels[EVIDENCE_KIND_LABEL], metadata["namespace"], name)
            if key in self._known:
                self._look(key, SETTLE_S)

    async def relist(self, namespaces: Sequence[str]) -> None:
        """Read all evidence objects again and look at each: the safety net under the watches. Raises ClusterError."""
        found: dict[EvidenceKey, Object] = {}
        for kind in EVIDENCE_KINDS:
            for evidence in await self._lists.optional(API_VERSION, kind, namespaces):
                found[evidence_key(evidence)] = _trimmed(evidence)
        self._known = found
        for key in self.keys:
            self._look(key, 0.0)


def evidence_key(evidence: Object) -> EvidenceKey:
    """The key of an evidence object."""
    metadata = evidence["metadata"]
    return EvidenceKey(evidence["kind"], metadata["namespace"], metadata["name"])


def _version(live: Object) -> tuple[object, object]:
    return live["metadata"].get("uid"), live["metadata"].get("generation")


def _trimmed(evidence: Object) -> Object:
    """What decides whom it concerns."""
    kept = {name: evidence["metadata"].get(name) for name in ("namespace", "name", "uid", "generation")}
    spec = evidence.get("spec") or {}
    return {
        "metadata": kept,
        "spec": {name: spec[name] for name in ("planRef", "quietHoursOf") if name in spec},
    }
