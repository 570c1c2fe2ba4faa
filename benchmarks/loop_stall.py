"""How long the operator's event loop stands still while signals come in.

Plans with their pods are followed on one Prometheus, which a process of its own plays: it gives way to this one, so
that its work is not measured on a machine of two processors either. A task that wants to run every millisecond measures
by how much it is late. `longest_stall_ms` is that on the clock, so it holds what other processes took;
`longest_busy_ms` is the processor time of this process alone, all threads together, between two ticks: what the stall
is at most where a processor is free. Prints one line of figures.

    python benchmarks/loop_stall.py [--plans 1000] [--pods 5] [--rounds 8]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import re
import resource
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from aiohttp import web

from servingplan.clients.engine_series import Limits
from servingplan.clients.sources import Source
from servingplan.controller.clock import SystemClock, system_now
from servingplan.controller.polling import POLL_EVERY
from servingplan.controller.signals import EnginePod, Following, SignalPoller
from servingplan.controller.store import Key
from servingplan.planning.signals import Signals
from servingplan.rendering.engine import HISTOGRAM_BUCKETS

TICK_S = 0.001
GIVES_WAY = 10
"""The server's niceness: in production it runs somewhere else."""
EDGES = HISTOGRAM_BUCKETS["time_to_first_token"]


def pod_name(plan: int, pod: int) -> str:
    """As a Deployment names its pods."""
    return f"support-chat-{plan:04}-6c9f7d8b5f-x{pod:04}"


def play_prometheus(pods: list[str], ready: Connection) -> None:
    """Answer every query for every pod, until the process is ended."""
    os.nice(GIVES_WAY)

    def answer(query: str) -> dict[str, object]:
        now_s = time.time()
        if query.startswith("count by (le)"):
            found = [{"metric": {"le": edge}, "value": [now_s, "1"]} for edge in [*map(str, EDGES), "+Inf"]]
        else:
            edges = re.search(r'le=~"([^"]*)"', query)
            les = [le.replace("\\", "") for le in edges.group(1).split("|")] if edges else [""]
            value = f"{now_s - 3:.3f}" if "timestamp" in query else "12"
            found = [
                {"metric": {"namespace": "llm", "pod": pod} | ({"le": le} if le else {}), "value": [now_s, value]}
                for pod in pods
                for le in les
            ]
        return {"status": "success", "data": {"resultType": "vector", "result": found}}

    async def query(request: web.Request) -> web.Response:
        return web.Response(body=json.dumps(answer((await request.post())["query"])), content_type="application/json")

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/api/v1/query", query)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


async def watch_the_loop(late_s: list[float], busy_s: list[float]) -> None:
    """Note by how much each tick is late, and how long this process computed meanwhile."""
    while True:
        began_s, computed_s = time.monotonic(), time.process_time()
        await asyncio.sleep(TICK_S)
        late_s.append(time.monotonic() - began_s - TICK_S)
        busy_s.append(time.process_time() - computed_s)


def limits(plan: int) -> Limits:
    """Ten different sets of objectives, as teams state them."""
    return Limits(ttft=(0.5, 1.0, 1.5, 2.0, 5.0)[plan % 5], tpot=(0.05, 0.06)[plan % 2], queue=0.5)


def followed(plans: int, pods: int) -> Iterator[tuple[Key, Following, list[EnginePod]]]:
    """All plans with their pods."""
    for plan in range(plans):
        names = [EnginePod(name=pod_name(plan, pod)) for pod in range(pods)]
        yield Key(namespace="llm", name=f"plan-{plan}"), Following(source="default", limits=limits(plan)), names


async def measure(port: int, plans: int, pods: int, rounds: int) -> dict[str, object]:
    """Poll as often as told, and hear every plan after each poll."""
    queries, late_s, busy_s, took_s = [0], [], [], []

    def count(**_: str) -> None:
        queries[0] += 1

    poller = SignalPoller(
        sources={"default": Source(url=f"http://127.0.0.1:{port}", timeout=9)},
        clock=SystemClock(),
        observe=count,
        on_polled=lambda _: None,
        real_now=system_now,
    )
    everything = list(followed(plans, pods))
    for key, following, names in everything:
        poller.heard(key, following, names, system_now())
    watch = asyncio.create_task(watch_the_loop(late_s, busy_s))
    for _ in range(rounds):
        began_s = time.monotonic()
        await poller.poll()
        took_s.append(time.monotonic() - began_s)
        for key, following, names in everything:  # as reconciles do, one at a time
            assert isinstance(poller.heard(key, following, names, system_now()), Signals)
            await asyncio.sleep(0)
    watch.cancel()
    await poller.close()
    late = sorted(late_s)
    return {
        "plans": plans,
        "pods": plans * pods,
        "rounds": rounds,
        "queries_per_minute": round((queries[0] - 5) / rounds * 60 / POLL_EVERY.total_seconds(), 1),
        "longest_stall_ms": round(late[-1] * 1000, 1),
        "longest_busy_ms": round(max(busy_s) * 1000, 1),
        "p999_stall_ms": round(late[int(len(late) * 0.999)] * 1000, 1),
        "longest_round_s": round(max(took_s), 2),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "python": platform.python_version(),
    }


def main() -> None:
    """Start the server, measure, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--plans", type=int, default=1000)
    options.add_argument("--pods", type=int, default=5, help="pods of each plan")
    options.add_argument("--rounds", type=int, default=8)
    chosen = options.parse_args()
    pods = [pod_name(plan, pod) for plan in range(chosen.plans) for pod in range(chosen.pods)]
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=play_prometheus, args=(pods, there), daemon=True)
    server.start()
    try:
        print(json.dumps(asyncio.run(measure(here.recv(), chosen.plans, chosen.pods, chosen.rounds))))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
