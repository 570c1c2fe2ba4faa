"""A program of ours in a process of its own: bounded in time, its processor time read, gone when we go.

In: a command. Out: its exit code, its last lines, samples of its processor time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from servingplan.errors import ClusterError, UsageError

LAST_LINES = 12
"""Of a program that failed: the end of a traceback."""

END_S = 10.0
"""How long a program may take to end after it was asked to."""


class BenchFailed(ClusterError):
    """``vllm bench`` ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it went. code: None where it was stopped because its time was over."""

    code: int | None
    output: str


class Child:
    """A running program. It leads a session of its own, so that Ctrl-C reaches us first and alone."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @staticmethod
    async def start(command: Sequence[str], *, log: Path) -> Child:
        """Start it; its output goes to `log`. Raises UsageError where there is no such program."""
        with log.open("wb") as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                )
            except (FileNotFoundError, PermissionError) as error:
                message = f"{command[0]} cannot be run ({error.strerror}): install vLLM here, or name it with --vllm"
                raise UsageError(message) from error
        return Child(process, log)

    def cpu_sample(self) -> tuple[float, float] | None:
        """(monotonic instant, processor seconds so far); None where the system does not tell."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        ticks = int(fields[11]) + int(fields[12])
        return time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK")

    async def wait(self, longest_s: float) -> Ended:
        """Wait for its end, at most so long; then, and when we are cancelled, it is ended."""
        try:
            async with asyncio.timeout(longest_s):
                code: int | None = await self._process.wait()
        except TimeoutError:
            code = None
        finally:
            await self._end()
        return Ended(code=code, output=self._last_lines())

    async def _end(self) -> None:
        """It and everything that it started; asked first, then made to."""
        for number, patience in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
            if self._process.returncode is not None:
                return
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._process.wait()

    def _last_lines(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join(f"  {line[:300]}" for line in lines)
