"""Stands in for vLLM: `bench serve` answers at once with what a simulated server would have done; and a small HTTP
server with the endpoints that a ramp asks.

As a program: ``fake_vllm.py bench serve ...`` writes the result that its arguments ask for; with ``FAKE_VLLM=hang`` it
never ends, with ``FAKE_VLLM=fail`` it ends with an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.2
vllm:num_preemptions_total{engine="0",model_name="tiny"} 0.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 10.0
vllm:cache_config_info{engine="0",kv_cache_size_tokens="4096"} 1.0
"""


def serve(arguments: argparse.Namespace) -> None:
    """Write a result."""
    from support.benches import schedule  # noqa: PLC0415  only in this program

    count, rate = arguments.num_prompts, arguments.request_rate
    lines = Path(arguments.dataset_path).read_text().splitlines()
    tokens = [json.loads(line)["output_tokens"] for line in lines]
    slow = 0.01 if rate < 20 else 1.0
    now = time.perf_counter()
    result = {
        "request_rate": rate,
        "burstiness": arguments.burstiness,
        "start_times": [now + at for at in schedule(count, rate, arguments.seed)],
        "ttfts": [0.05] * count,
        "itls": [[slow] * (wanted - 1) for wanted in tokens],
        "latencies": [0.05 + slow * (wanted - 1) for wanted in tokens],
        "queue_times": [0.0] * count,
        "input_lens": [12] * count,
        "output_lens": tokens,
        "errors": [""] * count,
    }
    (Path(arguments.result_dir) / arguments.result_filename).write_text(json.dumps(result))


def main() -> None:
    """The program."""
    how = os.environ.get("FAKE_VLLM")
    if seen := os.environ.get("FAKE_VLLM_SEEN"):
        Path(seen).write_text(json.dumps({"pid": os.getpid(), "arguments": sys.argv[1:]}))
    if how == "hang":
        time.sleep(600)
    if how == "fail":
        raise SystemExit("Traceback: the tokenizer tiny was not found")
    parser = argparse.ArgumentParser()
    parser.add_argument("verbs", nargs=2)
    parser.add_argument("--num-prompts", type=int)
    parser.add_argument("--request-rate", type=float)
    parser.add_argument("--burstiness", type=float)
    parser.add_argument("--seed", type=int)
    for name in ("--dataset-path", "--result-dir", "--result-filename"):
        parser.add_argument(name)
    serve(parser.parse_known_args()[0])


@contextmanager
def a_server(key: str | None = None) -> Iterator[str]:
    """The address of a server that answers every request at once; with a key, only those that bring it."""

    async def completions(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range((await request.json())["max_tokens"]):
            await response.write(b'data: {"choices": [{"text": "a"}]}\n\n')
        await response.write(b'data: {"choices": [], "usage": {"prompt_tokens": 12}}\n\ndata: [DONE]\n\n')
        return response

    app = web.Application(middlewares=[_keyed(key)] if key else [])
    app.router.add_get("/v1/models", _always({"data": [{"id": "tiny"}]}))
    app.router.add_get("/version", _always({"version": "0.32.0"}))
    app.router.add_get("/metrics", _metrics)
    app.router.add_post("/tokenize", _always({"count": 12}))
    app.router.add_post("/v1/completions", completions)
    with serving(app) as url:
        yield url


@contextmanager
def serving(app: web.Application) -> Iterator[str]:
    """The address of an application, served by a thread of its own."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app)

    async def start() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return int(runner.addresses[0][1])

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{asyncio.run_coroutine_threadsafe(start(), loop).result(10)}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _keyed(key: str) -> Callable[..., Awaitable[web.StreamResponse]]:
    @web.middleware
    async def asked(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        return await handler(request)

    return asked


def _always(body: object) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body)

    return answer


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(text=METRICS)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]
    main()
