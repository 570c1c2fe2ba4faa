"""The folder of one running cluster: keys, data and logs, removed at its end.

A process that is killed cannot remove its folder. So each folder is locked while its cluster runs (the kernel drops
the lock with the process), and the next cluster removes the folders that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

LOCK = "lock"


def runs_folder() -> Path:
    """Where the folders of running clusters of this user lie."""
    return Path(tempfile.gettempdir()) / f"servingplan-localcluster-{os.getuid()}"


class RunFolder:
    """A fresh, locked folder; ``path`` is readable by this user alone."""

    def __init__(self, runs: Path | None = None) -> None:
        runs = runs or runs_folder()
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        if runs.stat().st_uid != os.getuid():
            raise PermissionError(f"{runs} belongs to another user; set TMPDIR to a folder of your own")
        # One lock over all: a folder that was just made, and not locked yet, must not look abandoned.
        with (runs / LOCK).open("w") as everything:
            fcntl.flock(everything, fcntl.LOCK_EX)
            _remove_abandoned(runs)
            self.path = Path(tempfile.mkdtemp(prefix="run-", dir=runs))
            self._lock: IO[str] = (self.path / LOCK).open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Removes the folder and all in it. Harmless when repeated."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned(runs: Path) -> None:
    for folder in runs.glob("run-*"):
        with suppress(OSError), (folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
