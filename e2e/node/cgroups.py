"""The control group below which all containers of a space run, in every hierarchy of the machine.

Namespaces end by themselves; cgroups do not, so whoever makes one removes it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from e2e.node.machine import Unfit

ROOT = Path("/sys/fs/cgroup")
NEEDED_V1 = ("cpu", "cpuset", "devices", "freezer", "memory", "pids")
NEEDED_V2 = frozenset({"cpu", "cpuset", "memory", "pids"})
PREFIX = "servingplan-node-"
_CONTROLLERS = "cgroup.controllers"


def hierarchies() -> list[Path]:
    """The roots of the machine's hierarchies: one with version 2, one for each controller with version 1."""
    if (ROOT / _CONTROLLERS).exists():
        return [ROOT]
    # With `unified`, which a hybrid machine has for systemd: runtimes put containers there too.
    return sorted(path for path in ROOT.glob("*") if (path / "cgroup.procs").exists())


def make(name: str) -> None:
    """Makes a cgroup, with slashes for levels, in every hierarchy; raises `Unfit` when that is not possible."""
    roots = hierarchies()
    if roots != [ROOT] and (missing := [each for each in NEEDED_V1 if not (ROOT / each / "cgroup.procs").exists()]):
        raise Unfit(f"real nodes need the cgroup controllers {', '.join(missing)}, and they are not below {ROOT}")
    try:
        for root in roots:
            folder = root
            for level in Path(name).parts:
                if roots == [ROOT]:
                    _pass_controllers_on(folder)
                folder /= level
                folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Unfit(
            f"real nodes need cgroups of their own, and this machine refuses them ({error}); run it on a virtual "
            "machine or in a privileged container that may write its cgroups"
        ) from error


def weigh(name: str, processes: int) -> None:
    """Lets a cgroup have the processors like so many processes of the machine; by itself it counts as one of them."""
    for root in hierarchies():
        for file, one in (("cpu.shares", 1024), ("cpu.weight", 100)):
            if (root / name / file).exists():
                (root / name / file).write_text(str(one * processes))


def remove(name: str) -> None:
    """Removes a cgroup and all below it, once nothing runs there any more."""
    for root in hierarchies():
        top = root / name
        for folder in (*sorted(top.glob("**/"), reverse=True), top):
            with suppress(OSError):
                folder.rmdir()


def left_over(name: str) -> list[Path]:
    """What is still there of a cgroup, wherever somebody made it."""
    return [path for path in (ROOT / name, *ROOT.glob(f"*/{name}")) if path.exists()]


def _pass_controllers_on(folder: Path) -> None:
    available = set((folder / _CONTROLLERS).read_text().split())
    if missing := NEEDED_V2 - available:
        raise Unfit(f"real nodes need the cgroup controllers {', '.join(sorted(missing))}, and {folder} lacks them")
    wanted = " ".join(f"+{controller}" for controller in sorted(NEEDED_V2))
    (folder / "cgroup.subtree_control").write_text(wanted)
