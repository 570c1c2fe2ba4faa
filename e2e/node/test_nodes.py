"""Nodes that are drained, fall silent, or renew their replicas: the reserve absorbs it, and clients see nothing."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from e2e.node.fixtures import clear
from e2e.node.plans import NOON, complete, served, service_address
from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import behind_service, deployments, edit, pods, replica_sets, uids, until_condition, until_ready
from e2e.support.shared import Run, shared_run

REPLICAS = 3
EVERY_S = 0.1
READY_WITHIN_S = 120


class Client:
    """Asks the Service again and again, a connection for each request. A context manager."""

    def __init__(self, address: str) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self._address, self._ended = address, threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(30)

    def _ask(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                answer = complete(self._address, timeout_s=10)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            else:
                self.answers[answer.replica] += answer.whole
                if not answer.whole:
                    self.failures.append(f"HTTP {answer.status} of {answer.replica}")


@pytest.fixture(scope="module")
def running(cluster, installation, engine_image, tmp_path_factory) -> Iterator[Run]:
    """Three replicas of ``chat``, one of them in reserve, on two nodes and a day that stands still."""
    with shared_run(cluster, installation, tmp_path_factory.mktemp("nodes"), demo_clock(NOON, 1)) as run:
        run.kubectl.apply(served("chat", run.namespace, engine_image, replicas=REPLICAS))
        yield run
        clear(cluster, run.namespace)


@pytest.fixture
def kubectl(running):
    """In the namespace of the plan, all of whose replicas are ready and behind the Service."""
    until_ready(running.kubectl, REPLICAS, "chat", timeout_s=READY_WITHIN_S)
    until_condition(running.kubectl, "chat", "Ready", "True", "AsPlanned")
    eventually(lambda: behind_service(running.kubectl, "chat"), lambda found: len(found) == REPLICAS, what="endpoints")
    return running.kubectl


def fewest(kubectl, until: Callable[[], bool]) -> int:
    """The fewest replicas that were behind the Service at once until something holds."""
    seen = [len(behind_service(kubectl, "chat"))]
    deadline = time.monotonic() + 240
    while not until():
        assert time.monotonic() < deadline, f"not within 240 s; endpoints so far: {Counter(seen)}"
        seen.append(len(behind_service(kubectl, "chat")))
    return min(seen)


def on(kubectl, node):
    return [pod for pod in pods(kubectl, "chat") if pod["spec"].get("nodeName") == node.name]


def by_node(cluster, kubectl):
    """The nodes with the names of their replicas, the one with the fewest first."""
    found = {node: {pod["metadata"]["name"] for pod in on(kubectl, node)} for node in cluster.nodes}
    return sorted(found.items(), key=lambda item: len(item[1]))


def test_a_silent_node_costs_the_reserve_and_nothing_jumps(cluster, running, kubectl):
    (silent, gone), (_, others) = by_node(cluster, kubectl)
    assert len(gone) == 1
    before = uids(pods(kubectl, "chat"))
    try:
        silent.stop_kubelet()
        running.until("chat", "ReserveIntact", "False", "ReserveMissing")
        # The reserve is gone, by name; the need is there.
        message = eventually(
            lambda: running.until("chat", "ReserveIntact", "False")["message"],
            lambda found: silent.name in found,
            what=f"{silent.name} in the message",
        )
        assert message.startswith(f"0 of 1 in reserve: {REPLICAS - 1} of {REPLICAS} ready")
        assert gone <= set(re.findall(r"chat-[a-z0-9-]+", message))
        eventually(lambda: behind_service(kubectl, "chat"), others.__eq__, what=f"{others} alone behind the Service")
        address = service_address(kubectl, "chat")
        assert {complete(address).replica for _ in range(20)} == others
        assert running.plan("chat")["status"]["desiredReplicas"] == running.replicas("chat") == REPLICAS
    finally:
        silent.go_on()
    running.until("chat", "Ready", "True", "AsPlanned")
    assert uids(pods(kubectl, "chat")) == before
    # Created, and its replicas written once: nothing that the node did changed them.
    assert len(running.writes("chat", resource="deployments", subresource="scale")) <= 1


def test_a_node_drain_never_takes_more_than_the_reserve(cluster, kubectl):
    _, (drained, there) = by_node(cluster, kubectl)
    assert len(there) >= 2
    result: list[str] = []
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=servingplan.dev/plan")
    drain = threading.Thread(
        target=lambda: result.append(kubectl("drain", drained.name, *options, "--timeout=200s", timeout_s=220))
    )
    with Client(service_address(kubectl, "chat")) as client:
        drain.start()
        try:
            least = fewest(kubectl, until=lambda: not drain.is_alive())
        finally:
            drain.join()
            kubectl("uncordon", drained.name)
    assert result[0].count("evicted") == len(there)
    assert least == REPLICAS - 1
    assert not on(kubectl, drained)
    assert not client.failures, client.failures
    assert sum(client.answers.values()) > 0


def test_a_rolling_update_keeps_the_need_in_the_service_and_every_request_whole(running, kubectl):
    before, template = uids(pods(kubectl, "chat")), replica_sets(kubectl, "chat")

    def rolled() -> bool:
        # First the ReplicaSets: a status that is read later counts what they say.
        new = len(replica_sets(kubectl, "chat") - template) == 1
        chat = deployments(kubectl)["chat"]
        counted = chat["status"]["observedGeneration"] == chat["metadata"]["generation"]
        counts = {chat["status"].get(key) for key in ("replicas", "updatedReplicas", "readyReplicas")}
        return new and counted and counts == {REPLICAS}

    with Client(service_address(kubectl, "chat")) as client:
        edit(kubectl, "chat", engine={"maxNumSeqs": 64})
        assert fewest(kubectl, until=rolled) == REPLICAS - 1
    assert not client.failures, client.failures
    assert not uids(pods(kubectl, "chat")) & before
    assert sum(client.answers.values()) > 0
    running.until("chat", "Ready", "True", "AsPlanned")
