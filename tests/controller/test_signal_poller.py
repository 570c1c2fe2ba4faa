"""The poller: every source once per poll for all plans, and a reason wherever there are no signals."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.engine_series import Limits
from servingplan.clients.sources import Source
from servingplan.controller.clock import AcceleratedClock, SystemClock, system_now
from servingplan.controller.signals import (
    PODS_OF_A_PLAN_AT_ONCE,
    EnginePod,
    Following,
    SignalPoller,
    following,
    serving_pods,
)
from servingplan.controller.store import Key
from servingplan.planning.plan import Feedback, Objective, PrometheusSource, RaiseWhen, ScrapeSource
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Signals
from support.plans import a_plan
from support.vectors import element, vector

TEXT = """\
vllm:num_requests_running{engine="0"} 3
vllm:num_requests_waiting{engine="0"} 2
vllm:time_to_first_token_seconds_count{engine="0"} 40
vllm:request_success_total{engine="0",finished_reason="stop"} 30
vllm:num_preemptions_total{engine="0"} 1
"""
PODS = [EnginePod(name="chat-1"), EnginePod(name="chat-2")]
FROM_SOURCE = Following(source="default")
FROM_PODS = Following(source=None)


def key(name: str) -> Key:
    return Key(namespace="llm", name=name)


class World:
    """A Prometheus that knows some pods, and what was asked of it."""

    def __init__(self) -> None:
        self.pods = ["chat-1", "chat-2"]
        self.queries = 0
        self.scrapes = 0
        self.status = 200
        self.delay_s = 0.0
        self.stamp: Callable[[], datetime] = system_now
        self.port = 0

    async def query(self, request: web.Request) -> web.Response:
        self.queries += 1
        await asyncio.sleep(self.delay_s)
        if self.status != 200:
            return web.Response(status=self.status)
        stamped = "timestamp" in (await request.post())["query"]
        value = str(self.stamp().timestamp()) if stamped else "1"
        elements = [element(value, at=system_now(), namespace="llm", pod=pod) for pod in self.pods]
        return web.Response(body=vector(*elements).body, content_type="application/json")

    async def metrics(self, _: web.Request) -> web.Response:
        self.scrapes += 1
        await asyncio.sleep(self.delay_s)
        return web.Response(text=TEXT, status=self.status)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    one = World()
    app = web.Application()
    app.router.add_post("/api/v1/query", one.query)
    app.router.add_get("/metrics", one.metrics)
    async with TestServer(app) as server:
        assert server.port is not None
        one.port = server.port
        yield one


@pytest.fixture
async def make_poller(world: World) -> AsyncIterator[Callable[..., SignalPoller]]:
    made: list[SignalPoller] = []

    def make(**changes: object) -> SignalPoller:
        options = {
            "sources": {"default": Source(url=f"http://127.0.0.1:{world.port}")},
            "clock": SystemClock(),
            "observe": lambda **_: None,
            "on_polled": lambda _: None,
            "real_now": system_now,
        }
        poller = SignalPoller(**(options | changes))
        made.append(poller)
        return poller

    yield make
    for poller in made:
        await poller.close()


async def test_all_plans_share_one_round_of_their_source(world: World, make_poller) -> None:
    told: Counter[str] = Counter()
    poller = make_poller(on_polled=lambda found: told.update([found.name]))
    poller.heard(key("first"), FROM_SOURCE, PODS[:1], system_now())
    await poller.poll()
    alone, world.queries = world.queries, 0
    for i in range(30):
        poller.heard(key(f"plan-{i}"), FROM_SOURCE, PODS, system_now())

    await poller.poll()

    assert world.queries == alone
    assert isinstance(poller.heard(key("plan-29"), FROM_SOURCE, PODS, system_now()), Signals)
    assert told == Counter({"first": 2} | {f"plan-{i}": 1 for i in range(30)})


async def test_a_source_that_no_plan_follows_is_not_asked(world: World, make_poller) -> None:
    poller = make_poller()
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    poller.forget(key("a"))
    await poller.poll()
    assert world.queries == 0


async def test_before_the_first_poll_signals_are_awaited(make_poller) -> None:
    heard = make_poller().heard(key("a"), FROM_SOURCE, PODS, system_now())
    assert heard.reason is Reason.METRICS_AWAITED


async def test_a_source_that_nobody_defined_is_named_with_those_that_are(world: World, make_poller) -> None:
    poller = make_poller()
    wrong = Following(source="other")
    poller.heard(key("a"), wrong, PODS, system_now())
    await poller.poll()
    heard = poller.heard(key("a"), wrong, PODS, system_now())
    assert (heard.reason, world.queries) == (Reason.SOURCE_UNKNOWN, 0)
    assert "'other'" in heard.message
    assert "default" in heard.message


async def test_a_source_that_fails_is_named_once_the_last_readings_are_stale(world: World, make_poller) -> None:
    poller = make_poller()
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    await poller.poll()
    world.status = 503
    await poller.poll()

    fresh = poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    stale = poller.heard(key("a"), FROM_SOURCE, PODS, system_now() + timedelta(seconds=91))
    world.status = 200
    await poller.poll()
    again = poller.heard(key("a"), FROM_SOURCE, PODS, system_now())

    assert isinstance(fresh, Signals)
    assert (stale.reason, "503" in stale.message) == (Reason.METRICS_UNREACHABLE, True)
    assert isinstance(again, Signals)


@pytest.mark.parametrize(
    ("pods", "status", "reason"),
    [
        pytest.param([], 200, Reason.METRICS_AWAITED, id="no-series-and-no-replica-ready"),
        pytest.param(PODS, 200, Reason.METRICS_MISSING, id="no-series-of-ready-replicas"),
        pytest.param([], 503, Reason.METRICS_UNREACHABLE, id="no-answer"),
    ],
)
async def test_a_source_without_series_is_at_fault_only_once_a_replica_is_ready(
    world: World, make_poller, pods, status, reason
) -> None:
    world.pods, world.status = [], status
    poller = make_poller()
    poller.heard(key("a"), FROM_SOURCE, pods, system_now())
    await poller.poll()

    assert poller.heard(key("a"), FROM_SOURCE, pods, system_now()).reason is reason


async def test_one_source_that_hangs_does_not_keep_the_others(world: World, make_poller) -> None:
    hangs = Source(url="http://127.0.0.1:1", timeout=0.2)
    poller = make_poller(sources={"default": Source(url=f"http://127.0.0.1:{world.port}"), "hangs": hangs})
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    poller.heard(key("b"), Following(source="hangs"), PODS, system_now())

    await poller.poll()

    assert isinstance(poller.heard(key("a"), FROM_SOURCE, PODS, system_now()), Signals)
    assert isinstance(poller.heard(key("b"), Following(source="hangs"), PODS, system_now()), NoSignals)


@pytest.mark.parametrize("slow", ["source", "pods"])
async def test_whoever_is_slow_keeps_nobody_else_from_being_heard(world: World, make_poller, slow: str) -> None:
    asked, answers = Counter[str](), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        asked[(await request.post()).get("query", "")] += 1
        await answers.wait()
        return web.Response(text=TEXT)

    told: asyncio.Queue[str] = asyncio.Queue()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", hang)
    async with TestServer(app) as server:
        poller = make_poller(
            sources={
                "default": Source(url=f"http://127.0.0.1:{world.port}"),
                "slow": Source(url=f"http://127.0.0.1:{server.port}", timeout=9),
            },
            clock=AcceleratedClock(start=system_now(), since=system_now(), factor=Fraction(100)),
            on_polled=lambda found: told.put_nowait(found.name),
        )
        of_the_slow_one = Following(source="slow") if slow == "source" else FROM_PODS
        poller.heard(
            key("slow"), of_the_slow_one, [EnginePod(name="a", ip="127.0.0.1", port=server.port)], system_now()
        )
        poller.heard(key("quick"), FROM_SOURCE, PODS, system_now())
        poller.heard(key("pods"), FROM_PODS, [EnginePod(name="a", ip="127.0.0.1", port=world.port)], system_now())
        running = asyncio.create_task(poller.run())
        heard: Counter[str] = Counter()
        async with asyncio.timeout(60):
            while min(heard["quick"], heard["pods"]) < 5:
                heard[await told.get()] += 1
        running.cancel()
        answers.set()

    assert "slow" not in heard
    assert 1 <= max(asked.values()) < 5


async def test_a_plan_whose_pods_hang_leaves_places_to_the_others(world: World, make_poller) -> None:
    at_once, most, answers = 0, 0, asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await answers.wait()
        at_once -= 1
        return web.Response(text=TEXT)

    told: asyncio.Queue[str] = asyncio.Queue()
    poller = make_poller(on_polled=lambda found: told.put_nowait(found.name))
    app = web.Application()
    app.router.add_get("/metrics", hang)
    async with TestServer(app) as server:
        hanging = [EnginePod(name=f"slow-{i}", ip="127.0.0.1", port=server.port) for i in range(40)]
        poller.heard(key("slow"), FROM_PODS, hanging, system_now())
        poller.heard(key("quick"), FROM_PODS, [EnginePod(name="a", ip="127.0.0.1", port=world.port)], system_now())
        polling = asyncio.create_task(poller.poll())
        async with asyncio.timeout(30):
            assert await told.get() == "quick"
        answers.set()
        await polling

    assert (await told.get(), most) == ("slow", PODS_OF_A_PLAN_AT_ONCE)


async def test_samples_that_stand_still_become_stale_although_the_source_answers(world: World, make_poller) -> None:
    long_ago = system_now() - timedelta(minutes=4)
    world.stamp = lambda: long_ago
    poller = make_poller()
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    await poller.poll()
    assert poller.heard(key("a"), FROM_SOURCE, PODS, system_now()).reason is Reason.METRICS_STALE


async def test_a_plan_that_follows_another_source_starts_anew(make_poller) -> None:
    poller = make_poller()
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    await poller.poll()
    assert poller.heard(key("a"), FROM_PODS, PODS, system_now()).reason is Reason.METRICS_AWAITED


async def test_pods_are_scraped_where_they_are(world: World, make_poller) -> None:
    outcomes: Counter[str] = Counter()
    poller = make_poller(observe=lambda *, source, outcome: outcomes.update([f"{source} {outcome}"]))
    pods = [EnginePod(name=f"chat-{i}", ip="127.0.0.1", port=world.port) for i in range(40)]
    pods.append(EnginePod(name="closed", ip="127.0.0.1", port=1))
    poller.heard(key("a"), FROM_PODS, pods, system_now())

    await poller.poll()

    heard = poller.heard(key("a"), FROM_PODS, pods, system_now())
    assert (world.scrapes, heard.in_flight_mean.value, set(heard.missing)) == (40, 5, {"closed"})
    assert outcomes == Counter({"pods ok": 40, "pods MetricsUnreachable": 1})


async def test_a_pod_that_serves_no_metrics_there_says_so(world: World, make_poller) -> None:
    world.status = 404
    poller = make_poller()
    pods = [EnginePod(name="chat-1", ip="127.0.0.1", port=world.port)]
    poller.heard(key("a"), FROM_PODS, pods, system_now())
    await poller.poll()
    heard = poller.heard(key("a"), FROM_PODS, pods, system_now())
    assert (heard.reason, "Check port and path" in heard.message) == (Reason.METRICS_REFUSED, True)


async def test_instants_are_those_of_the_plans_clock(make_poller) -> None:
    clock = AcceleratedClock(start=datetime(2026, 12, 1, 8, tzinfo=UTC), since=system_now(), factor=Fraction(10))
    poller = make_poller(clock=clock)
    poller.heard(key("a"), FROM_SOURCE, PODS, clock.now())
    await poller.poll()
    heard = poller.heard(key("a"), FROM_SOURCE, PODS, clock.now())
    assert isinstance(heard, Signals)
    assert timedelta() <= heard.at - clock.start < timedelta(minutes=10)


async def test_a_defect_in_a_round_does_not_end_the_polling(make_poller, caplog) -> None:
    def breaks(_: Key) -> None:
        raise RuntimeError("a defect")

    poller = make_poller(on_polled=breaks)
    poller.heard(key("a"), FROM_SOURCE, PODS, system_now())
    await poller.poll()
    assert "a defect" in caplog.text


def test_what_a_plan_follows_is_in_its_feedback() -> None:
    raise_when = RaiseWhen(queue_time=Objective(percentile="p95", limit=timedelta(milliseconds=500)))
    feedback = Feedback(
        source=PrometheusSource(name="default"), max_extra=2, raise_when=raise_when, stale_after=timedelta(minutes=1)
    )
    assert following(a_plan(feedback=feedback)) == Following(
        source="default", limits=Limits(ttft=1.5, tpot=0.06, queue=0.5), stale_after=timedelta(minutes=1)
    )
    scrape = Feedback(source=ScrapeSource(port="8000", path="/m"), max_extra=1)
    assert following(a_plan(feedback=scrape)) == Following(
        source=None, limits=Limits(ttft=1.5, tpot=0.06), port="8000", path="/m"
    )
    assert following(a_plan()) is None


def a_pod(name: str, *, ready: str = "True", **metadata: str) -> dict:
    port = {"name": "http", "containerPort": 8000}
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-12-01T08:00:00Z", **metadata},
        "spec": {"containers": [{"name": "log"}, {"name": "engine", "ports": [port]}]},
        "status": {"podIP": "10.0.0.7", "conditions": [{"type": "Ready", "status": ready}]},
    }


@pytest.mark.parametrize(
    ("port", "found"),
    [
        pytest.param("http", 8000, id="by name"),
        pytest.param("9000", 9000, id="by number"),
        pytest.param("metrics", None, id="no such port"),
    ],
)
def test_the_pods_that_should_answer_are_those_that_serve(port: str, found: int | None) -> None:
    pods = [a_pod("b"), a_pod("starting", ready="False"), a_pod("ending", deletionTimestamp="x"), a_pod("a")]
    born = datetime(2026, 12, 1, 8, tzinfo=UTC)
    assert serving_pods(pods, Following(source=None, port=port), SystemClock()) == tuple(
        EnginePod(name=name, ip="10.0.0.7", port=found, born=born, alike=name) for name in ("a", "b")
    )
