"""Finds a Go that can build the local control plane, or says in one sentence what is missing.

In: the ``go.mod`` of what is to be built. Out: the ``go`` program to call. Used by ``build`` only when there is
something to build: with a finished build in the cache no Go is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servingplan.errors import Problem
from servingplan.localcluster.failures import ToolchainProblem

WAY_OUT = "Install it from https://go.dev/dl/ and put its bin folder on the PATH, or use a cluster of your own."


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A usable Go: the program and its version, as in ``1.26.8``."""

    program: Path
    version: str


def required_version(go_mod: str) -> str:
    """The version in the ``go`` line of a go.mod, as in ``1.26.0``."""
    found = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError("go.mod has no go line")
    return found[1]


def module_version(go_mod: str, module: str) -> str:
    """The version of a required module in a go.mod, as in ``v1.36.3``."""
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise ValueError(f"go.mod requires no {module}")
    return found[1]


def find_go(folder: Path) -> Go:
    """The Go on the PATH, when it can build the module in ``folder``.

    Asked inside the module's folder, a Go that may fetch newer toolchains answers with the one that it would use.
    Raises `ToolchainProblem`.
    """
    needed = required_version((folder / "go.mod").read_text())
    program = shutil.which("go")
    if program is None:
        raise _problem(
            "GoMissing",
            f"the local control plane is built with Go {needed} or newer, and there is no `go` on the PATH. {WAY_OUT}",
        )
    answer = subprocess.run(  # noqa: S603 - the program found above
        [program, "version"], cwd=folder, capture_output=True, text=True, check=False
    )
    found = re.search(r"go version go(\d+(?:\.\d+)*)", answer.stdout)
    if answer.returncode != 0 or found is None:
        raise _problem(
            "GoUnusable", f"`{program} version` failed: {(answer.stderr or answer.stdout).strip()}. {WAY_OUT}"
        )
    if _numbers(found[1]) < _numbers(needed):
        raise _problem(
            "GoTooOld",
            f"the local control plane is built with Go {needed} or newer, and {program} is Go {found[1]}. {WAY_OUT}",
        )
    return Go(program=Path(program), version=found[1])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _problem(reason: str, message: str) -> ToolchainProblem:
    return ToolchainProblem(Problem(path="", reason=reason, message=message))
