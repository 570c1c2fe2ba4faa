"""How long a probe has to be, from what a real engine's took; and what a run is at which the server fell behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import mean, median

import pytest
from aiohttp import web

from servingplan.benchmarking import measuring, validity
from servingplan.benchmarking.command import Target
from servingplan.benchmarking.effort import Effort
from servingplan.benchmarking.goodput import Criterion
from servingplan.benchmarking.level import judge
from servingplan.benchmarking.measuring import PROBE_REQUESTS, PROBE_S, Bench, Workload
from servingplan.benchmarking.prompts import read_prompts
from servingplan.benchmarking.ramp import counted
from servingplan.benchmarking.run import Run
from servingplan.benchmarking.search import Measure
from servingplan.benchmarking.validity import PROBES_OFF
from servingplan.clients.openai_server import OpenAIServer
from servingplan.planning.plan import Objective, Objectives
from support import fake_vllm

RECORDED = Path(__file__).parents[1] / "data" / "vllm" / "probes-neighbours.txt"


def differing(seconds: float) -> float:
    """How often two probes differ by more than is allowed, each of at least so long.

    They take turns, one set of requests each, so that both see the same neighbours.
    """
    sets = [[float(value) for value in line.split()] for line in RECORDED.read_text().splitlines()]
    assert all(len(one) == PROBE_REQUESTS for one in sets)
    beyond, probes = [], ([], [])
    for turn, one in enumerate(sets):
        probes[turn % 2].extend(one)
        if turn % 2 and min(sum(probe) for probe in probes) >= 1000 * seconds:
            before, after = (median(probe) for probe in probes)
            beyond.append(abs(after / before - 1) > PROBES_OFF)
            probes = ([], [])
    return mean(beyond)


def test_two_probes_under_the_same_conditions_differ_where_they_are_short_and_not_where_they_last() -> None:
    assert differing(0.0) > 0.1
    assert differing(PROBE_S) == 0


# ---- a run that does not end ----

SHORT = Effort(name="short", seeds=1, most_seeds=1, resolution=1.2, warm_up_s=0.1, window_s=0.1, longest_s=1e6)
STAYS = "one that stays"
ASKS_AND_WAITS = f"""
import sys, urllib.request
url = sys.argv[sys.argv.index("--base-url") + 1] + "/v1/completions"
urllib.request.urlopen(urllib.request.Request(url, b'{{"prompt": "{STAYS}", "max_tokens": 1}}')).read()
"""


@contextmanager
def a_server_that_falls_behind(*, then_s: float) -> Iterator[str]:
    """It answers at once but for one request, which stays in flight; after that it takes so long a request."""
    staying, pace = set[int](), [0.02]

    async def completions(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        response = web.StreamResponse()
        await response.prepare(request)
        if asked["prompt"] == STAYS:
            staying.add(1)
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(0.01)
            staying.clear()
            pace[0] = then_s
            return response
        await asyncio.sleep(pace[0])
        await response.write(b'data: {"choices": [{"text": "a"}]}\n\n')
        await response.write(b'data: {"choices": [], "usage": {"prompt_tokens": 12}}\n\ndata: [DONE]\n\n')
        return response

    async def metrics(_: web.Request) -> web.Response:
        none = 'running{engine="0",model_name="tiny"} 0.0'
        return web.Response(text=fake_vllm.METRICS.replace(none, none.replace("0.0", f"{len(staying)}.0")))

    async def tokenize(_: web.Request) -> web.Response:
        return web.json_response({"count": 12})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_post("/tokenize", tokenize)
    app.router.add_post("/v1/completions", completions)
    with fake_vllm.serving(app) as url:
        yield url


async def an_unfinished_run(url: str, folder: Path) -> Run:
    lines, program = folder / "prompts.jsonl", folder / "vllm"
    lines.write_text('{"prompt": "say it", "output_tokens": 1}\n' * 20)
    program.write_text(f"#!{sys.executable}\n{ASKS_AND_WAITS}")
    program.chmod(0o755)
    objectives = Objectives(ttft=Objective(percentile="p95", limit=timedelta(seconds=1)))
    async with OpenAIServer(url, key=None) as server:
        prompts = await counted(server, "tiny", read_prompts(lines))
        target = Target(vllm=str(program), url=url, model="tiny", tokenizer=None, chat=False)
        workload = Workload(prompts=prompts, objectives=objectives, burstiness=1.0, prefix_hit_share=0.0)
        level = judge(1.0, (), (Criterion(name="ttft", target=0.95),), SHORT, seed=0)
        bench = Bench(server, target, workload, SHORT, name="ramp", alone=True)
        return await bench.run(Measure(rate=1.0, extended=False, level=level), 0, 0.02)


@pytest.mark.parametrize(
    ("then_s", "reasons"),
    [pytest.param(0.02, [], id="as fast as before"), pytest.param(1.0, ["Neighbour"], id="slower than before")],
)
async def test_a_server_that_falls_behind_fails_unless_something_slowed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then_s: float, reasons: list[str]
) -> None:
    monkeypatch.setattr(measuring, "START_S", 2.0)
    monkeypatch.setattr(measuring, "PROBE_S", 0.0)
    monkeypatch.setattr(measuring, "PROBE_REQUESTS", 3)
    # What a busy machine adds to a few requests is less than six times as much.
    monkeypatch.setattr(validity, "PROBES_OFF", 5.0)
    with a_server_that_falls_behind(then_s=then_s) as url:
        run = await an_unfinished_run(url, tmp_path)
    assert run.unfinished
    assert [void.reason.value for void in run.voids] == reasons
    assert run.unjudged == ()
