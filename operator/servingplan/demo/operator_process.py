"""The operator's process: the same program as in a cluster, with a faster clock, on this machine.

In: access to a cluster, a namespace, a clock. Out: a running process, what it counted, and its end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from servingplan.controller.clock import AcceleratedClock
from servingplan.controller.settings import DEMO_CLOCK_ALLOWED, ENVIRONMENT_PREFIX
from servingplan.errors import ClusterError

INSTALLATION = "demo"
END_TIMEOUT_S = 15.0
LAST_LINES = 12

_PORT = re.compile(r"health and metrics on port (\d+)")
_REQUESTS = re.compile(r"servingplan_api_requests_total\{(?P<labels>[^}]*)\} (?P<count>[0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = frozenset({"create", "update", "patch", "delete"})


class OperatorEnded(ClusterError):
    """The operator's process ended by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an operator runs. folder: for its log. kubeconfig and context: as it is given them."""

    folder: Path
    namespace: str
    kubeconfig: Path | None
    context: str | None


class OperatorProcess:
    """One run of the operator, from its start to `stop`."""

    def __init__(self, surroundings: Surroundings, clock: AcceleratedClock, *, number: int) -> None:
        self.log = surroundings.folder / f"operator-{number}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603  this Python, this package
                [sys.executable, "-m", "servingplan.demo.child", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(surroundings, clock),
                # Ctrl-C in a terminal reaches the demo alone, which then ends everything in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ready(self) -> bool:
        """Whether it has begun its work. Raises OperatorEnded."""
        self.check()
        return self._answer("/readyz").strip() == "ok"

    def check(self) -> None:
        """Raise OperatorEnded, with the end of its log, where it has ended by itself."""
        code = self._process.poll()
        if code is not None:
            lines = "\n".join(f"  {line}" for line in self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])
            raise OperatorEnded(f"the operator ended by itself with {code}; the last lines of its log:\n{lines}")

    def writes(self) -> Counter[str]:
        """The writes so far that the API server accepted, by resource as in ``deployments.apps/scale``."""
        return count_writes(self._answer("/metrics"))

    def stop(self) -> None:
        """End it as Kubernetes does; harmless when repeated."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_TIMEOUT_S)

    def _answer(self, path: str) -> str:
        found = _PORT.search(self.log.read_text(errors="replace"))
        if found is None:
            return ""
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{found[1]}{path}", timeout=5) as answer,
        ):
            text: str = answer.read().decode()
            return text
        return ""


def count_writes(metrics: str) -> Counter[str]:
    """The accepted writes in the text of ``/metrics``, by resource."""
    writes: Counter[str] = Counter()
    for line in metrics.splitlines():
        if found := _REQUESTS.match(line):
            labels = dict(_LABEL.findall(found["labels"]))
            if labels["verb"] in _WRITES and labels["code"].startswith("2"):
                writes[labels["resource"]] += round(float(found["count"]))
    return writes


def _environment(surroundings: Surroundings, clock: AcceleratedClock) -> Mapping[str, str]:
    # What the user has set for an operator of their own is not for this one.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(ENVIRONMENT_PREFIX)}
    settings = {
        "NAMESPACES": surroundings.namespace,
        "INSTALLATION": INSTALLATION,
        "LEADER_ELECTION": "false",
        "HEALTH_HOST": "127.0.0.1",
        "HEALTH_PORT": "0",
        "LOG_FORMAT": "text",
        "DEMO_CLOCK": clock.describe(),
        **({"KUBECONFIG": str(surroundings.kubeconfig)} if surroundings.kubeconfig is not None else {}),
        **({"CONTEXT": surroundings.context} if surroundings.context is not None else {}),
    }
    own = {f"{ENVIRONMENT_PREFIX}{key}": value for key, value in settings.items()}
    return {**inherited, **own, DEMO_CLOCK_ALLOWED: "yes"}
