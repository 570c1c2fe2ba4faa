"""One real engine as a process: its metrics are what the simulated one shows and what the operator reads, its probe
completes, and what its end does to streams.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from e2e.support.engines import SimulatedEngine
from e2e.support.eventually import eventually
from e2e.test_engines import LIMITS, edges, families, samples
from e2e.vllm.clients import Client, Connections, End
from e2e.vllm.engines import LONGEST_ANSWER, SERVED_NAME, SMALL_CACHE, Server, cpu_engine
from e2e.vllm.load import Load
from servingplan.clients.engine_metrics import read_metrics
from servingplan.planning.record import Record
from servingplan.rendering.probes import COMPLETION_PROGRAM

QUEUED = 12
AT_ONCE = 40


def probe(environment, server):
    """The startup probe, as the kubelet runs it."""
    program = [environment.python, "-I", "-S", "-c", COMPLETION_PROGRAM, str(server.port), SERVED_NAME, "8"]
    return subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)


def read(server):
    """What the operator reads of it now."""
    return read_metrics(server.get("/metrics"), pod="a", at=datetime.now(UTC), limits=LIMITS)


@pytest.fixture(scope="module")
def engine(environment):
    """The tiny model with a small cache that admits twelve requests."""
    return cpu_engine(environment.model, *SMALL_CACHE, f"--max-num-queued-reqs={QUEUED}")


@pytest.fixture(scope="module")
def starting(environment, engine, tmp_path_factory):
    """An engine that has just been started, and what the probe said of it then."""
    with Server(environment, engine, tmp_path_factory.mktemp("engine") / "vllm.log") as server:
        yield server, probe(environment, server)


@pytest.fixture(scope="module")
def server(starting):
    """An engine that is up."""
    return starting[0].until_up()


def test_the_startup_probe_gets_its_completion_from_a_real_engine_and_not_earlier(environment, starting, server):
    early, later = starting[1], probe(environment, server)

    assert early.returncode == 1
    assert early.stderr.startswith(f"no completion yet: port {server.port}: ConnectionRefusedError")
    assert (later.returncode, later.stderr) == (0, "")


def test_what_is_refused_at_the_door_is_counted_and_arrived_all_the_same(server):
    client = Client(url=server.url, model=SERVED_NAME, tokens=LONGEST_ANSWER, shortest=LONGEST_ANSWER, patience_s=120)

    async def ask_at_once():
        async with client.session(Connections.EACH) as session:
            return await asyncio.gather(*(client.ask(session) for _ in range(AT_ONCE)))

    before = read(server)
    ended = asyncio.run(ask_at_once())
    # The last figures of a step are published after its answers.
    after = eventually(lambda: read(server), lambda reading: reading.running == 0, what="an idle engine")

    refused = [each for each in ended if each.end is End.FAILED]
    assert Counter(each.end for each in ended) == {End.WHOLE: AT_ONCE - len(refused), End.FAILED: len(refused)}
    assert all("'code': 503" in each.detail for each in refused)
    assert 0 < len(refused) <= AT_ONCE - QUEUED
    assert after.rejections - before.rejections == len(refused)
    assert after.arrived - before.arrived == after.finished - before.finished == AT_ONCE - len(refused)
    assert after.preemptions > before.preemptions
    ticks = Record().heard([before], before.at).heard([after], after.at).ticks.values()
    assert sum(tick.arrivals for tick in ticks) == pytest.approx(AT_ONCE)


def test_every_series_of_the_simulated_engine_has_the_name_type_and_labels_of_the_real_one(server):
    simulated = SimulatedEngine(model=SERVED_NAME)
    simulated.count(arrived=3, finished=2, rejected=1, preempted=1)
    shown, real = families(simulated.metrics().decode()), families(server.get("/metrics"))

    for name, family in shown.items():
        assert (name, family.type) == (name, real[name].type)
        assert (name, samples(family)) == (name, samples(real[name]))


def test_the_histograms_have_the_edges_that_the_operator_renders(server):
    shown, real = families(SimulatedEngine().metrics().decode()), families(server.get("/metrics"))
    histograms = {name: family for name, family in shown.items() if family.type == "histogram"}

    assert histograms
    for name, family in histograms.items():
        assert (name, edges(family)) == (name, edges(real[name]))
        assert edges(family)[-1] == math.inf


def test_the_simulated_engine_answers_health_and_completions_like_the_real_one(server):
    asked = json.dumps({"model": SERVED_NAME, "prompt": "a", "max_tokens": 1}).encode()
    real = json.loads(server.post("/v1/completions", asked))
    shown = json.loads(SimulatedEngine()._complete().body)

    assert server.get("/health") == ""
    assert set(shown) <= set(real)
    assert set(shown["choices"][0]) <= set(real["choices"][0])
    assert {name: real["usage"][name] for name in ("completion_tokens",)} == {"completion_tokens": 1}


@pytest.mark.parametrize(
    ("replaced", "loses"),
    [
        pytest.param((), False, id="as-it-is-rendered"),
        pytest.param(("--shutdown-timeout=0",), True, id="vllm-default"),
    ],
)
def test_an_engine_that_ends_finishes_its_streams_only_as_it_is_rendered(environment, tmp_path, replaced, loses):
    engine = cpu_engine(environment.model, drain_timeout=timedelta(seconds=60))
    with Server(environment, engine, tmp_path / "vllm.log", replaced=replaced) as server:
        server.until_up()
        with Load(server.url, tokens=LONGEST_ANSWER, clients=6, patience_s=20) as load:
            eventually(lambda: read(server), lambda reading: reading.running >= 5, what="five streams")
            signalled = time.time()
            server.terminate()
        streams = [each for each in load.ended() if each.begun < signalled <= each.ended]

    assert len(streams) >= 5
    assert any(each.end is not End.WHOLE for each in streams) == loses, load.counts().losses
