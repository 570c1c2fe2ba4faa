"""The program as a process of its own, and its outputs as kept in golden/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKED_EXAMPLE = str(ROOT / "examples" / "worked-example.yaml")
SIZE_EXAMPLE = str(ROOT / "examples" / "models" / "qwen3-14b")
GOLDEN = Path(__file__).parent / "golden"


def process(*arguments: str, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program, or code, in a process of its own."""
    command = ["-c", code] if code is not None else ["-m", "servingplan.cli", *arguments]
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "COLUMNS": "80", **environment},
    )


def same_as_golden(name: str, text: str) -> None:
    """Compare with the file in golden/; SERVINGPLAN_WRITE_GOLDEN=1 writes it, to be read before it is committed."""
    file = GOLDEN / name
    if os.environ.get("SERVINGPLAN_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
