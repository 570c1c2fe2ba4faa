"""Leader election on a real API server, by real processes that are killed and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.eventually import eventually
from servingplan.controller.leader import LEASE_API

PARTICIPANT = """
import asyncio, sys
from pathlib import Path
from servingplan.clients.connection import Connection
from servingplan.clients.gate import NotLeading
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.leader import LeaseElection
from servingplan.errors import ClusterError

kubeconfig, namespace, identity = sys.argv[1:]
COUNTER = ObjectRef(api_version="v1", kind="ConfigMap", name="writers", namespace=namespace)

async def main():
    connection = Connection(load_endpoint(kubeconfig=Path(kubeconfig)))
    asked = {"session": connection.session, "server": connection.server, "field_manager": identity}
    election = LeaseElection(client=KubernetesClient(**asked), namespace=namespace, name="e2e", identity=identity)
    gated = KubernetesClient(**asked, gate=election.gate)
    leading = asyncio.create_task(
        election.run(on_started=lambda: print("started", flush=True), on_lost=lambda: print("lost", flush=True))
    )
    try:
        while True:
            try:
                await gated.merge_patch(COUNTER, {"data": {"writer": identity}})
                print("wrote", flush=True)
            except NotLeading:
                print("shut", flush=True)
            except ClusterError as error:
                print("error", error, flush=True)
            await asyncio.sleep(0.2)
    except asyncio.CancelledError:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        await connection.close()

loop_main = asyncio.new_event_loop()
task = loop_main.create_task(main())
import signal
loop_main.add_signal_handler(signal.SIGTERM, task.cancel)
loop_main.run_until_complete(task)
"""


class Participant:
    """A process that takes part in the election and writes while it may."""

    def __init__(self, kubeconfig: Path, namespace: str, identity: str, folder: Path) -> None:
        self.identity = identity
        self._log = folder / f"{identity}.log"
        source = os.pathsep.join(path for path in sys.path if path)
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PARTICIPANT, str(kubeconfig), namespace, identity],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": source},
            )

    @property
    def said(self) -> list[str]:
        return self._log.read_text().splitlines()

    def signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


@pytest.fixture
def participate(cluster, kubectl, namespace, tmp_path) -> Iterator:
    kubectl("create", "configmap", "writers")
    started: list[Participant] = []

    def start(identity: str) -> Participant:
        started.append(Participant(Path(cluster.kubeconfig), namespace, identity, tmp_path))
        return started[-1]

    yield start
    for participant in started:
        participant.end()


def lease(kubectl) -> dict:
    return json.loads(kubectl("get", "lease", "e2e", "-o", "json"))["spec"]


def until_writing(participant: Participant) -> None:
    eventually(lambda: participant.said, lambda said: "wrote" in said, what=f"{participant.identity} writes")


def test_when_the_leader_is_killed_the_other_leads_within_25_seconds(participate, kubectl) -> None:
    first = participate("first")
    until_writing(first)
    second = participate("second")
    eventually(lambda: second.said, lambda said: "shut" in said, what="the second waits")
    first.signal(signal.SIGKILL)
    eventually(lambda: second.said, lambda said: "wrote" in said, what="the second leads", timeout_s=25)
    assert lease(kubectl)["holderIdentity"] == "second"
    assert lease(kubectl)["leaseTransitions"] == 1


def test_a_leader_that_ends_in_order_hands_over_without_waiting_for_its_lease(participate, kubectl) -> None:
    first = participate("first")
    until_writing(first)
    second = participate("second")
    eventually(lambda: second.said, lambda said: "shut" in said, what="the second waits")
    first.signal(signal.SIGTERM)
    assert first.process.wait(timeout=30) == 0
    eventually(lambda: second.said, lambda said: "wrote" in said, what="the second leads", timeout_s=14)
    assert first.said[-1] == "lost"


def test_a_leader_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on(participate, kubectl) -> None:
    first = participate("first")
    until_writing(first)
    second = participate("second")
    first.signal(signal.SIGSTOP)
    eventually(lambda: second.said, lambda said: "wrote" in said, what="the second leads", timeout_s=25)
    before = len(first.said)
    first.signal(signal.SIGCONT)
    eventually(lambda: first.said[before:], lambda said: said.count("shut") >= 3, what="the first finds its gate shut")
    after = first.said[before:]
    assert "lost" in after
    # One request may have been on its way when the process was stopped; a new one is never begun.
    assert after.count("wrote") <= 1
    assert "started" not in after
    assert lease(kubectl)["holderIdentity"] == "second"


def test_the_lease_is_what_kubernetes_tools_expect(participate, kubectl) -> None:
    until_writing(participate("first"))
    spec = lease(kubectl)
    assert spec["leaseDurationSeconds"] == 15
    assert spec["renewTime"].endswith("Z")
    assert spec["acquireTime"] <= spec["renewTime"]
    assert json.loads(kubectl("get", "lease", "e2e", "-o", "json"))["apiVersion"] == LEASE_API
