"""A closed loop for tests: one simulated engine for each pod that there is, and a real Prometheus that scrapes them.

Without Prometheus the engines are at the addresses of their pods, which are played as addresses of the loopback: all
of 127.0.0.0/8 is this machine.

A test says how much demand a plan has; it is shared among the pods that the plan's Service selects, on the plans'
clock. What a single replica does can be set apart.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from aiohttp import web

from e2e.support.engines import EngineHost, SimulatedEngine
from e2e.support.prometheus import Prometheus, Target, pod
from e2e.support.workloads import is_ready
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.kubectl import Kubectl
from servingplan.localcluster.stages import QUICK, timetable
from servingplan.rendering.metadata import PLAN_LABEL, SERVING_LABEL

REQUEST_S = 4
"""How long a request takes: what an engine has in flight is its arrivals times this."""

IDLE: Mapping[str, Any] = {"arrivals_per_s": 0, "running": 0, "waiting": 0}


OWN_ADDRESS = re.compile(r"^podIP: .*$", re.MULTILINE)
LOOPBACK = 'podIP: {{ printf "127.%d.%d.%d" (randInt 64 128) (randInt 0 256) (randInt 1 255) | Quote }}'


def at_loopback(selector: Mapping[str, str]) -> dict[str, Any]:
    """A stage through which the pods of a selector start at once, each with an address of the loopback of its own."""
    stage = timetable(pull=QUICK, load=QUICK, selector=selector)
    (written,) = (patch for patch in stage["spec"]["next"]["patches"] if patch["root"] == "status")
    written["template"], count = OWN_ADDRESS.subn(LOOPBACK, written["template"])
    assert count == 1, "a pod gets its address somewhere else"
    return stage


async def _starting(_: web.Request) -> web.StreamResponse:
    return web.Response(status=503)


@dataclass(slots=True)
class _Pod:
    """A pod's engine. serves: ready, and behind the Service. own: what only this replica does."""

    plan: str
    engine: SimulatedEngine
    serves: bool = False
    own: Mapping[str, Any] | None = None


@dataclass(slots=True)
class _Demand:
    per_s: float = 0
    load: dict[str, Any] = field(default_factory=dict)
    leaving: dict[str, Any] = field(default_factory=dict)


class Loop:
    """Engines for the pods of plans in one namespace. A context manager; `prometheus` runs within it.

    at_pods: there is no Prometheus, and engines are where their pods are (`at_loopback`). past: what the Prometheus
    remembers from before.
    """

    def __init__(
        self,
        kubectl: Kubectl,
        namespace: str,
        folder: Path,
        clock: AcceleratedClock,
        *,
        at_pods: bool = False,
        past: Iterable[str] | None = None,
    ) -> None:
        self.prometheus = Prometheus(folder / "prometheus", past=past)
        self._kubectl, self._namespace, self._folder, self._clock = kubectl, namespace, folder, clock
        self._host, self._at_pods = EngineHost(), at_pods
        self._lock = threading.RLock()
        self._pods: dict[str, _Pod] = {}
        self._demands: dict[str, _Demand] = {}
        self._watch: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, name="pods", daemon=True)

    def sources_file(self) -> Path:
        """A sources file that names the Prometheus as ``default``."""
        file = self._folder / "sources.yaml"
        file.write_text(yaml.safe_dump({"sources": {"default": {"url": self.prometheus.url}}}))
        return file

    def demand(self, plan: str, per_s: float, **load: Any) -> None:
        """So many requests/s for a plan from now on, shared by the replicas that serve. load: the rest of a `Load`."""
        with self._lock:
            demand = self._demands.setdefault(plan, _Demand())
            demand.per_s = per_s
            demand.load |= load
            self._share(plan)

    def leaving(self, plan: str, **load: Any) -> None:
        """What a replica does from now on once it has left the Service; by itself it is idle then."""
        with self._lock:
            self._demands.setdefault(plan, _Demand()).leaving = load
            self._share(plan)

    def alone(self, pod_name: str, **load: Any) -> None:
        """What this replica does from now on, whatever the demand is, and until it is gone."""
        with self._lock:
            found = self._pods[pod_name]
            found.own = load
            self._share(found.plan)

    def alike(self, pod_name: str) -> None:
        """This replica has its share of the demand again."""
        with self._lock:
            found = self._pods[pod_name]
            found.own = None
            self._share(found.plan)

    def __enter__(self) -> Loop:
        self._host.__enter__()
        if not self._at_pods:
            self.prometheus.start()
        command = [str(self._kubectl.program), *self._kubectl.options, "get", "pods", f"--selector={PLAN_LABEL}"]
        self._watch = subprocess.Popen(
            [*command, "--watch", "--output-watch-events", "--output=json"], stdout=subprocess.PIPE, text=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._watch is not None
        self._watch.kill()
        self._watch.wait()
        self._thread.join(10)
        self.prometheus.stop()
        self._host.__exit__(kind, error, trace)

    # ---- pods ----

    def _follow(self) -> None:
        assert self._watch is not None
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            event = json.loads(line)
            with self._lock:
                self._see(event["object"], deleted=event["type"] == "DELETED")

    def _see(self, found: Mapping[str, Any], *, deleted: bool) -> None:
        metadata, ready = found["metadata"], is_ready(found)
        name, plan = metadata["name"], metadata["labels"][PLAN_LABEL]
        gone = deleted or "deletionTimestamp" in metadata
        known = self._pods.get(name)
        if gone:
            if known is not None:
                del self._pods[name]
                self._scrape()
                self._host.remove(known.engine)
                self._share(plan)
            return
        if known is None:
            address = self._address(found)
            if address is None:
                return
            engine = SimulatedEngine(clock=lambda: self._clock.now().timestamp())
            engine.fault = _starting
            known = self._pods[name] = _Pod(plan=plan, engine=self._host.add(engine, *address))
            self._scrape()
        if ready and known.engine.fault is not None:
            known.engine.restart()
        known.engine.fault = None if ready else _starting
        known.serves = ready and metadata["labels"].get(SERVING_LABEL) == "true"
        self._share(plan)

    def _address(self, found: Mapping[str, Any]) -> tuple[str, int] | None:
        """Where a pod's engine serves; None where the pod has no address of the loopback, or not yet."""
        if not self._at_pods:
            return "127.0.0.1", 0
        ip = found.get("status", {}).get("podIP", "")
        return (ip, found["spec"]["containers"][0]["ports"][0]["containerPort"]) if ip.startswith("127.") else None

    def _scrape(self) -> None:
        self.prometheus.scrape(*(self._target(name, known) for name, known in self._pods.items()))

    def _target(self, name: str, known: _Pod) -> Target:
        return pod(known.engine.port, name, namespace=self._namespace)

    def _share(self, plan: str) -> None:
        demand = self._demands.get(plan, _Demand())
        pods = [known for known in self._pods.values() if known.plan == plan]
        sharing = [known for known in pods if known.serves and known.own is None]
        for known in pods:
            load = {**IDLE, **demand.leaving}
            if known.own is not None:
                load = {**IDLE, **demand.load, **known.own}
            elif known.serves:
                rate = demand.per_s / len(sharing)
                load = {**IDLE, "arrivals_per_s": rate, "running": rate * REQUEST_S, **demand.load}
            known.engine.set(**load)
