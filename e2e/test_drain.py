"""Falls on a real API server: who drains is who goes, a stop after any write converges, a raise takes it back.

The drainer is driven directly, with in-flight figures of the test and a clock of the test's own; pods, ReplicaSets,
Services and EndpointSlices are Kubernetes' own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from e2e.support.eventually import eventually
from e2e.support.plans import behind_service
from e2e.support.workloads import is_ready
from servingplan.clients.connection import Connection
from servingplan.clients.gate import OpenGate
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import SystemClock, system_now
from servingplan.controller.drain import Drainer
from servingplan.controller.pods import replicas
from servingplan.controller.targets import kind_of
from servingplan.errors import Conflict
from servingplan.planning.drain import SCRAPE
from servingplan.planning.observation import Observation
from servingplan.planning.signals import Lasting, Signals
from servingplan.rendering.deployment import deployment
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, PLAN_LABEL
from servingplan.rendering.service import service
from support.plans import a_plan
from support.signals import a_feedback

QUIET = Lasting(value=0, least=0)
BUSY = 5.0


class Stopped(Exception):
    """The operator ends here, before the write."""


class CountedWrites(OpenGate):
    """Lets so many writes through, None: all; counts them."""

    def __init__(self) -> None:
        self.sent = 0
        self.left: int | None = None

    def admit(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        """Permit a write, or stop the operator before it."""
        if self.left == 0:
            raise Stopped
        self.left = None if self.left is None else self.left - 1
        self.sent += 1
        return super().admit(timeout_s)


@pytest.fixture
async def connection(cluster) -> AsyncIterator[Connection]:
    made = Connection(load_endpoint(kubeconfig=Path(cluster.kubeconfig)), observe=lambda **_: None)
    yield made
    await made.close()


def signals(in_flight, at):
    return Signals(
        at=at, arrivals_2m=None, arrivals_10m=None, reach=timedelta(), dispersion=1, rejections=None,
        preemption_share=None, waiting=QUIET, waiting_most=0, in_flight=in_flight, in_flight_mean=QUIET, ttft=None,
        tpot=None, queue=None, prompt_mean=None, kv_usage=None, first_heard={},
    )  # fmt: skip


class Fall:
    """An owned engine's Deployment and Service, and an operator that only drains and scales."""

    def __init__(self, connection, kubectl, namespace, name):
        self.kubectl = kubectl
        self.plan = a_plan(namespace=namespace, name=name, feedback=a_feedback())
        self.gate = CountedWrites()
        self.client = KubernetesClient(
            session=connection.session, server=connection.server, field_manager="servingplan", gate=self.gate
        )
        self.ref = ObjectRef(api_version="apps/v1", kind="Deployment", name=name, namespace=namespace)
        self.now = system_now()
        self.restart()

    def restart(self):
        """The operator starts again, with nothing in its memory."""
        self.drainer = Drainer(client=self.client)

    async def begin(self):
        """Four replicas, one of which a ReplicaSet would remove first by itself; the name of another one."""
        self.kubectl.apply(deployment(self.plan, None, 4), service(self.plan, None))
        idle, first, *_ = sorted(pod["metadata"]["name"] for pod in await self.ready(4))
        self.kubectl("annotate", "pod", first, f"{DELETION_COST_ANNOTATION}=-1000")
        await self.until_served(4)
        return idle

    async def look(self, desired, idle):
        """One reconcile, a scrape after the last one: `idle` has nothing in flight, the others are busy."""
        self.now += SCRAPE
        kind = kind_of(self.ref)
        view = await kind.read(self.client, self.ref)
        found = replicas(self.pods(), SystemClock())
        in_flight = {each.name: 0.0 if each.name == idle else BUSY for each in found}
        heard = signals(in_flight, self.now)
        observation = Observation(current=view.current, ready=view.ready or 0, replicas=found, heard=heard)
        state = await self.drainer.step(self.plan, view, observation, desired=desired, now=self.now)
        if state.may_lower_to < observation.current:
            await self._scale(kind, state.may_lower_to)
        return state

    async def _scale(self, kind, count):
        async with asyncio.timeout(30):
            while True:
                view, sent = await kind.read(self.client, self.ref), self.gate.sent
                try:
                    await kind.write(self.client, view, count, force=True)
                except Conflict:  # the Deployment's controller wrote its status in between
                    self.gate.sent = sent
                else:
                    return

    def pods(self):
        return self.kubectl.json("get", "pods", f"--selector={PLAN_LABEL}={self.plan.name}")["items"]

    def names(self):
        return {pod["metadata"]["name"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]}

    def served(self):
        """The pods behind the Service."""
        return behind_service(self.kubectl, self.plan.name)

    async def ready(self, count):
        return await asyncio.to_thread(
            eventually,
            self.pods,
            lambda pods: sum(is_ready(pod) for pod in pods) == count == len(pods),
            what=f"{count} ready pods of {self.plan.name}",
        )

    async def until_served(self, count, without=None):
        return await asyncio.to_thread(
            eventually,
            self.served,
            lambda names: len(names) == count and without not in names,
            what=f"{count} pods behind the Service {self.plan.name}, without {without}",
        )


@pytest.fixture
def begin(connection, kubectl, namespace, gpu_nodes):
    """Starts a Deployment with four replicas: ``fall, idle = await begin("chat")``."""
    gpu_nodes(4, gpus=4)

    async def start(name):
        fall = Fall(connection, kubectl, namespace, name)
        return fall, await fall.begin()

    return start


async def test_who_drained_is_who_goes_after_it_left_the_service(begin) -> None:
    fall, idle = await begin("chat")
    everybody = fall.names()
    await fall.look(3, idle)
    await fall.until_served(3, without=idle)
    drained = next(pod for pod in fall.pods() if pod["metadata"]["name"] == idle)
    assert is_ready(drained)
    assert "deletionTimestamp" not in drained["metadata"]
    once, twice = await fall.look(3, idle), await fall.look(3, idle)
    assert (once.may_lower_to, twice.may_lower_to) == (4, 3)
    await fall.ready(3)
    assert fall.names() == everybody - {idle}
    assert fall.gate.sent == 3
    assert (await fall.look(3, None)).marks == ()


async def test_a_raise_in_the_middle_takes_the_replica_back_and_starts_none(begin) -> None:
    fall, idle = await begin("chat")
    everybody = fall.names()
    await fall.look(3, idle)
    await fall.until_served(3, without=idle)
    state = await fall.look(4, idle)
    assert (state.may_lower_to, len(state.marks)) == (4, 1)
    assert await fall.until_served(4) == everybody == fall.names()
    again = next(pod for pod in fall.pods() if pod["metadata"]["name"] == idle)
    assert not {key for key in again["metadata"].get("annotations", {}) if "draining" in key or "deletion-cost" in key}


@pytest.mark.parametrize("writes", range(3))
async def test_a_stop_before_any_write_ends_in_the_same_state_with_the_same_writes(begin, writes) -> None:
    fall, idle = await begin("chat")
    everybody, fall.gate.left = fall.names(), writes
    for _ in range(7):
        try:
            await fall.look(3, idle)
        except Stopped:
            fall.gate.left = None
            fall.restart()
    await fall.ready(3)
    assert fall.names() == everybody - {idle}
    assert fall.served() == fall.names()
    assert fall.gate.sent == 3
