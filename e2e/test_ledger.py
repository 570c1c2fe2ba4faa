"""The ledger on a real API server: it explains every instant of a day, and costs nothing while nothing changes."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from e2e.support.cli import Cli
from e2e.support.eventually import eventually
from e2e.support.faults import CountingGate, JumpingClock, one_process
from e2e.support.operator import demo_clock
from servingplan.controller.clock import AcceleratedClock
from servingplan.controller.store import Key
from servingplan.localcluster.kubectl import Kubectl
from servingplan.planning.ledger import Entry, in_force
from servingplan.rendering.ledger import entries_of, ledger_name
from support.specs import document, scheduled

ZONE = ZoneInfo("Europe/Berlin")
NAME = "support-chat"
LEDGER = ledger_name(NAME)
FACTOR = 90
MORNING = "2026-12-01T06:00:00+01:00"
SLACK = timedelta(minutes=2)
"""A write takes a moment, and the clock is fast."""


def ledger(kubectl: Kubectl) -> tuple[Entry, ...]:
    """What is written down of the plan; nothing before the first decision."""
    found = kubectl.json("get", "configmaps")["items"]
    return entries_of(next((each["binaryData"] for each in found if each["metadata"]["name"] == LEDGER), {}))


def wall(instant: datetime) -> str:
    return instant.astimezone(ZONE).replace(tzinfo=None).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The replicas that were set while the clock went from one instant to another."""

    since: datetime
    until: datetime
    replicas: int


def sampled(kubectl: Kubectl, clock: AcceleratedClock, until: datetime) -> list[Sample]:
    found = []
    while clock.now() < until:
        since = clock.now()
        replicas = kubectl.json("get", "deployment", NAME)["spec"]["replicas"]
        found.append(Sample(since=since, until=clock.now(), replicas=replicas))
        time.sleep(0.2)
    return found


def held(entries: tuple[Entry, ...], at: datetime) -> int | None:
    found = in_force(entries, at)
    return None if found is None else found.entry.current


@pytest.fixture
def written(local_cluster, installation, namespace) -> Callable[[datetime], list[str]]:
    """What the operator wrote in the test's namespace since a real instant, the Lease left out."""
    user = f"system:serviceaccount:{installation.home}:operator-servingplan"

    def since(instant: datetime) -> list[str]:
        entries = local_cluster.audit.entries(since=instant, user=user)
        return [write.resource for write in entries if write.namespace == namespace and write.resource != "leases"]

    return since


def test_every_instant_of_a_day_is_explained_and_a_restart_writes_nothing(
    kubectl, namespace, gpu_nodes, run_operator, cli: Cli, written
):
    gpu_nodes(2, gpus=4)
    clock = demo_clock(MORNING, FACTOR)
    operator = run_operator(clock=clock)
    begin = clock.now().replace(second=0, microsecond=0)
    start, end = begin + timedelta(minutes=30), begin + timedelta(minutes=50)
    high = {"name": "high", "start": wall(start)[:16], "end": wall(end)[:16], "requestsPerSecond": 18}
    kubectl.apply(document(namespace=namespace, **scheduled(windows=None, overrides=[high])))
    eventually(lambda: ledger(kubectl), what="the first decision")
    samples = sampled(kubectl, clock, end + timedelta(minutes=14))

    entries = ledger(kubectl)
    told = [sample for sample in samples if _settled(entries, sample)]
    assert {sample.replicas for sample in told} == {2, 5}
    assert len(told) > len(samples) / 2
    wrong = [sample for sample in told if held(entries, sample.since) != sample.replicas]
    assert not wrong
    assert [(entry.before, entry.desired) for entry in entries if entry.before != entry.desired] == [
        (None, 2), (2, 5), (5, 4), (4, 3), (3, 2),
    ]  # fmt: skip

    ramp = cli("explain", NAME, "--at", wall(start - timedelta(minutes=5)), "-o", "json").json
    assert (ramp["entry"]["desired"], ramp["entry"]["required"]) == (5, 2)
    assert ramp["entry"]["because"] == "ready before override high"
    assert ramp["entry"]["trail"][0]["name"] == "demand"
    assert start <= datetime.fromisoformat(ramp["until"]) < start + SLACK
    before = cli("explain", NAME, "--at", wall(begin - timedelta(hours=1)))
    assert before.code == 1
    assert "the ledger of" in before.err
    assert "begins Tue 1 Dec 06:" in before.err
    listed = cli("explain", NAME, "--since", wall(begin))
    assert "2 → 5" in listed.out
    assert "override high ends" in listed.out

    assert operator.stop() == 0
    restarted = datetime.now(UTC)
    run_operator(clock=clock)
    time.sleep(3)
    assert written(restarted) == []


def _settled(entries: tuple[Entry, ...], sample: Sample) -> bool:
    """Whether nothing is decided near a sample, so that what is set and what is written down must agree."""
    near = (entry for entry in entries if sample.since - SLACK <= entry.time <= sample.until + SLACK)
    return held(entries, sample.since) is not None and all(entry.current == entry.before for entry in near)


def test_what_others_did_and_why_nothing_was_done_is_explained(kubectl, namespace, gpu_nodes, run_operator, cli: Cli):
    gpu_nodes(2, gpus=4)
    clock = demo_clock("2026-12-01T12:00:00+01:00", 60)
    run_operator(clock=clock)
    plan = document(namespace=namespace)
    kubectl.apply(plan)

    def until(what: str, wanted: Callable[[Entry], bool]) -> None:
        eventually(lambda: ledger(kubectl), lambda entries: bool(entries) and wanted(entries[-1]), what=what)

    until("five are asked for", lambda entry: entry.desired == 5)
    kubectl.apply(plan | {"spec": plan["spec"] | {"suspend": True}})
    until("suspended", lambda entry: entry.reason == "Suspended")
    kubectl("scale", "deployment", NAME, "--replicas=3")
    until("three were set", lambda entry: entry.current == 3)
    three = wall(clock.now())
    suspended = cli("explain", NAME, "--at", three)
    assert "3 replicas" in suspended.out, suspended.err
    assert "suspended since Tue 1 Dec 12:" in suspended.out
    assert "5 were asked for, 3 were set" in suspended.out

    kubectl.apply(plan | {"spec": plan["spec"] | {"schedule": plan["spec"]["schedule"] | {"timeZone": "Europe/Berln"}}})
    until("invalid", lambda entry: entry.reason == "Invalid")
    broken = wall(clock.now())
    invalid = cli("explain", NAME, "--at", f"{broken}+01:00", "-o", "json").json
    assert "invalid since" in invalid["remarks"][0]
    assert "Europe/Berln" in invalid["remarks"][0]
    assert "the 3 that were set stayed" in invalid["remarks"][1]


# ---- day by day, as fast as it goes ----


async def processes(installation, key: Key, clock: JumpingClock, *instants: str, days: int = 35) -> None:
    """A fresh process at each of these instants."""
    for instant in instants:
        clock.jump(datetime.fromisoformat(instant))
        await one_process(installation.kubeconfig, key, clock, CountingGate(), ledger_days=days)


async def test_the_last_days_are_kept_and_the_ledger_goes_with_its_plan(kubectl, namespace, installation, client):
    key = Key(namespace, NAME)
    await client.apply(document(namespace=namespace))
    clock = JumpingClock()
    days = [f"2026-12-{day:02d}" for day in (1, 2, 3, 4)]
    for day in days:
        instants = [f"{day}T{at}:00+01:00" for at in ("07:48", "08:00", "20:00", "20:03", "20:06")]
        await processes(installation, key, clock, *instants, days=2)

    kept = kubectl.json("get", "configmap", LEDGER, "--show-managed-fields")
    assert sorted(kept["binaryData"]) == days[-2:]
    assert {entry["manager"] for entry in kept["metadata"]["managedFields"]} == {"servingplan"}
    assert [entry.desired for entry in ledger(kubectl)] == [5, 5, 4, 3, 2] * 2

    kubectl("delete", "splan", NAME)
    eventually(
        lambda: kubectl("get", "configmaps", "-o", "name"),
        lambda names: LEDGER not in names,
        what="no ledger without its plan",
        timeout_s=60,
    )


async def test_a_ledger_that_may_not_be_written_hurts_no_decision_and_is_made_up_for(
    kubectl, namespace, installation, client
):
    eventually(lambda: kubectl("get", "configmaps", "-o", "name"), lambda names: "kube-root-ca" in names, what="its CA")
    kubectl("create", "quota", "none", "--hard=configmaps=1")
    eventually(
        lambda: kubectl.json("get", "quota", "none").get("status", {}).get("used"),
        lambda used: bool(used) and used["configmaps"] == "1",
        what="a quota that is used up",
    )
    key, clock = Key(namespace, NAME), JumpingClock()
    await client.apply(document(namespace=namespace))
    await processes(installation, key, clock, "2026-12-01T07:48:00+01:00")
    assert kubectl.json("get", "deployment", NAME)["spec"]["replicas"] == 5
    assert kubectl.json("get", "splan", NAME)["status"]["desiredReplicas"] == 5
    events = kubectl.json("get", "events.events.k8s.io")["items"]
    (told,) = (event["note"] for event in events if event["reason"] == "LedgerNotWritten")
    assert "exceeded quota" in told

    kubectl("delete", "quota", "none")
    await processes(installation, key, clock, "2026-12-01T20:00:00+01:00")
    assert [entry.desired for entry in ledger(kubectl)] == [4]


async def test_two_processes_that_write_at_the_same_time_lose_nothing_of_each_other(
    kubectl, namespace, installation, client
):
    key, clock = Key(namespace, NAME), JumpingClock()
    await client.apply(document(namespace=namespace))
    await processes(installation, key, clock, "2026-12-01T07:00:00+01:00")

    def other() -> None:
        """Another writer, between our look and our write."""
        live = kubectl.json("get", "configmap", LEDGER)
        patch = {"binaryData": {"2026-11-30": live["binaryData"]["2026-12-01"]}}
        kubectl("patch", "configmap", LEDGER, "--type=merge", "-p", json.dumps(patch))

    clock.jump(datetime.fromisoformat("2026-12-01T07:48:00+01:00"))
    await one_process(installation.kubeconfig, key, clock, _Beside(other))
    pages: dict[str, Any] = kubectl.json("get", "configmap", LEDGER)["binaryData"]
    assert sorted(pages) == ["2026-11-30", "2026-12-01"]
    assert [entry.desired for entry in entries_of({"2026-12-01": pages["2026-12-01"]})] == [2, 5]


class _Beside(CountingGate):
    """Lets somebody else write between the look and the second write of a process, which is that of its ledger."""

    def __init__(self, other: Callable[[], None]) -> None:
        super().__init__()
        self._other = other

    @contextlib.asynccontextmanager
    async def admit(self, timeout_s: float) -> AsyncIterator[None]:
        """As `MutationGate`."""
        if self.writes == 1:
            self._other()
        async with super().admit(timeout_s):
            yield
