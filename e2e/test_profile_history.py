"""A real Prometheus with three weeks of a past: the profile of what its engines served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from e2e.support.prometheus import PROGRAM, Prometheus
from servingplan.cli.program import CLUSTER, PROBLEMS, USAGE, program

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="prometheus is not installed (Debian: apt-get install prometheus)"
)

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = 21
SCRAPE = timedelta(minutes=2)
END = datetime.fromtimestamp(datetime.now(UTC).timestamp() // 300 * 300, UTC) - timedelta(hours=3)
START = END - timedelta(days=DAYS)
PODS = ("chat-0", "chat-1")

LENGTHS_APART = (1000 - 100) / 64 + 1
"""A bucket is taken as 64 lengths: a quantile on the edge of two may be either."""


def rate(local: datetime) -> float:
    """Requests/s of both pods together: an office."""
    return 4.0 if local.weekday() < 5 and 8 <= local.hour < 18 else 1.0


def lines() -> Iterator[str]:
    """Two pods, which a second job scrapes again; lengths of 100 to 1,000 tokens, a third of the prompts warm."""
    steps = round((END - START) / SCRAPE)
    served: list[tuple[float, float]] = []
    total = 0.0
    for i in range(steps + 1):
        at = START + i * SCRAPE
        served.append((at.timestamp(), total))
        total += rate(at.astimezone(BERLIN)) * SCRAPE.total_seconds() / len(PODS)
    labels = [
        f'namespace="llm",pod="{pod}",instance="10.0.0.{n}:8000",engine="0",model_name="qwen",job="{job}"'
        for n, pod in enumerate(PODS)
        for job in ("engines", "again")
    ]
    for name, kind, suffixes in (
        ("vllm:time_to_first_token_seconds", "histogram", {"_count": 1.0}),
        ("vllm:num_requests_waiting", "gauge", {"": 0.0}),
        ("vllm:admission_rejections", "counter", {"_total": 0.01}),
        ("vllm:request_prompt_tokens", "histogram", {"_count": 1.0, "_sum": 550.0}),
        ("vllm:prefix_cache_queries", "counter", {"_total": 550.0}),
        ("vllm:prefix_cache_hits", "counter", {"_total": 183.0}),
        ("gateway_requests", "counter", {"_total": 1.25}),
    ):
        yield f"# TYPE {name} {kind}"
        for label in labels:
            for suffix, factor in suffixes.items():
                series = f"{name}{suffix}{{{label}}}"
                yield from (f"{series} {count * factor:g} {at:.0f}" for at, count in served)
            if name == "vllm:request_prompt_tokens":
                for edge, share in (("100", 0.0), ("1000", 1.0), ("+Inf", 1.0)):
                    series = f'{name}_bucket{{{label},le="{edge}"}}'
                    yield from (f"{series} {count * share:g} {at:.0f}" for at, count in served)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Prometheus]:
    with Prometheus(tmp_path_factory.mktemp("history"), past=lines()) as prometheus:
        yield prometheus


def run(server: Prometheus | str, *options: str):
    url = server if isinstance(server, str) else server.url
    arguments = ["profile", "from-prometheus", "--url", url, "--time-zone", "Europe/Berlin", *options]
    return CliRunner(env={"COLUMNS": "100"}).invoke(program, arguments)


def profile(server: Prometheus, *options: str):
    answer = run(server, "-o", "json", *options)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def test_the_week_is_what_the_engines_served_each_pod_once(server):
    found = profile(server, "--match", "namespace=llm", "--slot", "hour")
    rates = {(slot["weekday"], slot["hour"]): slot["rate"] for slot in found["week"]}

    for weekday in range(7):
        for hour in range(24):
            local = datetime(2026, 11, 2 + weekday, hour, tzinfo=BERLIN)
            assert rates[weekday, hour] == pytest.approx(rate(local) * 1.01, rel=0.02)
    assert found["step_seconds"] == 300
    assert (END - datetime.fromisoformat(found["end"])) < timedelta(minutes=10)
    assert found["predictability"]["verdict"] == "Schedule"


def test_lengths_and_warm_prefixes_come_from_the_histograms_and_counters(server):
    found = profile(server)

    assert found["input"]["mean"] == pytest.approx(550, rel=0.02)
    assert found["input"]["p50"] == pytest.approx(550, abs=LENGTHS_APART)
    assert found["input"]["p95"] == pytest.approx(955, abs=LENGTHS_APART)
    assert found["output"] is None
    assert found["prefix_share"] == pytest.approx(183 / 550, rel=0.01)


def test_a_gateways_own_count_wins(server):
    query = 'sum(rate(gateway_requests_total{job="engines"}[5m]))'
    found = profile(server, "--query", query, "--slot", "hour")

    assert max(slot["rate"] for slot in found["week"]) == pytest.approx(5.0, rel=0.02)
    assert found["source"]["queries"][0] == query


def test_a_suggested_plan_is_that_of_an_office(server):
    answer = run(server, "--capacity", "1.5", "--slot", "hour")

    assert "working-day" in answer.output
    assert all(clock in answer.output for clock in ("08:00", "18:00"))


@pytest.mark.parametrize(
    ("options", "why", "code"),
    [
        (("--match", "namespace=other"), "has nothing of these days", PROBLEMS),
        (("--end", "2020-01-01"), "has nothing of these days", PROBLEMS),
        (("--match", "llm"), "--match 'llm': write LABEL=VALUE", USAGE),
        (("--query", "sum("), "refuses", CLUSTER),
        (("--query", "gateway_requests_total"), "gives 4 series: add them up", CLUSTER),
        (("--token-file", "nowhere"), "--token-file nowhere cannot be read", USAGE),
    ],
    ids=["another namespace", "before its time", "a wrong label", "no query", "several series", "no token"],
)
def test_what_is_wrong_is_said(server, options, why, code):
    answer = run(server, *options)

    assert why in " ".join(answer.output.split())
    assert answer.exit_code == code


def test_an_address_where_nothing_listens_is_named():
    answer = run("http://127.0.0.1:9")

    assert "Prometheus at http://127.0.0.1:9 gives no answer" in answer.output
    assert answer.exit_code == CLUSTER
