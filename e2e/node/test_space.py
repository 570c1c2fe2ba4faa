"""Whatever ends a run on real nodes, nothing of it stays on the machine; and what an unfit machine is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from e2e.node import cgroups
from e2e.node.machine import Unfit, prepare
from e2e.node.space import Space, here
from e2e.support.eventually import eventually

pytestmark = pytest.mark.skipif(here() is None, reason="needs a machine for real nodes: make e2e-node")

A_NODE = """
import os, time
from e2e.node.cluster import RealCluster
from e2e.node.images import on_the_host
from e2e.support.eventually import eventually
from e2e.support.workloads import is_ready
with RealCluster(nodes=1, gpus=1) as cluster:
    image = cluster.host_image("localhost/host:1")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sleeper"}, **on_the_host("sleeper", image=image)}
    pod["spec"]["containers"][0]["command"] = ["sleep", "1000"]
    cluster.kubectl.apply(pod)
    eventually(lambda: is_ready(cluster.kubectl.json("get", "pod", "sleeper")), what="a pod that runs")
    print(os.environ["SERVINGPLAN_NODE_SPACE"], flush=True)
    time.sleep(1000)
"""
"""The real thing: a control plane, a node, and a pod with its shim."""

A_DAEMON = """
import os, subprocess, time
subprocess.Popen("mount -t tmpfs tmpfs /mnt; sleep 1000 & setsid sleep 1000", shell=True, start_new_session=True)
print(os.environ["SERVINGPLAN_NODE_SPACE"], flush=True)
time.sleep(1000)
"""
"""What outlives its parent as a shim does."""


def namespaces(kind: str) -> dict[int, str]:
    """The namespace of a kind that each process is in, as far as it can be seen from here."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found[int(process.name)] = str((process / "ns" / kind).readlink())
    return found


def first_inside(parent: int) -> int:
    """The first process of the space that a process has started."""
    (child,) = (process for process in Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return int(child)


@pytest.fixture
def held(request):
    """A space in which a program runs: its process, its folder, and its namespace of processes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "e2e.node", sys.executable, "-c", request.param],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip() or "/nowhere")
    assert folder.is_dir(), "the space did not come up; its output is above"
    unshare = first_inside(process.pid)
    yield process, folder, str(Path(f"/proc/{first_inside(unshare)}/ns/pid").readlink())
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    ("held", "number", "code"),
    [
        pytest.param(A_DAEMON, signal.SIGINT, 128 + signal.SIGINT, id="Ctrl-C"),
        pytest.param(A_DAEMON, signal.SIGTERM, 128 + signal.SIGKILL, id="a signal to end"),
        pytest.param(A_NODE, signal.SIGKILL, -signal.SIGKILL, id="a kill while a pod runs"),
    ],
    indirect=["held"],
)
def test_nothing_outlives_a_space(held, number, code):
    process, folder, inside = held
    running = eventually(
        lambda: {each for each, namespace in namespaces("pid").items() if namespace == inside},
        lambda found: len(found) >= 4,
        what="processes of the space",
    )
    networks = {namespaces("net")[each] for each in running} - {namespaces("net")[os.getpid()]}
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(60) == code
    eventually(lambda: inside not in namespaces("pid").values(), what="the end of every process of the space")
    # A killed process removes nothing itself: the next one does.
    with Space():
        pass
    assert not folder.exists()
    assert not cgroups.left_over(f"{cgroups.PREFIX}{folder.name}")
    assert networks
    assert not networks & set(namespaces("net").values())
    assert str(folder) not in Path("/proc/self/mounts").read_text()


def refusal(*command: str) -> str:
    """What ``python -m e2e.node`` says where it cannot run; one sentence, and no traceback."""
    done = subprocess.run(
        [*command, sys.executable, "-m", "e2e.node", "true"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    (sentence,) = done.stderr.strip().splitlines()
    return sentence


def test_a_machine_without_the_right_to_make_namespaces_is_told_so():
    sentence = refusal("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    assert sentence.startswith("real nodes need mount, network and process namespaces of their own")
    assert "Operation not permitted" in sentence
    assert "privileged container" in sentence


def test_a_machine_without_control_groups_is_told_so():
    hidden = 'mount -t tmpfs tmpfs /sys/fs/cgroup && exec "$@"'
    sentence = refusal("unshare", "--mount", "bash", "-c", hidden, "bash")
    assert sentence.startswith("real nodes need the cgroup controllers cpu, cpuset, ")


def test_whoever_is_not_root_is_told_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unfit, match="real nodes need root"):
        prepare()
