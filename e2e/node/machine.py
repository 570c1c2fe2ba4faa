"""What a machine must have for real nodes; installs what is missing where it can.

In: the machine. Out: nothing, or `Unfit` with one sentence that says what is missing and what to do.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

RUNTIME = "containerd"

PROGRAMS = {
    "containerd": RUNTIME,
    "ctr": RUNTIME,
    "runc": "runc",
    "buildah": "buildah",
    "ip": "iproute2",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
}
"""Each program, and the Debian package that brings it."""

CNI_PLUGINS = Path("/usr/lib/cni")
HOST_PYTHON = Path("/usr/bin/python3")
"""What containers run that have no files of their own but the host's /usr."""

FILES = {
    CNI_PLUGINS / "bridge": "containernetworking-plugins",
    CNI_PLUGINS / "host-local": "containernetworking-plugins",
    CNI_PLUGINS / "portmap": "containernetworking-plugins",
    HOST_PYTHON: "python3",
}
# Debian keeps them where a user's PATH may not reach.
SEARCHED = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


class Unfit(Exception):
    """Real nodes cannot run here; the message says why, and what to do, in one sentence."""


def program(name: str) -> str:
    """The path of a program that `prepare` looked for."""
    found = shutil.which(name, path=SEARCHED)
    if found is None:
        raise Unfit(f"real nodes need the program {name}, and it is not on the PATH ({SEARCHED})")
    return found


def static_busybox() -> str | None:
    """A busybox that runs in an image without any other file; None when there is none."""
    found = shutil.which("busybox", path=SEARCHED)
    if found is None:
        return None
    # ldd refuses a program that needs no library.
    libraries = subprocess.run(["ldd", found], capture_output=True, check=False)
    return found if libraries.returncode != 0 else None


def prepare() -> None:
    """Installs what is missing; raises `Unfit` when this machine cannot run real nodes."""
    if sys.platform != "linux":
        raise Unfit(f"real nodes need Linux, and this is {platform.system()}; run them in a virtual machine")
    if os.geteuid() != 0:
        raise Unfit("real nodes need root, for namespaces, mounts and cgroups; run it again as root")
    install(_missing_packages, what="real nodes")
    _try_namespaces()


def _missing_packages() -> list[str]:
    missing = {package for name, package in PROGRAMS.items() if shutil.which(name, path=SEARCHED) is None}
    missing |= {package for file, package in FILES.items() if not file.exists()}
    missing |= set() if static_busybox() else {"busybox-static"}
    return sorted(missing)


def install(missing: Callable[[], list[str]], *, what: str) -> None:
    """Installs the Debian packages that `missing` names, for `what`; raises `Unfit` when some are missing then."""
    packages = missing()
    if not packages:
        return
    apt = shutil.which("apt-get", path=SEARCHED)
    if apt is None:
        wanted = ", ".join(packages)
        raise Unfit(f"{what} need what Debian calls {wanted}, and there is no apt-get here; install it yourself")
    print(f"Installing {', '.join(packages)}.", file=sys.stderr, flush=True)
    options = ("-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0", "-qq")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, *options, "update"], env=quiet, stdout=sys.stderr, check=False)
    done = subprocess.run(
        [apt, *options, "install", "-y", "--no-install-recommends", *packages],
        env=quiet,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode != 0 or (left := missing()):
        wanted = ", ".join(packages if done.returncode != 0 else left)
        raise Unfit(f"apt-get could not install {wanted} (its output is above); install it, then run this again")
    if RUNTIME in packages and Path("/run/systemd/system").is_dir():
        # Debian starts what it installs; a space has a runtime of its own.
        subprocess.run(["systemctl", "disable", "--quiet", "--now", f"{RUNTIME}.service"], check=False)


def _try_namespaces() -> None:
    tried = subprocess.run(
        [program("unshare"), "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        raise Unfit(
            "real nodes need mount, network and process namespaces of their own, and this machine refuses them "
            f"({tried.stderr.strip()}); run it on a virtual machine or in a privileged container"
        )
