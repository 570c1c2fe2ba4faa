"""Two operators: one leads. Whatever happens to it, the other goes on, and nothing late is left behind.

Each story has two operators of an installation of its own, each behind a proxy, and a plan whose fall it disturbs. All
stories run at the same time: most of it is waiting for a Lease of 15 s. ``SERVINGPLAN_E2E_THOROUGH=yes`` stops leaders
at 20 instants for 40 s each, which takes a quarter of an hour.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.faults import Passed, Proxy, ReplicaLog, until_stopped
from e2e.support.operator import Installation, Operator, demo_clock
from servingplan.controller.clock import AcceleratedClock
from servingplan.localcluster.cluster import LocalCluster
from servingplan.localcluster.kubectl import Kubectl
from support.charts import CHART, run_helm
from support.specs import document, scheduled

THOROUGH = os.environ.get("SERVINGPLAN_E2E_THOROUGH", "") == "yes"
STOP_S = 40.0 if THOROUGH else 25.0
ROUNDS = range(5 if THOROUGH else 1)

FACTOR = 30
ZONE = ZoneInfo("Europe/Berlin")
BEGINS = "2026-12-01T03:00:00+01:00"
LEVELS = [8, 7, 6, 5, 4, 3, 2, 5]
"""Replicas of each plan: an override ends and they fall step by step; long after that, a smaller one begins."""

LEAD_WITHIN_S = 25.0
HAND_OVER_S = 10.0
"""Shorter than any Lease lasts: the next one need not wait for it."""


@dataclass(kw_only=True)
class Contender:
    """One of two operators, behind a proxy of its own."""

    operator: Operator
    proxy: Proxy

    @property
    def identity(self) -> str | None:
        """Its name in the Lease, once it has led."""
        found = re.findall(r"leading: (\S+) holds Lease", self.operator.log)
        return found[-1] if found else None

    def writes_since(self, at_s: float) -> list[Passed]:
        """What it wrote after a monotonic instant, but for the Lease."""
        return [passed for passed in self.proxy.writes if passed.at_s > at_s]


@dataclass(kw_only=True)
class Pair:
    """Two operators of one installation and one plan. The fall begins at `falls_at`."""

    installation: Installation
    name: str
    namespace: str
    cluster: LocalCluster
    clock: AcceleratedClock
    folder: Path
    open: ExitStack
    log: ReplicaLog
    contenders: list[Contender] = field(default_factory=list)
    falls_at: datetime | None = None

    @property
    def kubectl(self) -> Kubectl:
        return self.cluster.kubectl.with_options(f"--namespace={self.namespace}")

    def start(self) -> Contender:
        """Start another operator, which finds the Lease held unless it is the first."""
        proxy = self.open.enter_context(Proxy(self.installation.kubeconfig, self.folder))
        operator = Operator(
            Installation(kubeconfig=proxy.kubeconfig, home=self.installation.home),
            self.folder,
            namespace=self.namespace,
            options=(f"--installation={self.name}", f"--demo-clock={self.clock.describe()}"),
            env={"SERVINGPLAN_DEMO_CLOCK_ALLOWED": "yes"},
        )
        self.open.callback(_end, operator)
        self.contenders.append(Contender(operator=operator, proxy=proxy))
        operator.until_ready()
        return self.contenders[-1]

    @property
    def holder(self) -> str:
        lease = f"servingplan-{self.name}-operator"
        found = self.cluster.kubectl.json("get", "lease", lease, f"--namespace={self.installation.home}")
        holder: str = found["spec"].get("holderIdentity", "")
        return holder

    def until_leads(self, contender: Contender, *, timeout_s: float = LEAD_WITHIN_S) -> None:
        eventually(
            lambda: (self.holder, contender.identity),
            lambda seen: seen[0] == seen[1],
            what=f"{contender.operator.log_path} leads",
            timeout_s=timeout_s,
        )

    def apply_plan(self) -> None:
        """A plan at 8 replicas that begins to fall in a moment; its next rise is asked for when the fall is over."""
        now = self.clock.now().astimezone(ZONE).replace(tzinfo=None, second=0, microsecond=0)
        end = now + timedelta(minutes=4)
        overrides = [_override("high", now - timedelta(hours=1), end, 35)]
        rise = end + timedelta(minutes=40)
        overrides.append(_override("again", rise, rise + timedelta(hours=3), 18))
        # No pod ever starts here: a lead that learns would grow with the age of the rise, and status with it.
        lead = {"declared": "10m", "learn": False}
        schedule = scheduled(windows=None, overrides=overrides)
        self.kubectl.apply(document(namespace=self.namespace, leadTime=lead, **schedule))
        self.falls_at = end.replace(tzinfo=ZONE)

    def until_falls(self, *, plus_s: float = 0.0) -> None:
        assert self.falls_at is not None
        time.sleep(self.clock.seconds_until(self.falls_at) + plus_s)

    def until_day_is_over(self) -> None:
        """Every level came, one after the other, and status tells the last one."""
        eventually(lambda: self.log.levels, lambda levels: levels == LEVELS, what="the replicas", timeout_s=120)
        eventually(
            lambda: self.kubectl.json("get", "servingplan", "support-chat")["status"],
            lambda status: (status["desiredReplicas"], status["lastScale"]["to"], status["window"]) == (5, 5, "again"),
            what="the last rise in status",
        )


def _override(name: str, start: datetime, end: datetime, rate: int) -> dict:
    start_text, end_text = (when.isoformat(timespec="minutes") for when in (start, end))
    return {"name": name, "start": start_text, "end": end_text, "requestsPerSecond": rate}


@pytest.fixture
def pairs(local_cluster, installation, tmp_path) -> Iterator[Callable[[int], list[Pair]]]:
    """Makes pairs: the chart once more for each, beside `installation`, which brings the definition of plans."""
    assert installation.home
    with ExitStack() as stack:

        def make(count: int) -> list[Pair]:
            # Kept apart, so that they also end at the same time.
            opened = [ExitStack() for _ in range(count)]
            stack.callback(_all_at_once, [each.close for each in opened])
            return _all_at_once([lambda each=each: _make(local_cluster, tmp_path, each) for each in opened])

        yield make


def _all_at_once(work: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(max_workers=len(work)) as workers:
        return [done.result() for done in [workers.submit(each) for each in work]]


def _make(cluster: LocalCluster, folder: Path, stack: ExitStack) -> Pair:
    name = f"pair-{secrets.token_hex(3)}"
    home, namespace = f"servingplan-{name}", f"e2e-{name}"
    for each in (home, namespace):
        cluster.kubectl("create", "namespace", each)
        stack.callback(cluster.kubectl, "delete", "namespace", each, "--wait=false")
    _install(cluster, home, name)
    stack.callback(run_helm, "uninstall", "operator", f"--namespace={home}", _config(cluster))
    log = ReplicaLog(cluster.kubectl, namespace)
    stack.callback(log.end)
    made = Pair(
        installation=Installation(kubeconfig=cluster.kubeconfig_for(home, "operator-servingplan"), home=home),
        name=name,
        namespace=namespace,
        cluster=cluster,
        clock=demo_clock(BEGINS, FACTOR),
        folder=folder,
        open=stack,
        log=log,
    )
    first = made.start()
    made.until_leads(first)
    made.start()
    return made


def _install(cluster: LocalCluster, home: str, installation: str) -> None:
    values = ("crds.install=false", "admissionPolicy.enabled=false", "rbac.aggregate=false", "replicas=0")
    settings = [f"--set={value}" for value in (*values, f"installation={installation}")]
    run_helm("install", "operator", str(CHART), *settings, f"--namespace={home}", _config(cluster))


def _config(cluster: LocalCluster) -> str:
    return f"--kubeconfig={cluster.kubeconfig}"


def _end(operator: Operator) -> None:
    if operator.process.poll() is None:
        operator.signal(signal.SIGCONT)
        operator.kill()


# ---- stories ----


def leader_is_killed_and_the_next_one_ended(pair: Pair, draw: random.Random) -> None:
    """Killed, the Lease has to run out; ended in order, it is given back."""
    leader, follower = pair.contenders
    pair.until_falls(plus_s=draw.uniform(1, 15))
    assert follower.operator.get("/readyz").strip() == "ok"
    assert follower.proxy.writes == []
    leader.operator.kill()
    pair.until_leads(follower)
    pair.until_day_is_over()
    third = pair.start()
    assert third.proxy.writes == []
    assert follower.operator.stop() == 0
    pair.until_leads(third, timeout_s=HAND_OVER_S)
    assert third.proxy.writes == []


def leader_is_stopped_and_goes_on(pair: Pair, draw: random.Random) -> None:
    """Stopped past its Lease, it finds itself out of office and writes nothing more."""
    leader, follower = pair.contenders
    pair.until_falls(plus_s=draw.uniform(0, 18))
    _stop_for_a_while(pair, leader, follower)
    pair.until_day_is_over()


def scale_of_a_stopped_leader_comes_late(pair: Pair, draw: random.Random) -> None:
    """The leader is stopped between its check and its write to replicas; that write arrives when another leads."""
    leader, follower = pair.contenders
    pair.until_falls(plus_s=draw.uniform(0, 15))
    _write_comes_late(pair, leader, follower, "/deployments/support-chat/scale")


def status_of_a_stopped_leader_comes_late(pair: Pair, draw: random.Random) -> None:
    """The same with what it wanted to write into status: an older truth than what stands there."""
    leader, follower = pair.contenders
    pair.until_falls(plus_s=draw.uniform(0, 15))
    _write_comes_late(pair, leader, follower, "/servingplans/support-chat/status")


def _stop_for_a_while(pair: Pair, leader: Contender, follower: Contender) -> None:
    until_stopped(leader.operator.process)
    stopped_s = time.monotonic()
    pair.until_leads(follower)
    time.sleep(max(0.0, stopped_s + STOP_S - time.monotonic()))
    goes_on_s = time.monotonic()
    leader.operator.signal(signal.SIGCONT)
    eventually(lambda: leader.operator.log, lambda log: "leadership lost" in log, what="the old leader knows")
    assert leader.writes_since(goes_on_s) == []


def _write_comes_late(pair: Pair, leader: Contender, follower: Contender, path: str) -> None:
    held = leader.proxy.hold(lambda passed: passed.method == "PATCH" and passed.path.endswith(path))
    assert held.arrived.wait(timeout=30)
    until_stopped(leader.operator.process)
    stopped_s = time.monotonic()
    pair.until_leads(follower)
    eventually(
        lambda: [passed for passed in follower.proxy.writes if passed.path.endswith(path)],
        lambda writes: any(passed.code == 200 for passed in writes),
        what=f"the new leader's own write to {path}",
    )
    held.release.set()
    assert held.answered.wait(timeout=30)
    assert held.passed is not None
    assert held.passed.code == 409
    time.sleep(max(0.0, stopped_s + STOP_S - time.monotonic()))
    goes_on_s = time.monotonic()
    leader.operator.signal(signal.SIGCONT)
    pair.until_day_is_over()
    assert leader.writes_since(goes_on_s) == []


STORIES = (
    (
        leader_is_stopped_and_goes_on,
        leader_is_stopped_and_goes_on,
        scale_of_a_stopped_leader_comes_late,
        status_of_a_stopped_leader_comes_late,
    )
    if THOROUGH
    else (
        leader_is_killed_and_the_next_one_ended,
        leader_is_stopped_and_goes_on,
        scale_of_a_stopped_leader_comes_late,
        status_of_a_stopped_leader_comes_late,
    )
)


@pytest.mark.parametrize("seed", ROUNDS)
def test_whatever_happens_to_the_leader_the_other_goes_on(pairs, seed):
    made = pairs(len(STORIES))
    for pair in made:
        pair.apply_plan()
    with ThreadPoolExecutor(max_workers=len(STORIES)) as workers:
        told = [
            workers.submit(story, pair, random.Random(100 * seed + number))  # noqa: S311 - a test's choice
            for number, (story, pair) in enumerate(zip(STORIES, made, strict=True))
        ]
    failed = [
        f"{story.__name__}: {one.exception()}" for story, one in zip(STORIES, told, strict=True) if one.exception()
    ]
    assert not failed, "\n".join(failed)


# ---- one operator, and an API server that goes away ----


@pytest.fixture
def behind_a_proxy(local_cluster, installation, kubectl, namespace, tmp_path) -> Iterator[Contender]:
    """An operator that leads without a Lease, and looks at everything again only once an hour."""
    with Proxy(installation.kubeconfig, tmp_path) as proxy:
        operator = Operator(
            Installation(kubeconfig=proxy.kubeconfig, home=installation.home),
            tmp_path,
            namespace=namespace,
            options=("--no-leader-election", "--relist-seconds=3600"),
            env={},
        ).until_ready()
        kubectl.apply(document(namespace=namespace))
        until_seen(kubectl, 1)
        yield Contender(operator=operator, proxy=proxy)
        _end(operator)


def until_seen(kubectl: Kubectl, generation: int) -> None:
    eventually(
        lambda: kubectl.json("get", "servingplan", "support-chat").get("status", {}),
        lambda status: status.get("observedGeneration") == generation,
        what=f"generation {generation} in status",
        timeout_s=90,
    )


def edit(kubectl: Kubectl, step: int) -> None:
    patch = f'{{"spec": {{"scaleDown": {{"step": {step}}}}}}}'
    kubectl("patch", "servingplan", "support-chat", "--type=merge", f"--patch={patch}")


def test_the_operator_gets_over_broken_watches_and_an_api_server_that_goes_away(behind_a_proxy, kubectl):
    operator, proxy = behind_a_proxy.operator, behind_a_proxy.proxy
    for generation, code in ((2, 410), (3, 500)):
        assert proxy.break_watches(code) >= 5
        edit(kubectl, generation)
        until_seen(kubectl, generation)
    proxy.cut()
    edit(kubectl, 4)
    for _ in range(8):
        time.sleep(1)
        assert operator.get("/healthz").strip() == "ok"
    proxy.mend()
    until_seen(kubectl, 4)
    assert operator.get("/readyz").strip() == "ok"
    assert operator.process.poll() is None
    proxy.cut()
    assert operator.stop() == 0
