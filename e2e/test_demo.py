"""``servingplan demo`` as people run it: to its end, in a terminal, on a cluster of theirs, interrupted, killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from e2e.support.eventually import eventually
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.kubeconfig import NAME
from support.specs import WORKING_DAY, document, scheduled

DEMO = [sys.executable, "-m", "servingplan.cli", "demo"]
TIMEOUT_S = 240
ALTERNATE_SCREEN, NORMAL_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def environment(tmp_path: Path, local_cluster: LocalCluster) -> dict[str, str]:
    """What the demo starts has the test's folder in its environment or its arguments, so that it can be found."""
    return os.environ | {"TMPDIR": str(tmp_path), "KUBECONFIG": str(local_cluster.kubeconfig)}


@pytest.fixture
def short_day(tmp_path: Path) -> str:
    """A plan whose window is soon over: rise and fall are one part."""
    file = tmp_path / "short-day.yaml"
    file.write_text(json.dumps(document(**scheduled(windows=[{**WORKING_DAY, "end": "08:20"}]))))
    return str(file)


def left_behind(folder: Path) -> list[str]:
    """Processes that have the folder in their arguments or environment, and run folders in it."""
    return [*_processes(str(folder).encode()), *map(str, folder.glob("servingplan-*/run-*"))]


def _processes(mark: bytes) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, inherited = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if mark in command or mark in inherited:
            yield command.replace(b"\0", b" ").decode(errors="replace")


def ends_clean(folder: Path) -> None:
    eventually(lambda: left_behind(folder), lambda left: not left, what="nothing left of the demo", timeout_s=20)


def test_a_working_day_is_played_and_summed_up(environment, tmp_path):
    done = subprocess.run(
        [*DEMO, "--factor=120", "--start-time=6m..9m", "-o", "json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    ramp = summary["ramp"]
    assert (ramp["from"], ramp["to"], ramp["onTime"]) == (2, 5, True)
    assert re.search(r"T06:4[89]:", ramp["askedAt"])
    assert 0 <= ramp["marginMinutes"] <= 6
    assert summary["fall"]["readyAtEnd"] == 2
    assert summary["restart"]["writes"]["replicas"] == 0
    assert summary["writes"]["replicas"] >= 4
    assert (summary["gpuHours"]["month"]["required"], summary["gpuHours"]["month"]["flatPeak"]) == (2252.0, 3650.0)
    assert "ScaledUp: replicas 2 to 5: ready before window working-day" in done.stderr
    assert "\x1b" not in done.stderr
    ends_clean(tmp_path)


def test_a_missed_ramp_is_seen_live_and_ends_with_its_exit_code(environment, tmp_path, short_day):
    demo = pexpect.spawn(
        sys.executable,
        [*DEMO[1:], "--factor=120", "--start-time=15m", f"--plan={short_day}"],
        env=environment | {"TERM": "xterm-256color"},
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    for expected in (ALTERNATE_SCREEN, "demo clock Mon|demo clock", "ReadyByNextRamp False", NORMAL_SCREEN):
        demo.expect(expected if "|" in expected else re.escape(expected))
    demo.expect(pexpect.EOF)
    demo.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", demo.before)
    assert "AFTER the ramp at 08:00" in shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80
    assert demo.exitstatus == 4
    ends_clean(tmp_path)


def test_a_cluster_of_the_users_own_is_asked_for_and_left_as_it_was(environment, tmp_path, local_cluster, installation):
    refused = subprocess.run(
        [*DEMO, f"--context={NAME}"],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    demo, said = started([*DEMO, f"--context={NAME}", "--yes", "--factor=120"], environment)
    eventually(lambda: "2 of 2 ready" in "".join(said), what="the first replicas", timeout_s=60)
    assert "servingplan-demo" in local_cluster.kubectl("get", "namespaces", "-o", "name")
    demo.send_signal(signal.SIGINT)
    assert demo.wait(timeout=90) == 130, "".join(said)
    assert "servingplan-demo" not in local_cluster.kubectl("get", "namespaces", "-o", "name")
    # The definition was there before the demo, so it stays.
    local_cluster.kubectl("get", "crd", "servingplans.servingplan.dev")
    ends_clean(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_ended_leaves_nothing_behind(environment, tmp_path, number):
    demo, said = started([*DEMO, "--factor=60"], environment)
    eventually(lambda: "2 of 2 ready" in "".join(said), what="the first replicas", timeout_s=90)
    demo.send_signal(number)
    code = demo.wait(timeout=60)
    if number is signal.SIGKILL:
        eventually(lambda: list(_processes(str(tmp_path).encode())), lambda left: not left, what="no process left")
        return
    assert code == 130
    eventually(lambda: "everything that it had made is removed" in "".join(said), what="a word about it")
    ends_clean(tmp_path)


def started(command: list[str], environment: dict[str, str]) -> tuple[subprocess.Popen[str], list[str]]:
    """A demo whose standard error is read as it comes."""
    demo = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said: list[str] = []
    threading.Thread(target=lambda: said.extend(demo.stderr), daemon=True).start()
    return demo, said
