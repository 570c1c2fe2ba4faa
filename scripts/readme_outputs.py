"""Writes the outputs of offline commands into README.md; with ``--check``, says whether they are up to date.

A block to fill follows a comment ``<!-- output: [COLUMNS=N] servingplan ... -->``. A test runs the check.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- output: (?P<command>.*?) -->\n```\n)(?P<text>.*?)(```\n)", re.DOTALL)


def filled(text: str) -> str:
    """The text with every block filled by its command's output now."""
    return BLOCK.sub(
        lambda block: f"{block[1]}$ {_shown(block['command'])}\n{_output(block['command'])}{block[4]}", text
    )


def _shown(command: str) -> str:
    return " ".join(word for word in command.split() if not word.startswith("COLUMNS="))


def _output(command: str) -> str:
    words = shlex.split(command)
    env = os.environ | dict(word.split("=", 1) for word in words if word.startswith("COLUMNS="))
    arguments = [word for word in words if not word.startswith("COLUMNS=")][1:]
    done = subprocess.run(  # noqa: S603  the commands stand in our own README
        [sys.executable, "-m", "servingplan", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").split("\n")) + "\n"


def main() -> int:
    """Fill the blocks, or check them. 1 where the check fails."""
    text = README.read_text(encoding="utf-8")
    new = filled(text)
    if "--check" in sys.argv[1:]:
        return int(new != text)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
