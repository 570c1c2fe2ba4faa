"""The simulated engine is what vLLM is, as far as anybody reads it: held against recordings of the real one."""

from __future__ import annotations

import json
import math
import re
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from e2e.support.engines import VLLM_EDGES, EngineHost, SimulatedEngine
from servingplan.clients.engine_metrics import read_metrics
from servingplan.clients.engine_series import Limits

RECORDINGS = sorted((Path(__file__).parents[1] / "tests/data/vllm").glob("metrics-*.txt"))
LIMITS = Limits(ttft=1.0, tpot=0.05, queue=0.5)


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(family):
    """Names and labels of its lines, without values; `le` apart."""
    return {(line.name, frozenset(line.labels) - {"le"}) for line in family.samples}


def edges(family):
    return sorted({float(line.labels["le"]) for line in family.samples if "le" in line.labels})


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def recorded(request):
    return request.param.read_text()


@pytest.fixture
def simulated():
    engine = SimulatedEngine(edges=VLLM_EDGES)
    engine.count(arrived=3, finished=2, rejected=1, preempted=1)
    return engine.metrics().decode()


def test_every_series_has_the_name_type_and_labels_of_the_real_one(simulated, recorded):
    real = families(recorded)

    for name, family in families(simulated).items():
        assert (name, family.type) == (name, real[name].type)
        assert (name, samples(family)) == (name, samples(real[name]))


def test_the_histograms_have_the_edges_of_the_real_one(simulated, recorded):
    real = families(recorded)
    histograms = {name: family for name, family in families(simulated).items() if family.type == "histogram"}

    assert histograms
    for name, family in histograms.items():
        assert (name, edges(family)) == (name, edges(real[name]))
        assert edges(family)[-1] == math.inf


def test_a_line_is_written_as_the_real_one_writes_it(simulated, recorded):
    line = re.compile(r"^vllm:time_to_first_token_seconds_bucket\{.*0\.25.*\} ", re.MULTILINE)

    assert line.search(simulated).group() == line.search(recorded).group()


def test_its_load_is_what_is_read_from_it():
    seconds = 0.0
    engine = SimulatedEngine(engines=2, clock=lambda: seconds)
    engine.set(running=6, waiting=4, deferred=3, kv_usage=0.7, arrivals_per_s=2.5, rejections_per_s=0.5, ttft_s=2.0)
    seconds = 10.0

    reading = read_metrics(engine.metrics().decode(), pod="a", at=datetime.now(UTC), limits=LIMITS)

    assert (reading.running, reading.waiting, reading.kv_usage) == (6, 4, 0.7)
    assert (reading.arrived, reading.finished, reading.rejections) == (25, 25, 5)
    assert (reading.ttft.below, reading.ttft.count) == (0, 25)
    assert (reading.tpot.below, reading.queue.below) == (25, 25)


def test_it_loses_its_counts_when_it_restarts():
    engine = SimulatedEngine()
    engine.count(arrived=5, finished=5)
    engine.restart()

    reading = read_metrics(engine.metrics().decode(), pod="a", at=datetime.now(UTC), limits=LIMITS)

    assert (reading.arrived, reading.finished) == (0, 0)


def test_it_is_healthy_and_completes_one_token_until_it_is_told_not_to_be():
    with EngineHost() as host:
        engine = host.add(SimulatedEngine())
        body = json.dumps({"model": "tiny", "prompt": "a", "max_tokens": 1}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{engine.port}/health", timeout=5) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{engine.port}/v1/completions", data=body, timeout=5) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == 1
        engine.healthy = False
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"http://127.0.0.1:{engine.port}/health", timeout=5)

    assert "vllm:request_success_total" in engine.metrics().decode()
