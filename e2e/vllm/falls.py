"""What a fall looks like from outside: one replica's way out, by the instants at which others could see it.

In: watches on pods and EndpointSlices, the engines' own metrics several times a second, the API server's audit log.
Out: a `Fall` for each replica that left. Instants are seconds since 1970.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from e2e.support.eventually import eventually
from e2e.support.workloads import is_ready
from e2e.vllm.watches import Watch
from servingplan.localcluster.audit import AuditLog
from servingplan.localcluster.kubectl import Kubectl

LOOK_EVERY_S = 0.25

IN_FLIGHT = ("vllm:num_requests_running{", "vllm:num_requests_waiting{")
"""How the lines begin; a whole parser would be too slow to look often."""

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """One replica that left. streams: what it had in flight when its drain began.

    decided: its pod was marked, or, without a drain, /scale was written. out: it was no ready endpoint any more. idle:
    its engine had nothing in flight, and nothing came any more; None: its end was sooner. scaled: /scale was written.
    gone: there was no pod any more.
    """

    pod: str
    streams: int
    decided: float
    out: float
    idle: float | None
    scaled: float
    gone: float

    def __str__(self) -> str:
        """In one line, in seconds from the decision on."""
        idle = "never" if self.idle is None else f"{self.idle - self.decided:.1f}"
        return (
            f"{self.streams} streams; out of the EndpointSlice {self.out - self.decided:.1f}, idle {idle}, "
            f"/scale {self.scaled - self.decided:.1f}, gone {self.gone - self.decided:.1f} s"
        )


@dataclass(slots=True)
class _Seen:
    """What was seen of one pod. in_flight: by the instant of the look."""

    address: str = ""
    out: float | None = None
    gone: float | None = None
    in_flight: dict[float, int] = field(default_factory=dict)


class Watcher:
    """Watches the pods of one workload. A context manager. selector: of its pods; service: in front of them."""

    def __init__(self, kubectl: Kubectl, namespace: str, audit: AuditLog, *, selector: str, service: str) -> None:
        self._kubectl, self._namespace, self._audit = kubectl, namespace, audit
        self._lock = threading.RLock()
        self._pods: dict[str, _Seen] = {}
        self._endpoints: frozenset[str] = frozenset()
        self._ended = threading.Event()
        slices = f"kubernetes.io/service-name={service}"
        self._watches = (
            Watch(kubectl, "pods", selector, self._see_pod),
            Watch(kubectl, "endpointslices", slices, self._see_slice),
        )
        self._looker = threading.Thread(target=self._look, name="falls", daemon=True)

    def __enter__(self) -> Self:
        for watch in self._watches:
            watch.start()
        self._looker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for watch in self._watches:
            watch.stop()
        self._looker.join(10)

    def in_flight(self) -> dict[str, int]:
        """What each ready endpoint had in flight at the last look."""
        with self._lock:
            known = {name: self._pods[name].in_flight for name in self._endpoints if name in self._pods}
            return {name: looks[max(looks)] for name, looks in known.items() if looks}

    def until_each_has(self, streams: int, pods: int, timeout_s: float = 120.0) -> None:
        """Wait until so many endpoints have at least so many streams each."""
        eventually(
            self.in_flight,
            lambda found: len(found) == pods and all(count >= streams for count in found.values()),
            what=f"{streams} streams on each of {pods} replicas",
            timeout_s=timeout_s,
        )

    def until_gone(self, workload: str, since: float, timeout_s: float = 300.0) -> Fall:
        """Wait for the end of a fall of one replica that was asked for at `since`; what it looked like."""
        name, seen = eventually(
            lambda: self._gone(since), lambda found: found[1].gone is not None, what="a pod gone", timeout_s=timeout_s
        )
        assert seen.out is not None
        assert seen.gone is not None
        writes = [write for write in self._audit.entries() if write.namespace == self._namespace and write.code < 300]
        mine = [write for write in writes if write.user_agent.startswith("servingplan")]
        (scaled,) = (
            write.time.timestamp()
            for write in mine
            if (write.resource, write.subresource, write.name) == ("deployments", "scale", workload)
            and write.time.timestamp() >= since
        )
        marked = [write.time.timestamp() for write in mine if (write.resource, write.name) == ("pods", name)]
        decided = min((at for at in marked if at >= since), default=scaled)
        before = [at for at in seen.in_flight if at <= decided]
        busy = [at for at, count in seen.in_flight.items() if count]
        idle = min((at for at in seen.in_flight if at > max(busy, default=0.0)), default=None)
        return Fall(
            pod=name,
            streams=seen.in_flight[max(before)] if before else 0,
            decided=decided,
            out=seen.out,
            idle=idle,
            scaled=scaled,
            gone=seen.gone,
        )

    def _gone(self, since: float) -> tuple[str, _Seen]:
        with self._lock:
            found = {name: seen for name, seen in self._pods.items() if seen.gone is not None and seen.gone >= since}
            return next(iter(found.items()), ("", _Seen()))

    # ---- what is seen ----

    def _see_pod(self, pod: Object, deleted: bool) -> None:
        with self._lock:
            seen = self._pods.setdefault(pod["metadata"]["name"], _Seen())
            seen.address = pod.get("status", {}).get("podIP", "") if is_ready(pod) else seen.address
            seen.gone = time.time() if deleted else None

    def _see_slice(self, found: Object, deleted: bool) -> None:
        endpoints = () if deleted else found.get("endpoints") or ()
        ready = frozenset(each["targetRef"]["name"] for each in endpoints if each["conditions"]["ready"])
        with self._lock:
            for name in ready:  # one that is back was only late with an answer
                self._pods.setdefault(name, _Seen()).out = None
            for name in self._endpoints - ready:
                self._pods.setdefault(name, _Seen()).out = time.time()
            self._endpoints = ready

    # ---- looks ----

    def _look(self) -> None:
        with ThreadPoolExecutor() as pool:
            while not self._ended.wait(LOOK_EVERY_S):
                with self._lock:
                    asked = {name: seen.address for name, seen in self._pods.items() if seen.address and not seen.gone}
                list(pool.map(self._look_at, asked, asked.values()))

    def _look_at(self, name: str, address: str) -> None:
        # A busy engine answers late, with what was true when it was asked or later.
        asked_at = time.time()
        count = in_flight(address)
        if count is not None:
            with self._lock:
                self._pods[name].in_flight[asked_at] = count


def in_flight(address: str) -> int | None:
    """What the engine at an address has running and waiting now; None where it does not say."""
    try:
        with urllib.request.urlopen(f"http://{address}:8000/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(IN_FLIGHT)]
    return int(sum(values)) if values else None
