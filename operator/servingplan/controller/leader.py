"""Leader election by a Lease.

In: answers of the API server about one Lease, and a monotonic clock. Out: calls when leadership begins and ends,
and a gate (controller/leader_gate.py) that is open meanwhile. Wall clocks of other machines are never compared: a
holder counts as gone when its Lease has not changed for as long as it asked, measured here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from servingplan.clients.gate import MutationGate, OpenGate
from servingplan.clients.references import ObjectRef
from servingplan.controller.leader_gate import LeaderGate, since_boot_s
from servingplan.errors import ClusterError, Conflict, NotFound

LEASE_API = "coordination.k8s.io/v1"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """When a Lease is renewed and given up, in seconds; the same as Kubernetes' own components.

    lease_s: others wait this long after the last renewal they saw. renew_within_s: the leader stops by itself
    when it could not renew for this long. retry_s: between attempts.
    """

    lease_s: float = 15.0
    renew_within_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_within_s > self.retry_s > 0:
            raise ValueError(f"a Lease needs lease > renewal > retry > 0 seconds, not {self}")


class LeaseClient(Protocol):
    """What the election needs of a Kubernetes client. It must not pass the gate."""

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        """Read the Lease. Raises NotFound."""

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create the Lease. Raises Conflict."""

    async def replace(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the Lease of that resourceVersion. Raises Conflict."""


class Leadership(Protocol):
    """Tells who may write, whether it is elected or alone."""

    @property
    def gate(self) -> MutationGate:
        """The gate for the operator's writes."""

    @property
    def is_leader(self) -> bool:
        """True while this process leads."""

    @property
    def known(self) -> bool:
        """True as soon as it is known who leads."""

    async def run(self, *, on_started: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Lead, or wait to lead, until cancelled; then give leadership back."""


def own_identity() -> str:
    """Make a name that no other process has, nor this one after a restart."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class AlwaysLeader:
    """Leadership of the only process there is, for local runs: no Lease, and an open gate."""

    def __init__(self) -> None:
        self._leading = False
        self._gate = OpenGate()

    @property
    def gate(self) -> MutationGate:
        """The gate: always open."""
        return self._gate

    @property
    def is_leader(self) -> bool:
        """True while `run` runs."""
        return self._leading

    @property
    def known(self) -> bool:
        """True from the start of `run`."""
        return self._leading

    async def run(self, *, on_started: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Lead until cancelled."""
        self._leading = True
        on_started()
        try:
            await asyncio.Event().wait()
        finally:
            self._leading = False
            on_lost()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The Lease as it was last seen to change, and when that was, on the monotonic clock."""

    lease: Mapping[str, Any]
    at_s: float

    @property
    def spec(self) -> Mapping[str, Any]:
        """The Lease's spec."""
        spec: Mapping[str, Any] = self.lease.get("spec") or {}
        return spec

    @property
    def holder(self) -> str:
        """Who holds the Lease; empty for nobody."""
        return str(self.spec.get("holderIdentity") or "")


class LeaseElection:
    """Leads while it holds the Lease ``namespace/name`` under ``identity``."""

    def __init__(
        self,
        *,
        client: LeaseClient,
        namespace: str,
        name: str,
        identity: str | None = None,
        times: LeaseTimes | None = None,
        monotonic: Callable[[], float] = since_boot_s,
    ) -> None:
        self._client = client
        self._ref = ObjectRef(api_version=LEASE_API, kind="Lease", name=name, namespace=namespace)
        self.identity = identity or own_identity()
        self._times = times or LeaseTimes()
        self._monotonic = monotonic
        self._gate = LeaderGate(renew_within_s=self._times.renew_within_s, monotonic=monotonic)
        self._seen: _Seen | None = None
        self._leading = False

    @property
    def gate(self) -> MutationGate:
        """The gate for the operator's writes."""
        return self._gate

    @property
    def is_leader(self) -> bool:
        """True while this process leads, as far as it knows."""
        return self._leading and self._gate.remaining_s() > 0

    @property
    def known(self) -> bool:
        """True as soon as the Lease was read or written once."""
        return self._seen is not None

    @property
    def holder(self) -> str:
        """Who holds the Lease, as last seen; empty for nobody."""
        return self._seen.holder if self._seen else ""

    async def run(self, *, on_started: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Lead, or wait to lead, again and again, until cancelled; then give the Lease back."""
        try:
            while True:
                await self._acquire()
                self._leading = True
                _log.info("leading: %s holds Lease %s/%s", self.identity, self._ref.namespace, self._ref.name)
                on_started()
                try:
                    await self._keep()
                finally:
                    self._leading = False
                    self._gate.shut()
                    on_lost()
        finally:
            await self._release()

    # ---- inside ----

    async def _acquire(self) -> None:
        while not await self._try():
            await asyncio.sleep(self._times.retry_s * (1 + 0.2 * random.random()))  # noqa: S311  no secret

    async def _keep(self) -> None:
        """Renew until that failed for too long or another process holds the Lease."""
        while True:
            await asyncio.sleep(min(self._times.retry_s, max(0.0, self._gate.remaining_s())))
            if self._gate.remaining_s() <= 0:
                _log.warning("leadership lost: no renewal for %g s", self._times.renew_within_s)
                return
            await self._try()
            if self._seen is not None and self._seen.holder != self.identity:
                _log.warning("leadership lost: %s holds the Lease", self._seen.holder or "nobody")
                return

    async def _try(self) -> bool:
        """Take or renew the Lease if nobody else holds it; True where this process holds it now."""
        began_s = self._monotonic()
        limit_s = max(0.0, self._gate.remaining_s()) if self._leading else self._times.renew_within_s
        try:
            async with asyncio.timeout(limit_s):
                held = await self._take()
        except (ClusterError, TimeoutError) as error:
            _log.warning("the Lease could not be read or written: %s", error or "no answer in time")
            return False
        if held:
            self._gate.renew(began_s)
        return held

    async def _take(self) -> bool:
        # The leader knows the Lease: it renews without reading, and reads only when somebody else wrote.
        if self._leading and self._seen is not None:
            with contextlib.suppress(Conflict, NotFound):
                return await self._write(self._seen.lease)
        try:
            self._observe(await self._client.get(self._ref))
        except NotFound:
            return await self._write(None)
        if self._held_by_another():
            return False
        try:
            return await self._write(self._seen.lease if self._seen else None)
        except Conflict:
            return False

    async def _write(self, lease: Mapping[str, Any] | None) -> bool:
        if lease is None:
            manifest = self._manifest({}, {})
            try:
                self._observe(await self._client.create(manifest))
            except Conflict:
                return False
        else:
            manifest = self._manifest(lease["metadata"], lease.get("spec") or {})
            self._observe(await self._client.replace(manifest))
        return True

    def _manifest(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        mine = spec.get("holderIdentity") == self.identity
        now = _micro_time()
        transitions = int(spec.get("leaseTransitions") or 0)
        return {
            "apiVersion": LEASE_API,
            "kind": "Lease",
            "metadata": {**metadata, "name": self._ref.name, "namespace": self._ref.namespace},
            "spec": {
                **spec,
                "holderIdentity": self.identity,
                "leaseDurationSeconds": math.ceil(self._times.lease_s),
                "acquireTime": spec.get("acquireTime", now) if mine else now,
                "renewTime": now,
                "leaseTransitions": transitions if mine or not spec else transitions + 1,
            },
        }

    def _observe(self, lease: Mapping[str, Any]) -> None:
        unchanged = self._seen is not None and self._seen.spec == (lease.get("spec") or {})
        at_s = self._seen.at_s if unchanged and self._seen is not None else self._monotonic()
        self._seen = _Seen(lease=lease, at_s=at_s)

    def _held_by_another(self) -> bool:
        seen = self._seen
        if seen is None or seen.holder in {"", self.identity}:
            return False
        asked_s = float(seen.spec.get("leaseDurationSeconds") or self._times.lease_s)
        return self._monotonic() < seen.at_s + asked_s

    async def _release(self) -> None:
        """Give the Lease back, so that the next process need not wait; best effort."""
        if self._seen is None or self._seen.holder != self.identity:
            return
        manifest = self._manifest(self._seen.lease["metadata"], self._seen.spec)
        manifest["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(self._times.retry_s):
                self._observe(await self._client.replace(manifest))
        except (ClusterError, TimeoutError) as error:
            _log.info("the Lease could not be given back: %s", error or "no answer in time")


def _micro_time() -> str:
    """Give the system's time as the API server reads a MicroTime; for people, never compared."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
