"""VLLM's own scheduler as a process that follows cases step by step; ``python -m e2e.vllm.scheduler_steps`` records.

In: cases of `support.engine_steps`. Out: their `Steps`. The recordings hold the token-level model where vLLM is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.vllm.engines import VARIABLES
from e2e.vllm.environment import Environment, ensure_installed
from support.engine_steps import RECORDED, Case, Steps, cases, record

DRIVER = Path(__file__).parent / "drive_scheduler.py"

REQUESTS = 300
"""Of a recording: enough that each bound holds for hundreds of steps, in some kilobytes."""


class RealScheduler:
    """The process; it takes vLLM half a minute to be imported. A context manager."""

    def __init__(self, environment: Environment, log: Path) -> None:
        self._command = (str(environment.python), str(DRIVER), str(environment.model))
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | VARIABLES,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def follow(self, case: Case) -> Steps:
        """The case, to its end."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case.document()) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the driver ended: {self._log.read_text()[-2000:]}"
        return Steps(**json.loads(answer))


def main() -> None:
    """Record all cases."""
    RECORDED.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        RealScheduler(ensure_installed(), Path(folder) / "driver.log") as scheduler,
    ):
        for name, case in cases(REQUESTS).items():
            record(RECORDED / f"{name}.json.gz", case, scheduler.follow(case), "vLLM 0.32.0")
            print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
