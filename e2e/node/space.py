"""A space: namespaces, a folder and a cgroup in which real nodes run, and which end together.

Everything inside has one first process. When that one ends, however it ends, the kernel kills the rest: container
runtimes, containers and their shims. Network and mounts are the space's own and go with it. What remains then, the
folder and empty cgroups, is removed here.

In: a command. Out: its exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from e2e.node import cgroups
from e2e.node.machine import program
from servingplan.localcluster.rundir import RunFolder

FOLDER_VARIABLE = "SERVINGPLAN_NODE_SPACE"
"""Tells a process inside that it is in a space, and where the space's folder is."""

ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process inside may put things: a folder, and the name of a cgroup of its own."""

    folder: Path
    cgroup: str


def here() -> Place | None:
    """The space that this process is in; None outside of any."""
    folder = os.environ.get(FOLDER_VARIABLE, "")
    return Place(folder=Path(folder), cgroup=f"{cgroups.PREFIX}{Path(folder).name}") if folder else None


class Space:
    """Runs commands with namespaces of their own. A context manager: the folder and the cgroup end with it."""

    def __init__(self) -> None:
        self._folder = RunFolder()
        self.cgroup = f"{cgroups.PREFIX}{self._folder.path.name}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            _remove_abandoned(self._folder.path.parent)
            cgroups.make(self.cgroup)
        except BaseException:
            self._folder.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The folder is removed from outside, where nothing is mounted in it: a host's folder that a container
        # mounts must not be emptied.
        cgroups.remove(self.cgroup)
        self._folder.remove()

    def run(self, command: Sequence[str]) -> int:
        """Runs a command to its end, 128 + signal when one ended it; Ctrl-C is the command's to handle."""
        own_handlers = {number: signal.signal(number, self._kill) for number in ENDING}
        own_handlers[signal.SIGINT] = signal.signal(signal.SIGINT, _leave_to_command)
        try:
            # Whatever ends this process ends unshare, and that the first process inside, and that all others.
            self._process = subprocess.Popen(
                [
                    *(program("setpriv"), "--pdeathsig", "KILL"),
                    *(program("unshare"), "--mount", "--net", "--pid", "--ipc", "--uts"),
                    *("--fork", "--kill-child", "--mount-proc"),
                    *(sys.executable, "-m", "e2e.node.inside", *command),
                ],
                env=os.environ | {FOLDER_VARIABLE: str(self._folder.path)},
            )
            code = self._process.wait()
            return code if code >= 0 else 128 - code
        finally:
            for number, handler in own_handlers.items():
                signal.signal(number, handler)

    def _kill(self, number: int, frame: FrameType | None) -> None:
        if self._process is not None:
            self._process.kill()


def _leave_to_command(number: int, frame: FrameType | None) -> None:
    """A terminal sends Ctrl-C to the whole group: the command inside ends by it, and then this process."""


def _remove_abandoned(runs: Path) -> None:
    """Removes the empty cgroups of spaces whose folder is gone: those of a run that was killed."""
    for root in cgroups.hierarchies():
        for left in root.glob(f"{cgroups.PREFIX}*"):
            if not (runs / left.name.removeprefix(cgroups.PREFIX)).exists():
                with suppress(OSError):
                    cgroups.remove(left.name)
