"""The first process of a space: prepares network and mounts, runs the command, and collects what has lost its parent.

In: a command line. Out: its exit code; with this process, everything in the space ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from e2e.node.machine import Unfit, program

EMPTIED = ("/run", "/var/lib/cni", "/var/log/containers")
"""Folders that kubelet, containerd and network plugins write to wherever they are told to write: empty in a space."""

MACHINE_SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
"""What a kubelet sets for the whole machine, below /proc/sys: in a space it writes to a copy."""

COPIES = "/run/machine-settings"
"""Emptied above, so it is the space's own."""

LINK, LINK_PEER = "node0", "node0p"
"""A pair of devices that carries the nodes' addresses: a kubelet accepts no address of the loopback."""


def main(command: list[str]) -> int:
    """Prepares the space and runs the command in it."""
    try:
        _mounts()
        _network()
    except subprocess.CalledProcessError as error:
        raise Unfit(
            f"real nodes need mounts and network devices of their own: {' '.join(error.cmd)} failed "
            f"({error.stderr.strip()}); run it on a virtual machine or in a privileged container"
        ) from error
    # Ctrl-C goes to the command as well, and the first process of a namespace outlives its last one.
    signal.signal(signal.SIGINT, _leave_to_command)
    child = subprocess.Popen(command)
    while True:
        process, status = os.wait()
        if process == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _leave_to_command(number: int, frame: FrameType | None) -> None:
    """The command ends by it."""


def _mounts() -> None:
    mount = program("mount")
    for folder in EMPTIED:
        # An empty folder more on the machine, where there was none.
        Path(folder).mkdir(parents=True, exist_ok=True)
        _do(mount, "-t", "tmpfs", "tmpfs", folder)
    for number, setting in enumerate(MACHINE_SETTINGS):
        real, copy = Path("/proc/sys") / setting, Path(COPIES) / str(number)
        if real.exists():
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(real.read_text())
            _do(mount, "--bind", str(copy), str(real))


def _network() -> None:
    ip = program("ip")
    _do(ip, "link", "set", "lo", "up")
    _do(ip, "link", "add", LINK, "type", "veth", "peer", "name", LINK_PEER)
    for device in (LINK, LINK_PEER):
        _do(ip, "link", "set", device, "up")
    # Nothing is beyond it; without a default route kubelet and kube-proxy find no address of their own.
    _do(ip, "route", "add", "default", "dev", LINK)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _do(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unfit as unfit:
        sys.exit(str(unfit))
