"""The operator as tests run it: the real process, under the chart's own ServiceAccount, one namespace each."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

from e2e.support.eventually import eventually
from servingplan.controller.clock import AcceleratedClock, system_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The chart, installed once for the whole session without its pods; tests run the operator themselves."""

    kubeconfig: Path
    home: str


class Operator:
    """One operator process. Its log is a file; it ends with the test at the latest."""

    def __init__(
        self,
        installation: Installation,
        folder: Path,
        *,
        namespace: str,
        options: tuple[str, ...],
        env: Mapping[str, str],
    ) -> None:
        self.log_path = folder / f"operator-{time.monotonic_ns()}.log"
        self._log = self.log_path.open("w")
        command = [
            sys.executable,
            "-m",
            "servingplan",
            "operator",
            f"--kubeconfig={installation.kubeconfig}",
            f"--namespaces={namespace}",
            f"--lease-namespace={installation.home}",
            "--health-host=127.0.0.1",
            "--health-port=0",
            "--log-format=text",
            *options,
        ]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log, env=os.environ | dict(env))

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text()

    @property
    def port(self) -> int:
        """The port of its probes and metrics."""
        found = eventually(
            lambda: re.search(r"health and metrics on port (\d+)", self.log), what=f"the port in {self.log_path}"
        )
        return int(found.group(1))

    def get(self, path: str) -> str:
        """An answer of its own server, as in ``get("/metrics")``."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return answer.read().decode()

    def until_ready(self) -> Operator:
        """Wait until ``/readyz`` says ok."""
        eventually(self._ready, what=f"a ready operator; log:\n{self.log}")
        return self

    def _ready(self) -> bool:
        try:
            return self.get("/readyz").strip() == "ok"
        except OSError:
            return False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, as SIGSTOP."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it as Kubernetes does, with SIGTERM; the exit code."""
        self.process.terminate()
        return self._wait()

    def kill(self) -> None:
        """End it without any chance to clean up."""
        self.process.kill()
        self._wait()

    def _wait(self) -> int:
        try:
            code = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=20)
            raise AssertionError(f"the operator did not end within 20 s of SIGTERM; log:\n{self.log}") from None
        finally:
            self._log.close()
        return code


def demo_clock(start: str, factor: int) -> AcceleratedClock:
    """A clock that shows `start` (with offset) now and runs `factor` times as fast; the same for every process."""
    return AcceleratedClock(start=datetime.fromisoformat(start), since=system_now(), factor=Fraction(factor))


def sleep_until(clock: AcceleratedClock, instant: str, *, plus: timedelta = timedelta()) -> None:
    """Wait until the clock shows an instant."""
    time.sleep(clock.seconds_until(datetime.fromisoformat(instant) + plus))
