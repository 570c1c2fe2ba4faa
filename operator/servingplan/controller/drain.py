"""Drain: a fall, in the order that cuts no request: out of the Service, idle, first to go, then fewer replicas.

In: the replicas as they are, how many are wanted, what the engines say. Out: pods without the label that the Service
selects, pods marked as first to go, and how far replicas may be lowered now. Where a fall stands is written on the pods
alone, so that a stop after any of the writes goes on where it was; only the first of two idle readings is kept in
memory, and one that is lost is read again. Which replicas leave is ``planning.victims``; /scale is written elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from servingplan.clients.references import ObjectRef
from servingplan.controller.targets import TargetView
from servingplan.errors import NotFound
from servingplan.planning.observation import Observation, Replica, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.signals import Heard, Signals
from servingplan.planning.victims import leaving, returning
from servingplan.rendering.metadata import (
    DELETION_COST_ANNOTATION,
    DRAINING_ANNOTATION,
    FIRST_TO_GO,
    SERVING_LABEL,
)
from servingplan.rendering.times import wire_time

SCRAPE = timedelta(seconds=15)
"""Two idle readings must lie this far apart, on the plan's clock: the interval at which engines are read. A single one
may fall between two requests of a client that still has the pod's address."""

KUBERNETES_GRACE = timedelta(seconds=30)
"""The grace period of a pod that states none."""


class PodPatcher(Protocol):
    """The one write that a drain needs."""

    async def merge_patch(self, ref: ObjectRef, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merge-patch and return the live object. Raises NotFound where it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainingReplica:
    """A replica that drains. until: when it may leave at the latest. in_flight: None where nobody knows."""

    name: str
    since: datetime
    until: datetime
    in_flight: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainState:
    """Where a fall stands.

    may_lower_to: replicas that may be written now: what is desired once all that leave are idle, else what runs now.
    draining: those that are waited for, by name. wait_until: when waiting ends by the clock alone; None where nothing
    is waited for. writes: how many pods were patched.
    """

    may_lower_to: int
    draining: tuple[DrainingReplica, ...] = ()
    wait_until: datetime | None = None
    writes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """The first and the last of readings in a row at which a replica had nothing in flight."""

    first: datetime
    last: datetime


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


async def serve_again(client: PodPatcher, observation: Observation, namespace: str) -> int:
    """Bring back all that drain, for a plan that may lower nothing any more; how many pods were patched.

    Replicas then stay as many as they are, for nobody knows how long: one of them outside of its Service would be
    paid for and serve nobody. Raises Refused where pods may not be patched, and Unreachable.
    """
    return sum([await _mark(client, namespace, each, since=None, leaves=False) for each in returning(observation)])


async def _mark(client: PodPatcher, namespace: str, replica: Replica, *, since: datetime | None, leaves: bool) -> int:
    """The one write on a pod: it serves (since None), drains, or is the first to go. 0 where it went meanwhile."""
    annotations = {DRAINING_ANNOTATION: None if since is None else wire_time(since)}
    if leaves or (replica.draining is not None and replica.draining.released):
        annotations[DELETION_COST_ANNOTATION] = FIRST_TO_GO if leaves else None
    metadata = {"labels": {SERVING_LABEL: "true" if since is None else None}, "annotations": annotations}
    ref = ObjectRef(api_version="v1", kind="Pod", name=replica.name, namespace=namespace)
    try:
        await client.merge_patch(ref, {"metadata": metadata})
    except NotFound:
        return 0
    return 1


class Drainer:
    """Drains replicas before they are removed, one plan at a time."""

    def __init__(self, *, client: PodPatcher) -> None:
        self._client = client
        self._idle: dict[str, dict[str, _Idle]] = {}

    def forget(self, plan_key: str) -> None:
        """Drop what is remembered of a plan that is gone."""
        self._idle.pop(plan_key, None)

    async def step(
        self,
        plan: Plan,
        view: TargetView,
        observation: Observation,
        *,
        desired: int,
        heard: Heard | None,
        now: datetime,
    ) -> DrainState:
        """Bring the pods one step further towards `desired`; everything serves again where that is no fall.

        desired: what would be written to /scale now; the replicas that run where nothing may be lowered (a second
        writer). Raises Refused where pods may not be patched, Conflict and Unreachable: observe and decide again.
        """
        current = observation.current or 0
        if undrained(plan, view) is not None:
            self.forget(plan.key)
            return DrainState(may_lower_to=desired)
        heard_in_flight = heard.in_flight if isinstance(heard, Signals) else {}
        victims = leaving(observation, desired, heard_in_flight) if desired < current else ()
        self._remember_idle(plan.key, victims, heard)
        writes = 0
        for replica in returning(observation, victims):
            writes += await _mark(self._client, view.ref.namespace, replica, since=None, leaves=False)
        waiting: list[DrainingReplica] = []
        for victim in victims:
            wait = self._wait(plan, view, victim, heard_in_flight, now)
            if wait is not None:
                waiting.append(wait)
            writes += await self._advance(view, victim, now, leaves=wait is None)
        return DrainState(
            may_lower_to=current if waiting else desired,
            draining=tuple(sorted(waiting, key=lambda each: each.name)),
            wait_until=min((each.until for each in waiting), default=None),
            writes=writes,
        )

    async def _advance(self, view: TargetView, victim: Replica, now: datetime, *, leaves: bool) -> int:
        """One write where the pod's marks are not what they should be: drains, or is the first to go."""
        draining = victim.draining
        if draining is not None and (draining.released or not leaves):
            return 0
        since = now if draining is None else draining.since
        return await _mark(self._client, view.ref.namespace, victim, since=since, leaves=leaves)

    def _wait(
        self, plan: Plan, view: TargetView, victim: Replica, in_flight: Mapping[str, float], now: datetime
    ) -> DrainingReplica | None:
        """What a victim is still waited for; None where it may leave.

        A replica that is not ready takes no requests, and Kubernetes would remove it first in any case.
        """
        if victim.stage is not Stage.READY:
            return None
        since = now if victim.draining is None else victim.draining.since
        until = since + drain_timeout(plan, view)
        if victim.draining is not None and (
            victim.draining.released or until <= now or self._idle_twice(plan.key, victim)
        ):
            return None
        return DrainingReplica(name=victim.name, since=since, until=until, in_flight=in_flight.get(victim.name))

    # ---- idle readings ----

    def _remember_idle(self, plan_key: str, victims: Iterable[Replica], heard: Heard | None) -> None:
        """From which to which reading each draining replica is idle; one that is busy, or silent, starts again."""
        known, idle = self._idle.pop(plan_key, {}), dict[str, _Idle]()
        if not isinstance(heard, Signals):
            return
        for victim in victims:
            # A reading from before the drain began says nothing about what came in until then.
            began = victim.draining is not None and victim.draining.since <= heard.at
            if began and heard.in_flight.get(victim.name) == 0:
                first = known[victim.name].first if victim.name in known else heard.at
                idle[victim.name] = _Idle(first=first, last=heard.at)
        if idle:
            self._idle[plan_key] = idle

    def _idle_twice(self, plan_key: str, victim: Replica) -> bool:
        idle = self._idle.get(plan_key, {}).get(victim.name)
        return idle is not None and idle.last - idle.first >= SCRAPE
