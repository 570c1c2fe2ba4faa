"""Watches: whoever asks is told of each change of objects, by ``kubectl get --watch``.

`Discovery` tells Prometheus of the pods of plans with one, as a PodMonitor would: Debian's is built without Kubernetes.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from e2e.support.prometheus import Prometheus, Target, pod
from servingplan.localcluster.kubectl import Kubectl
from servingplan.rendering.metadata import PLAN_LABEL
from servingplan.rendering.probes import PORT_NAME

Object = Mapping[str, Any]
See = Callable[[Object, bool], None]
"""Is told of an object as it is now, and whether it is deleted; from a thread of the watch."""


class Watch:
    """Tells of objects of one kind with a label, from those that there are on. It ends with `stop`."""

    def __init__(self, kubectl: Kubectl, kind: str, selector: str, see: See) -> None:
        options = (f"--selector={selector}", "--watch", "--output-watch-events", "--output=json")
        self._command = [str(kubectl.program), *kubectl.options, "get", kind, *options]
        self._see = see
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, name=f"watch of {kind}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and its thread."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._thread.join(10)

    def _follow(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            self._see(event["object"], event["type"] == "DELETED")


class Discovery:
    """Keeps Prometheus scraping the pods of plans in a namespace, from when they have an address. A context manager."""

    def __init__(self, kubectl: Kubectl, namespace: str, prometheus: Prometheus) -> None:
        self._namespace, self._prometheus = namespace, prometheus
        self._targets: dict[str, Target] = {}
        self._watch = Watch(kubectl, "pods", PLAN_LABEL, self._see)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.stop()

    def _see(self, found: Object, deleted: bool) -> None:
        name, address = found["metadata"]["name"], found.get("status", {}).get("podIP")
        before = self._targets.pop(name, None)
        if address and not deleted:
            ports = (port for container in found["spec"]["containers"] for port in container.get("ports", ()))
            (number,) = (port["containerPort"] for port in ports if port.get("name") == PORT_NAME)
            self._targets[name] = pod(number, name, namespace=self._namespace, host=address)
        if before != self._targets.get(name):
            self._prometheus.scrape(*self._targets.values())
