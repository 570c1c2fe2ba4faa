"""Leader election and its gate. The Lease is kept in memory here; e2e/test_leader.py uses a real API server."""

from __future__ import annotations

import asyncio
import copy
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from servingplan.clients.gate import NotLeading
from servingplan.clients.references import ObjectRef
from servingplan.controller.leader import AlwaysLeader, LeaseElection, LeaseTimes
from servingplan.controller.leader_gate import LeaderGate
from servingplan.errors import Conflict, NotFound, Unreachable

QUICK = LeaseTimes(lease_s=0.3, renew_within_s=0.2, retry_s=0.02)


class Leases:
    """One Lease with resourceVersions, as the API server keeps it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[str] = []
        self.reachable = True
        self.hangs = False

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.sleep(3600)
        if not self.reachable:
            raise Unreachable("the API server is gone")

    def _store(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        self.version += 1
        stored = copy.deepcopy(dict(manifest))
        stored["metadata"] = {**manifest["metadata"], "resourceVersion": str(self.version)}
        self.lease = stored
        self.writes.append(stored["spec"]["holderIdentity"])
        return copy.deepcopy(stored)

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        await self._answer()
        if self.lease is None:
            raise NotFound(f"{ref} does not exist")
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        await self._answer()
        if self.lease is not None:
            raise Conflict("exists")
        return self._store(manifest)

    async def replace(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        await self._answer()
        if self.lease is None:
            raise NotFound("gone")
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("changed")
        return self._store(manifest)


class Process:
    """One process that takes part in the election; a link of its own to the Leases can be cut."""

    def __init__(self, leases: Leases, identity: str, times: LeaseTimes = QUICK) -> None:
        self.link = Link(leases)
        self.history: list[str] = []
        self.election = LeaseElection(
            client=self.link, namespace="system", name="operator", identity=identity, times=times
        )
        self.task = asyncio.create_task(
            self.election.run(
                on_started=lambda: self.history.append("started"), on_lost=lambda: self.history.append("lost")
            )
        )

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Link:
    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.cut = False

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        return await self._through().get(ref)

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        return await self._through().create(manifest)

    async def replace(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        return await self._through().replace(manifest)

    def _through(self) -> Leases:
        if self.cut:
            raise Unreachable("cut")
        return self.leases


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def test_the_first_process_leads_and_the_second_waits() -> None:
    leases = Leases()
    a = Process(leases, "a")
    await until(lambda: a.election.is_leader)
    b = Process(leases, "b")
    await until(lambda: b.election.known and len(leases.writes) > 5)
    assert (a.election.is_leader, b.election.is_leader) == (True, False)
    assert b.election.holder == "a"
    assert set(leases.writes) == {"a"}
    await b.end()
    await a.end()


async def test_a_process_that_ends_gives_the_lease_back_and_the_other_counts_a_transition() -> None:
    leases = Leases()
    slow = LeaseTimes(lease_s=3600, renew_within_s=1800, retry_s=0.02)
    a = Process(leases, "a", slow)
    await until(lambda: a.election.is_leader)
    b = Process(leases, "b", slow)
    await until(lambda: b.election.known)
    await a.end()
    assert a.history == ["started", "lost"]
    await until(lambda: b.election.is_leader)  # within the hour that the Lease would have lasted
    assert leases.lease["spec"]["leaseTransitions"] == 1
    assert leases.writes[leases.writes.index("") + 1] == "b"
    await b.end()


async def test_a_leader_that_cannot_renew_stops_before_the_other_begins() -> None:
    leases = Leases()
    a = Process(leases, "a")
    await until(lambda: a.election.is_leader)
    b = Process(leases, "b")
    await until(lambda: b.election.known)
    a.link.cut = True
    led_together = False
    while not b.election.is_leader:
        await asyncio.sleep(0.001)
        led_together |= a.election.is_leader and b.election.is_leader
    assert not led_together
    assert a.history == ["started", "lost"]
    await b.end()
    await a.end()


async def test_a_leader_that_lost_the_lease_leads_again_when_it_can() -> None:
    leases = Leases()
    a = Process(leases, "a")
    await until(lambda: a.election.is_leader)
    leases.reachable = False
    await until(lambda: a.history[-1] == "lost")
    leases.reachable = True
    await until(lambda: a.history == ["started", "lost", "started"])
    assert leases.lease["spec"]["leaseTransitions"] == 0
    await a.end()


async def test_a_hanging_api_server_ends_leadership_too() -> None:
    leases = Leases()
    a = Process(leases, "a")
    await until(lambda: a.election.is_leader)
    leases.hangs = True
    await until(lambda: not a.election.is_leader)
    await until(lambda: len(a.history) > 1)
    assert a.history == ["started", "lost"]
    await a.end()


async def test_a_lease_taken_by_another_ends_leadership_at_once() -> None:
    leases = Leases()
    a = Process(leases, "a", LeaseTimes(lease_s=3600, renew_within_s=1800, retry_s=0.02))
    await until(lambda: a.election.is_leader)
    taken = await leases.get(a.election._ref)
    taken["spec"]["holderIdentity"] = "b"
    while True:
        try:
            await leases.replace(taken)
        except Conflict:
            taken["metadata"] = (await leases.get(a.election._ref))["metadata"]
        else:
            break
    await until(lambda: a.history == ["started", "lost"])
    assert a.election.holder == "b"
    await a.end()


async def test_a_deleted_lease_is_made_again_by_the_leader() -> None:
    leases = Leases()
    a = Process(leases, "a", LeaseTimes(lease_s=3600, renew_within_s=1800, retry_s=0.02))
    await until(lambda: a.election.is_leader)
    leases.lease = None
    await until(lambda: leases.lease is not None)
    assert a.history == ["started"]
    await a.end()


@pytest.mark.parametrize("renew_time", ["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_the_wall_clock_of_the_holder_counts_for_nothing(renew_time: str) -> None:
    leases = Leases()
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "renewTime": renew_time, "leaseTransitions": 4}
    await leases.create({"metadata": {"name": "operator"}, "spec": spec})
    now = [0.0]
    election = LeaseElection(
        client=leases, namespace="system", name="operator", identity="a", times=QUICK, monotonic=lambda: now[0]
    )
    assert await election._try() is False
    now[0] = 0.99
    assert await election._try() is False
    now[0] = 1.0
    assert await election._try() is True
    assert leases.lease["spec"]["leaseTransitions"] == 5


async def test_the_only_process_leads_without_a_lease() -> None:
    alone, history = AlwaysLeader(), []
    task = asyncio.create_task(
        alone.run(on_started=lambda: history.append("started"), on_lost=lambda: history.append("lost"))
    )
    await until(lambda: alone.is_leader)
    async with alone.gate.admit(1):
        pass
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert history == ["started", "lost"]
    assert not alone.is_leader


def test_times_that_would_let_two_lead_are_refused() -> None:
    with pytest.raises(ValueError, match="lease > renewal"):
        LeaseTimes(lease_s=10, renew_within_s=10)


# ---- the gate ----


@pytest.mark.parametrize(
    ("since_renewal_s", "timeout_s", "admitted"),
    [(0, 3, True), (7, 3, True), (7.001, 3, False), (9.5, 0.5, True), (10, 0.001, False), (40, 3, False)],
)
async def test_a_request_is_admitted_only_if_it_ends_ten_seconds_after_the_renewal(
    since_renewal_s: float, timeout_s: float, admitted: bool
) -> None:
    now = [100.0]
    gate = LeaderGate(renew_within_s=10, monotonic=lambda: now[0])
    gate.renew(100.0)
    now[0] += since_renewal_s
    try:
        async with gate.admit(timeout_s):
            passed = True
    except NotLeading:
        passed = False
    assert passed is admitted


async def test_the_gate_is_shut_before_the_first_renewal_and_after_it_was_shut() -> None:
    gate = LeaderGate(renew_within_s=10, monotonic=lambda: 0.0)
    for _ in range(2):
        with pytest.raises(NotLeading, match="nothing was sent"):
            async with gate.admit(1):
                pytest.fail("admitted")
        gate.renew(0.0)
        gate.shut()


async def test_losing_leadership_cancels_every_request_under_way() -> None:
    gate = LeaderGate(renew_within_s=3600)
    gate.renew(gate._monotonic())
    ended: list[str] = []

    async def request() -> None:
        try:
            async with gate.admit(1800):
                await asyncio.sleep(3600)
        except NotLeading as lost:
            ended.append(str(lost))

    requests = [asyncio.create_task(request()) for _ in range(3)]
    await asyncio.sleep(0.01)
    gate.shut()
    await asyncio.gather(*requests)
    assert ended == ["leadership was lost while a request was under way; it was cancelled"] * 3


async def test_a_slow_request_of_a_leader_is_a_time_out_and_no_loss() -> None:
    gate = LeaderGate(renew_within_s=3600)
    gate.renew(gate._monotonic())
    with pytest.raises(TimeoutError):
        async with gate.admit(0.01):
            await asyncio.sleep(3600)


async def test_shutting_the_gate_while_a_request_runs_into_its_time_out_is_no_error() -> None:
    gate = LeaderGate(renew_within_s=3600)
    gate.renew(gate._monotonic())

    async def request() -> None:
        async with gate.admit(0.01):
            try:
                await asyncio.sleep(3600)
            finally:
                gate.shut()  # as the election does when it loses the Lease in that very moment

    with pytest.raises(NotLeading):
        await request()


STOPPED_BETWEEN_CHECK_AND_WRITE = """
import asyncio, os, signal
from servingplan.clients.gate import NotLeading
from servingplan.controller.leader_gate import LeaderGate, since_boot_s

async def main():
    gate = LeaderGate(renew_within_s=0.5)
    gate.renew(since_boot_s())
    async with gate.admit(0.1):
        print("before: admitted", flush=True)
    try:
        async with gate.admit(0.1):
            os.kill(os.getpid(), signal.SIGSTOP)
            await asyncio.sleep(5)      # the server's answer
            print("under way: answered", flush=True)
    except (NotLeading, TimeoutError):
        print("under way: cancelled", flush=True)
    try:
        async with gate.admit(0.1):
            print("after: admitted", flush=True)
    except NotLeading:
        print("after: shut", flush=True)

asyncio.run(main())
"""


def test_a_process_that_was_stopped_finds_the_gate_shut_when_it_goes_on() -> None:
    source = os.pathsep.join(path for path in sys.path if path)
    child = subprocess.Popen(
        [sys.executable, "-c", STOPPED_BETWEEN_CHECK_AND_WRITE],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    try:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        time.sleep(0.6)  # longer than the leadership lasts
        os.kill(child.pid, signal.SIGCONT)
        output, _ = child.communicate(timeout=30)
    finally:
        child.kill()
    assert output.splitlines() == ["before: admitted", "under way: cancelled", "after: shut"]
