"""A process that ends at any moment: the same end state as without, nothing lowered on the way, nothing replayed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from e2e.support.eventually import eventually
from e2e.support.faults import CountingGate, Interrupted, JumpingClock, ReplicaLog, one_process
from e2e.support.operator import Operator, demo_clock, sleep_until
from e2e.support.workloads import condition
from servingplan import __version__
from servingplan.api.v1alpha1 import API_VERSION, KIND
from servingplan.clients.connection import Connection
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.controller.clock import AcceleratedClock
from servingplan.controller.store import Key
from servingplan.errors import Conflict
from servingplan.localcluster.kubectl import Kubectl
from servingplan.rendering.ledger import entries_of, ledger_name
from servingplan.rendering.metadata import PLAN_LABEL
from support.specs import document, scheduled

# ---- before and after each write of a reconcile ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A reconcile to be interrupted, at an instant. before: those that come first, uninterrupted.

    taken_to: what somebody else scales the target to just before. replicas: what it ends at. told: how the event says
    it.
    """

    at: str
    before: tuple[str, ...] = ()
    taken_to: int | None = None
    replicas: int
    told: str


NOTHING_LEARNED = {"declared": "10m", "margin": "20%", "learn": False}
SLOWLY = {"step": 1, "every": "1h"}
"""No second step comes due while a slow machine runs a scenario."""

SCENARIOS = {
    "creation": Scenario(at="2026-12-01T03:00:00+01:00", replicas=2, told="replicas 0 to 2"),
    "rise": Scenario(
        before=("2026-12-01T03:00:00+01:00",), at="2026-12-01T07:48:10+01:00", replicas=5, told="replicas 2 to 5"
    ),
    "fall-step": Scenario(
        before=("2026-12-01T12:00:00+01:00",), at="2026-12-01T20:01:00+01:00", replicas=4, told="replicas 5 to 4"
    ),
    "second-fall-step": Scenario(
        before=("2026-12-01T12:00:00+01:00", "2026-12-01T20:01:00+01:00"),
        at="2026-12-01T21:30:00+01:00",
        replicas=3,
        told="replicas 4 to 3",
    ),
    "contest": Scenario(
        before=("2026-12-01T12:00:00+01:00",),
        at="2026-12-01T12:30:00+01:00",
        taken_to=1,
        replicas=5,
        told="replicas 1 to 5",
    ),
}


@dataclass(kw_only=True)
class Run:
    """What one run of a scenario left: the objects, and on the way the replicas after each write and the events.

    forgotten: it was stopped when a contest was answered and not yet written down.
    """

    writes: int = 0
    forgotten: bool = False
    replicas: list[int] = field(default_factory=list)
    objects: dict = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)


class Stage:
    """Runs scenarios in one namespace: the operator's parts under the chart's account, the rest as administrator."""

    def __init__(self, client: KubernetesClient, kubeconfig, namespace: str) -> None:
        self._client = client
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._numbers = itertools.count(1)
        self._clocks: dict[Key, JumpingClock] = {}

    async def run(self, scenario: Scenario, *, end_at: int | None = None, sent: bool = False) -> Run:
        """A scenario on a plan of its own; with `end_at`, the process ends at that write and a new one follows."""
        key = Key(self._namespace, f"plan-{next(self._numbers)}")
        # The clock jumps while nothing ever starts: that is no lead to learn from.
        plan = document(name=key.name, namespace=key.namespace, scaleDown=SLOWLY, leadTime=NOTHING_LEARNED)
        await self._client.apply(plan, manager="user")
        clock = self._clocks[key] = JumpingClock()
        for earlier in scenario.before:
            clock.jump(datetime.fromisoformat(earlier))
            await self._process(key, CountingGate())
        if scenario.taken_to is not None:
            await self._take(key, scenario.taken_to)
        clock.jump(datetime.fromisoformat(scenario.at))
        run = Run()
        told_before = await self._events(key)

        async def note() -> None:
            live = await self._client.get(_deployment(key))
            run.replicas.append(live["spec"]["replicas"])

        gate = CountingGate(end_at=end_at, sent=sent, after_write=note)
        try:
            await self._process(key, gate)
        except Interrupted:
            run.forgotten = scenario.taken_to is not None and await self._raised_unnoted(key, scenario.replicas)
            await self._process(key, CountingGate(after_write=note))
        run.writes = gate.writes
        await self._settle(key, scenario)
        run.objects = await self._objects(key)
        run.events = await self._events(key) - told_before
        return run

    async def _settle(self, key: Key, scenario: Scenario) -> None:
        """Until all pods are where they stay, and processes find nothing to do; there is no node for them."""
        async with asyncio.timeout(60):
            while not await self._waits_for_nodes(key, scenario.replicas):
                await asyncio.sleep(0.1)
            writes = 1
            while writes:
                gate = CountingGate()
                await self._process(key, gate)
                writes = gate.writes

    async def _waits_for_nodes(self, key: Key, replicas: int) -> bool:
        selector = f"{PLAN_LABEL}={key.name}"
        pods = (await self._client.list("v1", "Pod", key.namespace, label_selector=selector)).items
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return len(alive) == replicas and all(condition(pod, "PodScheduled") for pod in alive)

    async def _process(self, key: Key, gate: CountingGate) -> None:
        await one_process(self._kubeconfig, key, self._clocks[key], gate)

    async def _raised_unnoted(self, key: Key, replicas: int) -> bool:
        """Whether the raise was done, and status does not yet say who made it necessary."""
        plan = await self._client.get(ObjectRef(api_version=API_VERSION, kind=KIND, **_named(key)))
        live = await self._client.get(_deployment(key))
        return live["spec"]["replicas"] == replicas and "contested" not in plan["status"]

    async def _take(self, key: Key, replicas: int) -> None:
        """Scale as kubectl does: again where the Deployment's own controller wrote in between."""
        while True:
            live = await self._client.get(_deployment(key))
            version = live["metadata"]["resourceVersion"]
            with contextlib.suppress(Conflict):
                await self._client.merge_patch_scale(
                    _deployment(key), replicas=replicas, resource_version=version, manager="kubectl"
                )
                return

    async def _objects(self, key: Key) -> dict:
        plan = await self._client.get(ObjectRef(api_version=API_VERSION, kind=KIND, **_named(key)))
        deployment = await self._client.get(_deployment(key))
        service = await self._client.get(ObjectRef(api_version="v1", kind="Service", **_named(key)))
        budget = await self._client.get(ObjectRef(api_version="policy/v1", kind="PodDisruptionBudget", **_named(key)))
        place = {"name": ledger_name(key.name), "namespace": key.namespace}
        ledger = await self._client.get(ObjectRef(api_version="v1", kind="ConfigMap", **place))
        return {
            "deployment": _without_names(deployment["spec"], key),
            "owners": sorted(
                (entry["manager"], entry["operation"], entry.get("subresource", ""))
                for entry in deployment["metadata"]["managedFields"]
                if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
            ),
            "service": _without_names({k: service["spec"][k] for k in ("ports", "selector", "type")}, key),
            "budget": _without_names(budget["spec"], key),
            "status": {
                name: plan["status"].get(name)
                for name in ("desiredReplicas", "currentReplicas", "floorReplicas", "window")
            },
            "ledger": [(entry.before, entry.desired, entry.current) for entry in entries_of(ledger["binaryData"])],
            "next": {k: plan["status"]["nextChange"][k] for k in ("replicas", "because")},
            "last scale": plan["status"]["lastScale"]["to"],
            "contested": {k: plan["status"].get("contested", {}).get(k) for k in ("manager", "value", "raises")},
            "conditions": [(c["type"], c["status"], c["reason"]) for c in plan["status"]["conditions"]],
        }

    async def _events(self, key: Key) -> Counter[str]:
        found = await self._client.list("events.k8s.io/v1", "Event", key.namespace)
        return Counter(
            event["note"].partition(":")[0]
            for event in found.items
            if event["regarding"]["name"] == key.name and event["regarding"]["kind"] == KIND
        )


def _named(key: Key) -> dict[str, str]:
    return {"name": key.name, "namespace": key.namespace}


def _deployment(key: Key) -> ObjectRef:
    return ObjectRef(api_version="apps/v1", kind="Deployment", **_named(key))


def _without_names(value, key: Key):
    """The same for every plan."""
    if isinstance(value, dict):
        return {name: _without_names(item, key) for name, item in value.items() if not name.endswith("-hash")}
    if isinstance(value, list):
        return [_without_names(item, key) for item in value]
    return value.replace(key.name, "NAME") if isinstance(value, str) else value


def _without_contest(objects: dict) -> dict:
    conditions = [condition for condition in objects["conditions"] if condition[0] != "ReplicasOwned"]
    return objects | {"conditions": conditions, "contested": None, "ledger": None}


def _levels(replicas: list[int]) -> list[int]:
    return [value for value, _ in itertools.groupby(replicas)]


@pytest.fixture
async def stage(cluster, installation, namespace):
    connection = Connection(load_endpoint(kubeconfig=cluster.kubeconfig), user_agent=f"test/{__version__}")
    client = KubernetesClient(session=connection.session, server=connection.server, field_manager="test")
    yield Stage(client, installation.kubeconfig, namespace)
    await connection.close()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_a_stop_at_any_write_of_a_reconcile_changes_nothing_in_the_end(stage, scenario):
    undisturbed = await stage.run(scenario)
    assert undisturbed.objects["deployment"]["replicas"] == scenario.replicas
    assert undisturbed.writes >= 2
    for end_at, sent in itertools.product(range(1, undisturbed.writes + 1), (False, True)):
        stopped = await stage.run(scenario, end_at=end_at, sent=sent)
        where = f"stopped {'after' if sent else 'before'} write {end_at} of {undisturbed.writes}"
        if stopped.forgotten:
            # Who made the raise necessary was not written down, and nothing else tells it.
            assert _without_contest(stopped.objects) == _without_contest(undisturbed.objects), where
        else:
            assert stopped.objects == undisturbed.objects, where
        assert _levels(stopped.replicas) == _levels(undisturbed.replicas), where
        # What was told is told once; a stop may leave a note untold.
        assert stopped.events <= undisturbed.events | Counter([scenario.told]), where


# ---- SIGKILL at random instants of a day ----

FACTOR = 90
SEED = 20261201
KILLS = 10
ZONE = ZoneInfo("Europe/Berlin")
NIGHT = "2026-12-01T01:00:00+01:00"
LEVELS = [2, 5, 7, 6, 5, 4, 3, 2]
"""Replicas of that day: the ramp, the override on top of it, and both falls, step by step."""


@dataclass(kw_only=True)
class Site:
    """A namespace with a plan, and the operators that run there one after the other."""

    namespace: str
    kubectl: Kubectl
    start: Callable[[], Operator]
    operator: Operator
    log: ReplicaLog

    def kill(self) -> None:
        self.operator.kill()
        self.operator = self.start()


@pytest.fixture
def sites(local_cluster, installation, tmp_path) -> Iterator[Callable[[AcceleratedClock, int], list[Site]]]:
    """Makes namespaces, with an operator at work in each."""
    made: list[Site] = []

    def make_one(clock: AcceleratedClock) -> None:
        namespace = f"e2e-{secrets.token_hex(4)}"
        local_cluster.kubectl("create", "namespace", namespace)

        def start() -> Operator:
            return Operator(
                installation,
                tmp_path,
                namespace=namespace,
                options=("--no-leader-election", f"--demo-clock={clock.describe()}"),
                env={"SERVINGPLAN_DEMO_CLOCK_ALLOWED": "yes"},
            )

        kubectl = local_cluster.kubectl.with_options(f"--namespace={namespace}")
        log = ReplicaLog(local_cluster.kubectl, namespace)
        made.append(Site(namespace=namespace, kubectl=kubectl, start=start, operator=start(), log=log))

    def make(clock: AcceleratedClock, count: int) -> list[Site]:
        for _ in range(count):
            make_one(clock)
        for site in made:
            site.operator.until_ready()
        return made

    yield make
    for site in made:
        site.operator.kill()
        site.log.end()
        local_cluster.kubectl("delete", "namespace", site.namespace, "--wait=false")


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of 150 minutes: a rise to 5 that is asked for after 28, one to 7 on top of it, and both ends."""

    begin: datetime

    @property
    def spec(self) -> dict:
        overrides = [self._override("day", 40, 130, 18), self._override("launch", 70, 100, 30)]
        return scheduled(windows=None, overrides=overrides)

    def _override(self, name: str, start: int, end: int, rate: int) -> dict:
        start_text, end_text = (self.at(minute).replace(tzinfo=None).isoformat() for minute in (start, end))
        return {"name": name, "start": start_text[:16], "end": end_text[:16], "requestsPerSecond": rate}

    def at(self, minute: float) -> datetime:
        return self.begin + timedelta(minutes=minute)

    def random_instants(self, seed: int) -> list[datetime]:
        """One in each tenth of the day, so that there is a process between two of them for at least a moment."""
        draw = random.Random(seed)  # noqa: S311 - a test's choice
        return [self.at(14 * (tenth + draw.random())) for tenth in range(KILLS)]


def test_a_day_with_thirty_kills_goes_as_a_day_without(gpu_nodes, sites):
    gpu_nodes(4, gpus=8)
    clock = demo_clock(NIGHT, FACTOR)
    undisturbed, *killed = sites(clock, 4)
    day = Day(begin=clock.now().astimezone(ZONE).replace(second=0, microsecond=0))
    for site in (undisturbed, *killed):
        site.kubectl.apply(document(namespace=site.namespace, **day.spec))
    for when, number in sorted((when, n) for n in range(3) for when in day.random_instants(SEED + n)):
        sleep_until(clock, when.isoformat())
        killed[number].kill()
    for site in (undisturbed, *killed):
        eventually(lambda site=site: site.log.levels, lambda levels: levels == LEVELS, what="the day's replicas")
        eventually(lambda site=site: _settled(site.kubectl), lambda found: found == (2, 2, 2), what="two in status")
    expected = undisturbed.log.falls()
    for site in killed:
        for step, times in site.log.falls().items():
            # A stop may make a step late; it makes none early. Half a second for two watches to tell the same.
            assert times[0] > expected[step][0] - 0.5, f"{step} came before its time"
        notes = _scale_events(site.kubectl)
        assert max(notes.values()) == 1, notes
        assert set(notes) <= {f"replicas {a} to {b}" for a, b in itertools.pairwise([0, *LEVELS])}


def _settled(kubectl: Kubectl) -> tuple[int, int, int]:
    status = kubectl.json("get", "servingplan", "support-chat")["status"]
    return status["desiredReplicas"], status["currentReplicas"], status["readyReplicas"]


def _scale_events(kubectl: Kubectl) -> Counter[str]:
    events = kubectl.json("get", "events.events.k8s.io")["items"]
    notes = [event["note"].partition(":")[0] for event in events if event["regarding"]["kind"] == KIND]
    return Counter(note for note in notes if note.startswith("replicas "))
