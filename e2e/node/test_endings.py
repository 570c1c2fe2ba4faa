"""How a replica ends: what a kubelet does in the rendered grace, in which order, and what clients see of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from e2e.node.fixtures import clear
from e2e.node.plans import DRAIN_S, NOON, Log, Streams, complete, refuses, served
from e2e.support.eventually import eventually
from e2e.support.operator import demo_clock
from e2e.support.plans import pods, ready_pods, until_ready
from e2e.support.shared import Run, shared_run
from servingplan.rendering.probes import PRE_STOP, TEARDOWN

TOKEN_S = 0.1
BRIEF_S = 2
READY_WITHIN_S = 120
"""A startup probe looks every ten seconds."""


@pytest.fixture(scope="module")
def running(cluster, installation, engine_image, tmp_path_factory) -> Iterator[Run]:
    """Two plans with two replicas each, on a day that stands still; ``brief`` gives its answers little time to end."""
    with shared_run(cluster, installation, tmp_path_factory.mktemp("endings"), demo_clock(NOON, 1)) as run:
        env = {"TOKEN_S": str(TOKEN_S)}
        for name, drain_s in (("chat", DRAIN_S), ("brief", BRIEF_S)):
            engine = {"drainTimeout": f"{drain_s}s"}
            run.kubectl.apply(served(name, run.namespace, engine_image, replicas=2, env=env, engine=engine))
        until_ready(run.kubectl, 2, "chat", "brief", timeout_s=READY_WITHIN_S)
        yield run
        clear(cluster, run.namespace)


def one_of(kubectl, name):
    """A ready replica of a plan: its name and its address."""
    pod = ready_pods(kubectl, name)[0]
    return pod["metadata"]["name"], pod["status"]["podIP"]


def tokens_within(seconds):
    return math.ceil(seconds / TOKEN_S)


def test_a_deleted_replica_serves_through_pre_stop_then_finishes_what_it_has_and_ends(running, tmp_path):
    kubectl = running.kubectl
    leaving, address = one_of(kubectl, "chat")
    log, streams = Log(kubectl, leaving, tmp_path), Streams()
    pod = kubectl.json("get", "pod", leaving)
    grace = PRE_STOP + timedelta(seconds=DRAIN_S) + TEARDOWN
    assert pod["spec"]["terminationGracePeriodSeconds"] == grace.total_seconds()

    # In flight when the signal comes, and for half of the drain.
    tokens = tokens_within(PRE_STOP.total_seconds() + DRAIN_S / 2)
    streams.begin(address, 5, tokens=tokens)
    deleted_at = time.time()
    kubectl("delete", "pod", leaving, "--wait=false")
    late = complete(address)
    assert late.whole
    assert not log.events("sigterm")
    signalled = log.until("sigterm")
    assert signalled["at"] - deleted_at >= PRE_STOP.total_seconds()
    assert signalled["running"] == 5
    assert complete(address).status == 500
    ended = log.until("end")
    assert ended["running"] == 0
    assert [(answer.whole, answer.tokens) for answer in streams.end()] == [(True, tokens)] * 5
    eventually(lambda: refuses(address), what=f"the end of {leaving}")
    assert leaving not in {found["metadata"]["name"] for found in pods(kubectl, "chat")}


def test_an_answer_longer_than_the_drain_is_cut_by_the_engine_and_not_by_the_kubelet(running, tmp_path):
    """So the grace is long enough: the engine's own limit comes first, and it ends in order."""
    kubectl = running.kubectl
    leaving, address = one_of(kubectl, "brief")
    log, streams = Log(kubectl, leaving, tmp_path), Streams()
    streams.begin(address, 2, tokens=tokens_within(60))
    kubectl("delete", "pod", leaving, "--wait=false")
    signalled, ended = log.until("sigterm"), log.until("end")
    assert ended["at"] - signalled["at"] >= BRIEF_S
    assert signalled["running"] == ended["running"] == 2
    assert [answer.whole for answer in streams.end()] == [False, False]
    eventually(lambda: kubectl("get", "pod", leaving, "--ignore-not-found"), lambda found: not found, what="its end")
