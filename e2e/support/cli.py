"""The command line as tests run it: a process of its own, as wide as a screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a verb said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, parsed."""
        return json.loads(self.out)


Cli = Callable[..., Answer]


def run(*arguments: str) -> Answer:
    """Run a verb in the root of the repository."""
    done = subprocess.run(
        [sys.executable, "-m", "servingplan.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "160"},
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)
