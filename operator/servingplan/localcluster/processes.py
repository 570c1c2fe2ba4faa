"""Starts the components of a local cluster so that none of them can outlive this process.

Each child is tethered: the kernel kills it when the thread that started it ends, so a SIGKILL of this process leaves
nothing behind either. That thread is therefore one of our own that lives as long as the cluster, not the caller's.
Each child leads a session of its own, so that Ctrl-C in a terminal reaches this process first and alone.

Place in the flow: ``cluster`` says what to run (``components``), this module runs it.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from servingplan.localcluster.failures import StartFailed

LAST_LINES = 15
END_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One running program: its name, process and log file."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


class Processes:
    """The running components of one cluster.

    controlplane: the program whose ``tether`` ties a child to this process. logs: the folder for ``NAME.log``.
    """

    def __init__(self, *, controlplane: Path, logs: Path) -> None:
        self._tether = (str(controlplane), "tether", str(os.getpid()))
        self._logs = logs
        self._components: list[Component] = []
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-cluster")
        atexit.register(self.stop)

    def start(self, name: str, command: Sequence[str]) -> None:
        """Starts a component; its output goes to ``NAME.log``."""
        self._components.append(self._starter.submit(self._spawn, name, command).result())

    def check(self) -> None:
        """Raises `StartFailed` with the log's last lines when a component has ended by itself."""
        for component in self._components:
            code = component.process.poll()
            if code is not None:
                raise StartFailed(f"{component.name} ended with {code}. {self.last_lines(component.name)}")

    def last_lines(self, name: str) -> str:
        """The end of a component's log, introduced by its path."""
        log = self._logs / f"{name}.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        lines = text.splitlines()[-LAST_LINES:]
        return "\n".join((f"The last lines of {log}:", *(f"  {line[:400]}" for line in lines)))

    def pids(self) -> dict[str, int]:
        """The process id of each component, by name."""
        return {component.name: component.process.pid for component in self._components}

    def stop(self) -> None:
        """Kills every component, the last started first, and waits for their ends. Harmless when repeated.

        Nothing of a local cluster is kept, so there is nothing to shut down gracefully: the API server alone would
        take its time for that.
        """
        for component in reversed(self._components):
            with suppress(ProcessLookupError):
                os.killpg(component.process.pid, signal.SIGKILL)
        for component in self._components:
            component.process.wait(END_TIMEOUT_S)
        self._components.clear()
        self._starter.shutdown()
        atexit.unregister(self.stop)

    def _spawn(self, name: str, command: Sequence[str]) -> Component:
        log = self._logs / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - a program that build made
                (*self._tether, *command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Component(name=name, process=process, log=log)
