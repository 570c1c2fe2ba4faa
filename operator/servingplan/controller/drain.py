"""Drain on pods: out of the Service by a label, first to go by an annotation, before replicas are lowered.

In: the replicas as they are, how many are wanted, what the engines say. Out: the marks that `planning.drain` wants, on
the pods. Where a fall stands is written there alone, so that a stop after any of the writes goes on where it was; only
the first of two idle readings is kept in memory, and one that is lost is read again. /scale is written elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Protocol

from servingplan.clients.references import ObjectRef
from servingplan.controller.targets import TargetView
from servingplan.errors import NotFound
from servingplan.planning.drain import Drain, Idle, Mark, drain
from servingplan.planning.observation import Observation
from servingplan.planning.plan import Plan
from servingplan.planning.victims import returning
from servingplan.rendering.metadata import (
    DELETION_COST_ANNOTATION,
    DRAINING_ANNOTATION,
    FIRST_TO_GO,
    SERVING_LABEL,
)
from servingplan.rendering.times import wire_time

KUBERNETES_GRACE = timedelta(seconds=30)
"""The grace period of a pod that states none."""


class PodPatcher(Protocol):
    """The one write that a drain needs."""

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merge-patch and return the live object. Raises NotFound where it is gone."""


def undrained(plan: Plan, view: TargetView) -> str | None:
    """Why replicas of this target are removed without a drain, in one sentence; None where they drain first."""
    if plan.engine is not None or view.live is None:
        return None
    group, kind = view.ref.api_version.rpartition("/")[0], view.ref.kind
    if (group, kind) != ("apps", "Deployment"):
        return (
            f"which replica of a {kind} goes first cannot be chosen, so its preStop hook and grace period are its drain"
        )
    spec = view.live["spec"]
    labelled = spec["template"].get("metadata", {}).get("labels", {}).get(SERVING_LABEL) == "true"
    selector = spec.get("selector", {})
    expressions = {expression["key"] for expression in selector.get("matchExpressions", ())}
    if SERVING_LABEL in selector.get("matchLabels", {}) or SERVING_LABEL in expressions:
        return f"{view.ref} selects its pods by {SERVING_LABEL}, so a pod that lost it would be replaced at once"
    if not labelled:
        return (
            f"the pods of {view.ref} have no label {SERVING_LABEL}=true; add it to its template and to the selector of "
            "its Service, so that a replica can leave the Service before it ends"
        )
    return None


def drain_timeout(plan: Plan, view: TargetView) -> timedelta:
    """How long a replica may drain: the engine's own, or a named Deployment's grace period."""
    if plan.engine is not None:
        return plan.engine.drain_timeout
    spec = view.live["spec"]["template"].get("spec", {}) if view.live is not None else {}
    seconds = spec.get("terminationGracePeriodSeconds")
    return KUBERNETES_GRACE if seconds is None else timedelta(seconds=seconds)


async def serve_again(client: PodPatcher, observation: Observation, namespace: str) -> None:
    """Bring back all that drain, for a plan that may lower nothing any more.

    Replicas then stay as many as they are, for nobody knows how long: one of them outside of its Service would be
    paid for and serve nobody. Raises Refused where pods may not be patched, and Unreachable.
    """
    for each in returning(observation):
        await _set(client, namespace, Mark(replica=each, draining=None))


async def _set(client: PodPatcher, namespace: str, mark: Mark) -> None:
    """The one write on a pod: it serves, drains, or is the first to go. Nothing where it went meanwhile."""
    draining, before = mark.draining, mark.replica.draining
    annotations = {DRAINING_ANNOTATION: None if draining is None else wire_time(draining.since)}
    leaves = draining is not None and draining.released
    if leaves or (before is not None and before.released):
        annotations[DELETION_COST_ANNOTATION] = FIRST_TO_GO if leaves else None
    metadata = {"labels": {SERVING_LABEL: "true" if draining is None else None}, "annotations": annotations}
    ref = ObjectRef(api_version="v1", kind="Pod", name=mark.replica.name, namespace=namespace)
    with suppress(NotFound):
        await client.merge_patch(ref, {"metadata": metadata})


class Drainer:
    """Drains replicas before they are removed, one plan at a time."""

    def __init__(self, *, client: PodPatcher) -> None:
        self._client = client
        self._idle: dict[str, Mapping[str, Idle]] = {}

    def forget(self, plan_key: str) -> None:
        """Drop what is remembered of a plan that is gone."""
        self._idle.pop(plan_key, None)

    async def step(
        self, plan: Plan, view: TargetView, observation: Observation, *, desired: int, now: datetime
    ) -> Drain:
        """Bring the pods one step further towards `desired`; everything serves again where that is no fall.

        desired: what would be written to /scale now; the replicas that run where nothing may be lowered (a second
        writer). Raises Refused where pods may not be patched, Conflict and Unreachable: observe and decide again.
        """
        timeout = None if undrained(plan, view) is not None else drain_timeout(plan, view)
        idle = self._idle.pop(plan.key, {})
        state = drain(plan, observation, desired=desired, timeout=timeout, idle=idle, now=now)
        if state.idle:
            self._idle[plan.key] = state.idle
        for mark in state.marks:
            await _set(self._client, view.ref.namespace, mark)
        return state
