"""What this machine can tell of a server's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servingplan.benchmarking.machine import Machine, Route, machine, route

ADDRESSES = {
    "http://127.0.0.1:8000": Route.LOCAL,
    "http://localhost:8000": Route.LOCAL,
    "http://[::1]:8000": Route.LOCAL,
    "http://chat.team.svc:80": Route.SERVICE,
    "http://chat.team.svc.cluster.local": Route.SERVICE,
    "http://10.0.0.7:8000": Route.REMOTE,
    "https://svc.example.org": Route.REMOTE,
}


@pytest.mark.parametrize(("url", "kind"), ADDRESSES.items(), ids=ADDRESSES)
def test_an_address_says_where_requests_go(url: str, kind: Route) -> None:
    assert route(url) is kind


@pytest.fixture
def an_engine() -> Iterator[None]:
    """A process that is named as an engine is."""
    sleeps = [sys.executable, "-c", "import time; time.sleep(60)", "vllm", "serve"]
    process = subprocess.Popen(sleeps)
    yield
    process.kill()
    process.wait(10)


def driver(tmp_path: Path, script: str) -> str:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + script + "\n")
    program.chmod(0o755)
    return str(program)


SAID = {
    "two of a kind": (
        "printf 'NVIDIA H100 80GB HBM3, 560.35.03\\nNVIDIA H100 80GB HBM3, 560.35.03\\n'",
        Machine(accelerator="NVIDIA H100 80GB HBM3", driver="560.35.03"),
    ),
    "two kinds": ("printf 'L4, 560.1\\nA10, 560.1\\n'", Machine(accelerator="A10, L4", driver="560.1")),
    "a driver that fails": ("echo 'NVIDIA-SMI has failed, reinstall'; exit 9", Machine()),
    "nothing": ("true", Machine()),
}


@pytest.mark.parametrize(("script", "expected"), SAID.values(), ids=SAID)
def test_the_driver_of_this_machine_names_what_a_server_here_computes_on(
    tmp_path: Path, an_engine: None, script: str, expected: Machine
) -> None:
    assert asyncio.run(machine("http://127.0.0.1:8000", program=driver(tmp_path, script))) == expected


def test_without_a_driver_and_for_another_host_nothing_is_said(tmp_path: Path, an_engine: None) -> None:
    there = driver(tmp_path, "echo 'L4, 560.1'")
    assert asyncio.run(machine("http://127.0.0.1:8000", program=str(tmp_path / "none"))) == Machine()
    assert asyncio.run(machine("http://10.0.0.7:8000", program=there)) == Machine()
