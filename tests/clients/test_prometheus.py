"""What Prometheus is asked, and how its answers become a round. The real one is asked in the e2e tests."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.bounded import Answer
from servingplan.clients.engine_series import Latency, Limits, NoReading, Signal
from servingplan.clients.prometheus import EDGES_EVERY_S, PrometheusClient
from servingplan.clients.queries import Edges, arrived, buckets_of, edges_of, freshness, value_of
from servingplan.clients.rounds import Round
from servingplan.clients.sources import Source
from servingplan.clients.vectors import WINDOW_CHARACTERS, read_series, read_vector
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading, Within
from support.vectors import NOON, element, series, vector

LIMITS = Limits(ttft=1.5)

# ---- edges ----


@pytest.mark.parametrize(
    ("series", "limits", "chosen"),
    [
        pytest.param({"1.0": 2, "1.5": 2, "2.5": 2, "+Inf": 2}, [1.5], ["1.5", "+Inf"], id="an edge of all engines"),
        pytest.param({"1.0": 2, "2.5": 2, "5.0": 2, "+Inf": 2}, [1.5], ["1.0", "2.5", "+Inf"], id="between edges"),
        pytest.param(
            {"0.5": 3, "1.0": 3, "1.25": 1, "1.5": 1, "2.0": 1, "2.5": 3, "5.0": 3, "+Inf": 3},
            [1.5],
            ["1.0", "1.25", "1.5", "2.0", "2.5", "+Inf"],
            id="an edge of some: outwards to one of all",
        ),
        pytest.param({"1.0": 2, "2.5": 2, "+Inf": 2}, [9.0], ["2.5", "+Inf"], id="above the last edge"),
        pytest.param({"1.0": 2, "2.5": 2, "+Inf": 2}, [0.5], ["1.0", "+Inf"], id="below the first edge"),
        pytest.param({"1": 1, "1.0": 1, "+Inf": 2}, [1.0], ["1", "1.0", "+Inf"], id="one edge written in two ways"),
        pytest.param({"1.0": 2, "2.5": 2, "+Inf": 2}, [1.0, 2.5], ["1.0", "2.5", "+Inf"], id="limits of two plans"),
        pytest.param({}, [1.0], ["+Inf"], id="no series"),
    ],
)
def test_only_the_edges_around_a_limit_are_asked_for(series: dict, limits: list, chosen: list) -> None:
    assert Edges(series=series).around(limits) == chosen


# ---- queries ----


def test_a_query_is_for_all_pods_and_counts_engines_once() -> None:
    assert value_of(Signal.RUNNING, {}) == (
        "sum by (namespace, pod) (max by (namespace, pod, instance, engine, model_name) (vllm:num_requests_running))"
    )


def test_renamed_series_are_asked_for_by_both_names_in_one_query() -> None:
    assert value_of(Signal.KV_USAGE, {}) == (
        "max by (namespace, pod) (vllm:kv_cache_usage_perc) or max by (namespace, pod) (vllm:gpu_cache_usage_perc)"
    )


def test_matchers_of_the_administrator_are_in_every_selector_and_escaped() -> None:
    matchers = {"cluster": 'ber"lin\\1'}
    queries = [
        freshness(matchers),
        *(value_of(signal, matchers) for signal in Signal),
        *(query for latency in Latency for query in edges_of(latency, matchers).values()),
        buckets_of({"vllm:time_to_first_token_seconds": ["1.5", "+Inf"]}, matchers),
    ]
    for query in queries:
        assert query.count("vllm:") == query.count('cluster="ber\\"lin\\\\1"')


def test_a_pattern_is_matched_as_one() -> None:
    query = arrived({"namespace": "llm", "pod": re.compile(r"chat\-[0-9]+")}, "60s")
    assert query.count('{namespace="llm",pod=~"chat\\\\-[0-9]+"}[60s]') == 3


def test_the_edges_are_one_matcher() -> None:
    query = buckets_of({"vllm:time_to_first_token_seconds": ["1.5", "+Inf"]}, {})
    assert 'vllm:time_to_first_token_seconds_bucket{le=~"1\\\\.5|\\\\+Inf"}' in query


# ---- answers ----


def test_an_answer_of_many_windows_is_read_whole_and_in_order() -> None:
    count = 4 * WINDOW_CHARACTERS // 60
    answer = vector(*(element(str(i), namespace="llm", pod=f"chat-{i}") for i in range(count)))
    assert len(answer.body) > 3 * WINDOW_CHARACTERS

    elements = list(read_vector(answer, what="source"))

    assert [int(found.value) for found in elements] == list(range(count))
    assert elements[-1].labels["pod"] == f"chat-{count - 1}"


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"pod": '"result":['}, id="what looks like the result"),
        pytest.param({"pod": "]}"}, id="what looks like its end"),
        pytest.param({"pod": 'ünicode \\ "'}, id="escapes"),
    ],
)
def test_labels_may_hold_anything(labels: dict) -> None:
    answer = vector(element(**labels), warnings=[], infos=['"result":[ is no result'])
    assert [dict(found.labels) for found in read_vector(answer, what="source")] == [labels]


def test_values_that_are_no_numbers_stay_visible() -> None:
    values = [found.value for found in read_vector(vector(element("NaN"), element("+Inf")), what="source")]
    assert math.isnan(values[0])
    assert values[1] == math.inf


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param('{"status":"success","data":{"resultType":"vector","result":[{"a":', "cut off", id="cut off"),
        pytest.param(
            '{"status":"success","data":{"resultType":"vector","result":["' + "x" * 2 * WINDOW_CHARACTERS + '"]}}',
            "no element",
            id="an element larger than any of ours",
        ),
        pytest.param(
            '{"status":"success","data":{"resultType":"vector","result":[1]}}', "cannot be read", id="not elements"
        ),
        pytest.param('{"result":[],"data":3,"status":"success"}', "cannot be read", id="another document"),
        pytest.param("[" * 100_000, "address of a Prometheus", id="nested without end"),
    ],
)
def test_an_answer_that_is_no_vector_is_named(body: str, says: str) -> None:
    with pytest.raises(NoReading, match=says) as caught:
        list(read_vector(Answer(status=200, content_type="application/json", body=body.encode()), what="source"))
    assert caught.value.reason is Reason.METRICS_INVALID


# ---- rounds, from a small server that answers by query ----


class Served:
    """Answers each query by the values given for its series."""

    def __init__(self) -> None:
        self.queries: list[dict] = []
        self.evaluated_s = NOON.timestamp()
        self.values = {
            "timestamp": [element(str(NOON.timestamp() - 5), namespace="llm", pod="chat-1")],
            "num_requests_running": [element("3", namespace="llm", pod="chat-1")],
            "num_requests_waiting": [element("2", namespace="llm", pod="chat-1")],
            "time_to_first_token_seconds_count": [element("40", namespace="llm", pod="chat-1")],
            "request_success_total": [element("30", namespace="llm", pod="chat-1")],
            "num_preemptions_total": [element("1", namespace="llm", pod="chat-1")],
            "count by (le)": [element("1", le="1.5"), element("1", le="+Inf")],
            "sum by (namespace, pod, le)": [
                element("20", namespace="llm", pod="chat-1", le="1.5"),
                element("40", namespace="llm", pod="chat-1", le="+Inf"),
            ],
        }

    async def answer(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.queries.append(form)
        found = next((key for key in ("timestamp", "count by (le)", "pod, le)") if key in form["query"]), None)
        if found is None:
            found = next((key for key in self.values if f"vllm:{key}" in form["query"]), "")
        key = "sum by (namespace, pod, le)" if found == "pod, le)" else found
        elements = [{**one, "value": [self.evaluated_s, one["value"][1]]} for one in self.values.get(key, [])]
        return web.Response(body=vector(*elements).body, content_type="application/json")


@pytest.fixture
async def served() -> AsyncIterator[tuple[Served, Callable[..., PrometheusClient]]]:
    one, parser, clients = Served(), ThreadPoolExecutor(max_workers=1), []
    app = web.Application()
    app.router.add_post("/api/v1/query", one.answer)
    async with TestServer(app) as server:

        def client(**options: object) -> PrometheusClient:
            source = Source(url=str(server.make_url("/")), **options)
            made = PrometheusClient(
                "default", source, parser=parser, observe=lambda **_: None, now=lambda: NOON + timedelta(seconds=1)
            )
            clients.append(made)
            return made

        yield one, client
        for made in clients:
            await made.close()
    parser.shutdown()


async def test_a_round_gives_a_pods_reading_as_old_as_its_samples(served) -> None:
    _, client = served
    found = await client().read([LIMITS])
    assert isinstance(found, Round)
    assert found.reading(("llm", "chat-1"), LIMITS) == Reading(
        pod="chat-1",
        at=NOON - timedelta(seconds=5),
        running=3,
        waiting=2,
        arrived=40,
        finished=30,
        preemptions=1,
        rejections=0,
        ttft=Within(below=20, above=20, count=40),
    )


async def test_all_queries_of_a_round_are_for_one_instant_of_the_servers_clock(served) -> None:
    one, client = served
    one.evaluated_s = NOON.timestamp() - 3
    await client().read([LIMITS])
    assert "time" not in one.queries[0]
    assert {query["time"] for query in one.queries[1:]} == {f"{NOON.timestamp() - 3:.3f}"}


@pytest.mark.parametrize("plans", [1, 50])
async def test_the_number_of_queries_does_not_follow_the_number_of_plans(served, plans: int) -> None:
    one, client = served
    source = client()
    limits = [Limits(ttft=1 + plan / 100, tpot=0.05 + plan / 1000, queue=0.5) for plan in range(plans)]
    await source.read(limits)
    one.queries.clear()

    await source.read(limits)

    assert len(one.queries) == len(Signal) + 1 + len(Latency)


async def test_edges_are_asked_for_again_after_a_while(served) -> None:
    one, client = served
    source = client()
    for seconds in (0, 15, EDGES_EVERY_S + 1):
        one.evaluated_s = NOON.timestamp() + seconds
        await source.read([LIMITS])
    asked = [query for query in one.queries if "count by (le)" in query["query"]]
    assert len(asked) == 2


async def test_without_limits_no_bucket_is_asked_for(served) -> None:
    one, client = served
    await client().read([Limits()])
    assert not [query for query in one.queries if "_bucket" in query["query"]]


@pytest.mark.parametrize(
    ("key", "elements", "reason", "says"),
    [
        pytest.param("timestamp", [], Reason.METRICS_MISSING, "vllm:num_requests_running", id="nothing is scraped"),
        pytest.param(
            "timestamp", [element("NaN", namespace="llm", pod="chat-1")], Reason.METRICS_INVALID, "nan s", id="never"
        ),
        pytest.param(
            "timestamp",
            [element(str(NOON.timestamp() + 600), namespace="llm", pod="chat-1")],
            Reason.METRICS_INVALID,
            "not yet",
            id="in ten minutes",
        ),
        pytest.param(
            "timestamp",
            [element("1", namespace="llm", pod="chat-2")],
            Reason.METRICS_MISSING,
            "namespace llm and pod chat-1",
            id="another pod only",
        ),
        pytest.param(
            "num_requests_running",
            [element("1", namespace="llm", pod="chat-1")] * 2,
            Reason.METRICS_INVALID,
            "twice",
            id="two values",
        ),
        pytest.param(
            "sum by (namespace, pod, le)",
            [element("1", namespace="llm", pod="chat-1", le="+Inf")] * 2,
            Reason.METRICS_INVALID,
            "twice",
            id="two buckets",
        ),
        pytest.param(
            "num_preemptions_total",
            [element("1", pod="chat-1")],
            Reason.METRICS_MISSING,
            "preemptions",
            id="no namespace",
        ),
    ],
)
async def test_what_is_wrong_with_a_pod_is_its_reason(
    served, key: str, elements: list, reason: Reason, says: str
) -> None:
    one, client = served
    one.values[key] = elements
    found = await client().read([LIMITS])
    wrong = found if isinstance(found, NoSignals) else found.reading(("llm", "chat-1"), LIMITS)
    assert isinstance(wrong, NoSignals)
    assert (wrong.reason, says in wrong.message) == (reason, True), wrong.message


@pytest.mark.parametrize(
    ("answer", "reason", "says"),
    [
        pytest.param(replace(series([]), status=503), Reason.METRICS_UNREACHABLE, "answered 503", id="later"),
        pytest.param(vector(element()), Reason.METRICS_INVALID, "vector", id="a vector"),
        pytest.param(replace(series([]), body=b'{"status":'), Reason.METRICS_INVALID, "cut off", id="cut off"),
        pytest.param(series([], warnings=["a store is down"]), Reason.METRICS_INCOMPLETE, "a store", id="incomplete"),
        pytest.param(
            replace(series([]), body=series([]).body.replace(b"[{", b"[{}, {")), Reason.METRICS_INVALID, "series",
            id="two series",
        ),
        pytest.param(
            replace(series([]), content_type="text/html", body=b"<html>"), Reason.METRICS_INVALID, "<html>", id="HTML"
        ),
    ],
)  # fmt: skip
def test_a_series_that_is_none_has_a_reason(answer: Answer, reason: Reason, says: str) -> None:
    with pytest.raises(NoReading) as found:
        read_series(answer, what="source default")
    assert (found.value.reason, says in str(found.value)) == (reason, True), str(found.value)


def test_a_series_is_its_values_with_their_times() -> None:
    assert read_series(series([(60.0, "1.5"), (120.0, "NaN")]), what="source")[0] == (60.0, 1.5)
    assert read_series(series(None), what="source") == []


async def test_a_source_without_a_server_is_unreachable() -> None:
    parser = ThreadPoolExecutor(max_workers=1)
    outcomes: list[str] = []
    client = PrometheusClient(
        "default",
        Source(url="http://127.0.0.1:1"),
        parser=parser,
        observe=lambda *, source, outcome: outcomes.append(f"{source} {outcome}"),
        now=lambda: NOON,
    )
    found = await client.read([LIMITS])
    await client.close()
    parser.shutdown()

    assert isinstance(found, NoSignals)
    assert (found.reason, "http://127.0.0.1:1" in found.message) == (Reason.METRICS_UNREACHABLE, True)
    assert outcomes == ["default MetricsUnreachable"]
