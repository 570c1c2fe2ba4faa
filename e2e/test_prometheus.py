"""A real Prometheus scrapes simulated engines: the right readings, or the right reason for having none."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp import web

from e2e.support.engines import VLLM_EDGES, EngineHost, SimulatedEngine
from e2e.support.prometheus import PROGRAM, Prometheus, Target, Web, pod
from servingplan.clients.engine_metrics import read_metrics
from servingplan.clients.engine_series import Limits
from servingplan.clients.prometheus import RELABEL_RULE, PrometheusClient
from servingplan.clients.rounds import Round
from servingplan.clients.sources import Source, parse_sources
from servingplan.controller.clock import SystemClock, system_now
from servingplan.controller.signals import EnginePod, Following, SignalPoller
from servingplan.controller.store import Key
from servingplan.planning.decision import Decision, decide
from servingplan.planning.observation import History, Observation
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading, Signals
from support.signals import a_checked_plan

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="prometheus is not installed (Debian: apt-get install prometheus)"
)

LIMITS = Limits(ttft=1.5, tpot=0.06, queue=0.5)
KEY = Key(namespace="llm", name="chat")
PASSWORD, HASH = "s3cret-password", "$2b$04$nV6SiiGZnUQhM/4lm4NDMe6EX3UVrHAykQcjcnerfMZFGZUHYCEHq"


@pytest.fixture(scope="module")
def engines():
    with EngineHost() as host:
        yield host


OPTIONS = {
    "own": {},
    "vllm-edges": {"edges": VLLM_EDGES},
    "several": {"engines": 3},
    "lora": {"lora": True},
    "twice": {},
}
"""Pods whose counts stand still, by name."""


@pytest.fixture(scope="module")
def pods(engines):
    """The engines by the name of their pod. Prometheus takes 5 s to see a new one, so all tests share them."""
    still = {name: engines.add(a_busy_engine(**options)) for name, options in OPTIONS.items()}
    polled = engines.add(SimulatedEngine())
    polled.set(running=3, arrivals_per_s=5)
    return still | {"polled": polled, "restarts": engines.add(SimulatedEngine())}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory, engines, pods):
    async def only_gauges(_: web.Request) -> web.Response:
        return web.Response(text='vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_waiting{engine="0"} 0\n')

    server = Prometheus(tmp_path_factory.mktemp("prometheus"), jobs=("engines", "again"))
    bare = {"kubernetes_pod_name": "bare", "team": "bare"}
    server.scrape(
        *(pod(engine.port, name) for name, engine in pods.items()),
        pod(pods["twice"].port, "twice", job="again"),
        pod(engines.serve(only_gauges), "dropped"),
        Target(port=engines.add(a_busy_engine()).port, labels=bare, job="again"),
    )
    with server:
        yield server


@pytest.fixture
async def open_source():
    """Makes clients, and closes them."""
    parser = ThreadPoolExecutor(max_workers=1)
    made = []

    def make(source: Source) -> PrometheusClient:
        client = PrometheusClient("default", source, parser=parser, observe=lambda **_: None, now=system_now)
        made.append(client)
        return client

    yield make
    for client in made:
        await client.close()
    parser.shutdown()


async def read(client, limits=LIMITS):
    return await client.read([limits])


async def until(look: Callable[[], Awaitable], holds: Callable) -> object:
    """Looks again until it holds, at most half a minute."""
    deadline = time.monotonic() + 30
    while not holds(seen := await look()):
        assert time.monotonic() < deadline, f"last seen: {seen}"
        await asyncio.sleep(0.1)
    return seen


def reads(name: str, *, namespace: str = "llm", limits: Limits = LIMITS):
    """Holds once a round has a reading of a pod."""
    return lambda found: isinstance(found, Round) and isinstance(found.reading((namespace, name), limits), Reading)


def a_busy_engine(**options) -> SimulatedEngine:
    """With counts that stand still, so that two ways to read them must agree."""
    engine = SimulatedEngine(**options)
    engine.set(running=12, waiting=7, deferred=3, kv_usage=0.8, ttft_s=0.4, tpot_s=0.03, queue_s=0.2, prompt_tokens=300)
    engine.count(arrived=10, finished=8, rejected=2, preempted=1)
    engine.set(ttft_s=1.3, tpot_s=0.055, queue_s=0.45)
    engine.count(arrived=5, finished=4)
    engine.set(ttft_s=9.0, tpot_s=0.4, queue_s=3.0)
    engine.count(arrived=2, finished=1)
    return engine


def directly(engine: SimulatedEngine, name: str, at: datetime, limits: Limits = LIMITS) -> Reading:
    return read_metrics(engine.metrics().decode(), pod=name, at=at, limits=limits)


@pytest.mark.parametrize("name", OPTIONS)
async def test_prometheus_and_the_pod_itself_give_the_same_reading(prometheus, pods, open_source, name):
    found = await until(lambda: read(open_source(Source(url=prometheus.url))), reads(name))

    reading = found.reading(("llm", name), LIMITS)
    assert reading == directly(pods[name], name, reading.at)
    assert abs(system_now() - reading.at) < timedelta(seconds=30)


async def test_plans_with_different_limits_share_one_round(prometheus, pods, open_source):
    client, strict = open_source(Source(url=prometheus.url)), Limits(ttft=0.35, tpot=0.031)

    found = await until(lambda: client.read([LIMITS, strict]), reads("own"))

    for limits in (LIMITS, strict, Limits()):
        reading = found.reading(("llm", "own"), limits)
        assert reading == directly(pods["own"], "own", reading.at, limits)


async def test_a_pod_that_two_jobs_scrape_counts_once(prometheus, open_source):
    query = 'vllm:num_requests_running{pod="twice"}'
    await until(lambda: _series(prometheus, query), lambda count: count == 2)

    found = await read(open_source(Source(url=prometheus.url)))

    assert found.reading(("llm", "twice"), LIMITS).running == 12


async def _series(prometheus, query) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{prometheus.url}/api/v1/query", params={"query": query}) as answer,
    ):
        return len((await answer.json())["data"]["result"])


async def test_series_without_labels_are_named_with_the_rule_that_mends_them(prometheus, open_source):
    everything = open_source(Source(url=prometheus.url))
    only_bare = open_source(Source(url=prometheus.url, matchers={"team": "bare"}))

    nothing = await until(lambda: read(only_bare), lambda found: found.reason is Reason.LABELS_MISSING)
    found = await until(lambda: read(everything), reads("own"))

    assert "job again" in nothing.message
    assert RELABEL_RULE in nothing.message
    assert found.reading(("llm", "bare"), LIMITS).reason is Reason.LABELS_MISSING


async def test_a_source_that_knows_no_engine_says_which_series_is_missing(prometheus, open_source):
    found = await read(open_source(Source(url=prometheus.url, matchers={"cluster": "none"})))

    assert found.reason is Reason.METRICS_MISSING
    assert 'vllm:num_requests_running{cluster="none"}' in found.message


async def test_a_pod_whose_series_are_dropped_is_missing_and_the_others_are_not(prometheus, open_source):
    def both(found):
        return reads("own")(found) and ("llm", "dropped") in found.pods

    found = await until(lambda: read(open_source(Source(url=prometheus.url))), both)

    missing = found.reading(("llm", "dropped"), LIMITS)
    assert missing.reason is Reason.METRICS_MISSING
    assert "vllm:num_preemptions_total" in missing.message


async def test_a_prometheus_that_stopped_and_came_back_is_read_again(engines, open_source, tmp_path):
    engine = engines.add(a_busy_engine())
    server = Prometheus(tmp_path / "prometheus")
    server.scrape(pod(engine.port, "a"))
    with server:
        client = open_source(Source(url=server.url))
        await until(lambda: read(client), reads("a"))
        server.stop()

        gone = await read(client)

        assert gone.reason is Reason.METRICS_UNREACHABLE
        assert server.url in gone.message
        server.start()
        engine.count(arrived=100)
        await until(lambda: read(client), lambda f: reads("a")(f) and f.reading(("llm", "a"), LIMITS).arrived == 117)


# ---- answers that lie, hang or are none ----


@dataclass
class Poison:
    """Stands before the real Prometheus, and changes its answers."""

    url: str
    change: Callable = None
    asked: int = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if request.path != "/api/v1/query":
            return web.Response(status=404)
        form = await request.post()
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}{request.path}", data=form) as real:
            answer = await real.json()
        changed = self.change(form["query"], answer)
        changed = await changed if asyncio.iscoroutine(changed) else changed
        return changed if isinstance(changed, web.StreamResponse) else web.json_response(changed)


def every_value(text: str):
    """All values are this, but those that say when they were scraped."""

    def change(query, answer):
        if "timestamp" not in query:
            for element in answer["data"]["result"]:
                element["value"][1] = text
        return answer

    return change


def with_result(function: Callable):
    def change(_, answer):
        answer["data"]["result"] = function(answer["data"]["result"])
        return answer

    return change


def scraped(ago: timedelta):
    def change(query, answer):
        if "timestamp" in query:
            for element in answer["data"]["result"]:
                element["value"][1] = str((datetime.now(UTC) - ago).timestamp())
        return answer

    return change


def without_pod(result):
    return [{**element, "metric": {"exported_pod": "a", "namespace": "llm"}} for element in result]


def instead(**options):
    return lambda *_: web.Response(**options)


def as_json(status=200, **document):
    return lambda *_: web.json_response(document, status=status)


async def _late(answer):
    await asyncio.sleep(10)
    return answer


def warned(*texts, kind="warnings"):
    return lambda _, answer: {**answer, kind: list(texts)}


PAGE = "<html><body>Please log in</body></html>"

POISONS = {
    "NaN": (every_value("NaN"), Reason.METRICS_INVALID),
    "+Inf": (every_value("+Inf"), Reason.METRICS_INVALID),
    "a negative count": (every_value("-1"), Reason.METRICS_INVALID),
    "an empty vector": (with_result(lambda _: []), Reason.METRICS_MISSING),
    "a stale timestamp": (scraped(timedelta(minutes=4)), Reason.METRICS_STALE),
    "a timestamp in the future": (scraped(timedelta(minutes=-10)), Reason.METRICS_INVALID),
    "a wrong label": (with_result(without_pod), Reason.LABELS_MISSING),
    "two series for one pod": (with_result(lambda result: result * 2), Reason.METRICS_INVALID),
    "HTML instead of JSON": (instead(text=PAGE, content_type="text/html"), Reason.METRICS_INVALID),
    "HTML that is called JSON": (instead(text=PAGE, content_type="application/json"), Reason.METRICS_INVALID),
    "JSON that is called text": (
        lambda _, answer: web.Response(text=json.dumps(answer), content_type="text/plain"),
        Reason.METRICS_INVALID,
    ),
    "JSON of something else": (as_json(kind="Status", code=200), Reason.METRICS_INVALID),
    "a matrix": (
        lambda _, answer: {**answer, "data": {**answer["data"], "resultType": "matrix"}},
        Reason.METRICS_INVALID,
    ),
    "an answer cut off": (
        lambda _, answer: web.Response(text=json.dumps(answer)[:-20], content_type="application/json"),
        Reason.METRICS_INVALID,
    ),
    "503": (instead(status=503, text="no healthy upstream"), Reason.METRICS_UNREACHABLE),
    "too many queries": (
        as_json(status=503, status_text="", errorType="timeout", error="query queue is full"),
        Reason.METRICS_UNREACHABLE,
    ),
    "429": (instead(status=429), Reason.METRICS_UNREACHABLE),
    "401": (instead(status=401, text="Unauthorized"), Reason.METRICS_REFUSED),
    "404": (instead(status=404, text="page not found"), Reason.METRICS_REFUSED),
    "a query that is refused": (
        as_json(status=400, errorType="bad_data", error="parse error"),
        Reason.METRICS_REFUSED,
    ),
    "a delay of 10 s": (lambda _, answer: _late(answer), Reason.METRICS_UNREACHABLE),
    "50 MB": (
        lambda _, answer: web.Response(body=b" " * 50_000_000, content_type="application/json"),
        Reason.METRICS_INVALID,
    ),
    "a redirect": (instead(status=302, headers={"Location": "/login"}), Reason.METRICS_REFUSED),
    "a warning": (warned("remote read: no answer from store-2"), Reason.METRICS_INCOMPLETE),
}


@pytest.fixture(scope="module")
def poisoned(prometheus, engines):
    poison = Poison(url=prometheus.url)
    port = engines.serve(poison.serve)
    return poison, f"http://127.0.0.1:{port}"


@pytest.fixture
async def poller(poisoned, open_source):
    """A poller on the poisoned source, which answers rightly until a test says otherwise."""
    poison, url = poisoned
    poison.change = lambda _, answer: answer
    await until(lambda: read(open_source(Source(url=url))), reads("polled"))
    told = []
    poller = SignalPoller(
        sources={"default": Source(url=url)},
        clock=SystemClock(),
        observe=lambda **_: None,
        on_polled=told.append,
        real_now=system_now,
    )
    poller.told = told
    yield poller
    await poller.close()


async def hear(poller, name="polled"):
    """What a plan with this pod hears after one more poll."""
    following, pods = Following(source="default", limits=LIMITS), [EnginePod(name=name)]
    poller.heard(KEY, following, pods, system_now())
    await poller.poll()
    return poller.heard(KEY, following, pods, system_now())


@pytest.mark.parametrize(("change", "reason"), POISONS.values(), ids=POISONS.keys())
async def test_a_poisoned_answer_keeps_the_floor_and_its_reason_is_named(poller, poisoned, change, reason):
    poisoned[0].change = change

    heard = await hear(poller)

    assert isinstance(heard, NoSignals), heard
    assert (heard.reason, bool(heard.message)) == (reason, True), heard.message
    decision = keeps_the_floor(heard)
    assert (decision.adjustment.reason, heard.message in decision.adjustment.message) == (reason, True)


def keeps_the_floor(heard) -> Decision:
    """The decision with what was heard, which asks for what it asks for where nobody is."""
    plan, now = a_checked_plan(), system_now()
    decision = decide(plan, Observation(current=None, heard=heard), History(), now)
    assert decision.desired == decision.asked == decide(plan, Observation(current=None), History(), now).desired
    return decision


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(warned("PromQL info: metric might not be a counter", kind="infos"), id="infos"),
        pytest.param(warned("PromQL info: metric might not be a counter"), id="infos as older versions write them"),
    ],
)
async def test_advice_on_a_query_does_not_spoil_its_answer(poller, poisoned, change):
    poisoned[0].change = change

    heard = await hear(poller)

    assert isinstance(heard, Signals)
    assert (heard.in_flight, poller.told) == ({"polled": 3}, [KEY])


async def test_a_redirect_is_not_followed(poller, poisoned):
    poison, _ = poisoned
    poison.change = instead(status=307, headers={"Location": "/elsewhere"})
    poison.asked = 0

    await hear(poller)

    assert poison.asked == 1


async def test_a_poisoned_answer_does_not_take_away_what_is_still_fresh(poller, poisoned):
    assert isinstance(await hear(poller), Signals)
    poisoned[0].change = every_value("NaN")

    heard = await hear(poller)

    assert isinstance(heard, Signals)
    assert heard.in_flight == {"polled": 3}


async def test_a_negative_rate_after_a_reset_keeps_the_floor_and_the_engine_is_still_heard(
    poller, prometheus, pods, open_source
):
    client = open_source(Source(url=prometheus.url))

    async def arrived() -> float:
        found = await read(client)
        await hear(poller, "restarts")
        return found.reading(("llm", "restarts"), LIMITS).arrived

    pods["restarts"].count(arrived=1000, finished=1000)
    await until(arrived, lambda count: count == 1000)
    pods["restarts"].restart()
    pods["restarts"].count(arrived=2)
    await until(arrived, lambda count: count == 2)

    heard = await hear(poller, "restarts")

    assert isinstance(heard, Signals)
    assert heard.arrivals_2m is None or heard.arrivals_2m.value >= 0
    (arrivals, *_) = keeps_the_floor(heard).adjustment.verdicts
    assert (arrivals.signal, arrivals.reason) == ("arrivals", Reason.NOT_KNOWN)


# ---- who may ask ----


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate authority of our own, and a certificate for the loopback that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=prometheus",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
        "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other-authority",
    ):
        subprocess.run([str(shutil.which("openssl")), *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


async def test_a_source_is_read_over_tls_with_basic_authentication(engines, open_source, certificates, tmp_path):
    served = Web(certificate=certificates / "server.pem", key=certificates / "server.key", users={"planner": HASH})
    authority, user, password = (tmp_path / name for name in ("ca.pem", "user", "password"))
    shutil.copy(certificates / "other.pem", authority)
    user.write_text("planner\n")
    password.write_text("wrong\n")
    engine = engines.add(a_busy_engine())
    server = Prometheus(tmp_path / "prometheus", served=served)
    server.scrape(pod(engine.port, "a"))
    with server:
        document = {"url": server.url, "caFile": str(authority), "timeout": "5s"}
        document["basicAuth"] = {"usernameFile": str(user), "passwordFile": str(password)}
        client = open_source(parse_sources({"sources": {"default": document}}, where="test")["default"])

        distrusted = await read(client)
        shutil.copy(certificates / "ca.pem", authority)
        refused = await read(client)
        password.write_text(PASSWORD)
        found = await until(lambda: read(client), reads("a"))

    assert (distrusted.reason, "certificate" in distrusted.message.lower()) == (Reason.METRICS_UNREACHABLE, True)
    assert refused.reason is Reason.METRICS_REFUSED
    assert "credentials" in refused.message
    assert found.reading(("llm", "a"), LIMITS).running == 12


async def test_a_token_and_a_tenant_go_with_every_query_and_a_new_token_is_used(
    prometheus, engines, open_source, tmp_path
):
    real = Poison(url=prometheus.url, change=lambda _, answer: answer)
    valid = "token-1"

    async def guard(request: web.Request) -> web.StreamResponse:
        given = (request.headers.get("Authorization"), request.headers.get("X-Scope-OrgID"))
        return await real.serve(request) if given == (f"Bearer {valid}", "team-a") else web.Response(status=401)

    token = tmp_path / "token"
    token.write_text("token-1\n")
    document = {
        "url": f"http://127.0.0.1:{engines.serve(guard)}",
        "bearerTokenFile": str(token),
        "tenant": {"name": "X-Scope-OrgID", "value": "team-a"},
    }
    client = open_source(parse_sources({"sources": {"default": document}}, where="test")["default"])
    await until(lambda: read(client), reads("own"))

    valid = "token-2"
    refused = await read(client)
    token.write_text("token-2 \n")
    again = await read(client)
    token.unlink()
    unreadable = await read(client)

    assert refused.reason is Reason.METRICS_REFUSED
    assert reads("own")(again)
    assert (unreadable.reason, str(token) in unreadable.message) == (Reason.METRICS_REFUSED, True)


async def test_the_pods_themselves_are_read_where_no_source_is_named(engines):
    engine, gone = engines.add(a_busy_engine()), engines.add(a_busy_engine())
    engines.remove(gone)
    poller = SignalPoller(
        sources={}, clock=SystemClock(), observe=lambda **_: None, on_polled=lambda _: None, real_now=system_now
    )
    following = Following(source=None, limits=LIMITS)
    pods = [
        EnginePod(name="a", ip="127.0.0.1", port=engine.port),
        EnginePod(name="gone", ip="127.0.0.1", port=gone.port),
        EnginePod(name="starting"),
    ]
    poller.heard(KEY, following, pods, system_now())

    await poller.poll()
    heard = poller.heard(KEY, following, pods, system_now())
    only_gone = poller.heard(KEY, following, pods[1:2], system_now())
    await poller.close()

    assert heard.in_flight == {"a": 19}
    assert set(heard.missing) == {"gone", "starting"}
    assert only_gone.reason is Reason.METRICS_UNREACHABLE
