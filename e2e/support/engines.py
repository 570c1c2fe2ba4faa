"""Simulated vLLM engines: many in one process, each on its own port or address of the loopback.

/metrics is written by the library that vLLM writes it with, with vLLM's names, labels and types; what the engine does
is a `Load` that a test sets. `e2e/test_engines.py` holds the text against recordings of the real engine.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from servingplan.rendering.engine import HISTOGRAM_BUCKETS

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]

OWNED_EDGES: Mapping[str, Sequence[float]] = {
    "ttft": HISTOGRAM_BUCKETS["time_to_first_token"],
    "tpot": HISTOGRAM_BUCKETS["inter_token_latency"],
    "request": HISTOGRAM_BUCKETS["request_latency"],
    "tokens": HISTOGRAM_BUCKETS["request_tokens"],
}
"""The edges that the operator renders for engines of its own."""

VLLM_EDGES: Mapping[str, Sequence[float]] = {
    "ttft": (
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
        2560,
    ),
    "tpot": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
    "request": (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680),
    "tokens": (1, 2, 5, 10, 20, 50, 100, 200, 500),
}  # fmt: skip
"""vLLM's own edges, those of tokens for a model length of 512."""

FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")
REJECTION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What an engine does from now on. Rates in requests/s, durations in seconds, of every request alike.

    finished_per_s: None: as many as get a first token.
    """

    running: float = 0
    waiting: float = 0
    deferred: float = 0
    kv_usage: float = 0
    arrivals_per_s: float = 0
    finished_per_s: float | None = None
    rejections_per_s: float = 0
    preemptions_per_s: float = 0
    ttft_s: float = 0.2
    tpot_s: float = 0.02
    queue_s: float = 0.005
    prompt_tokens: int = 100
    output_tokens: int = 50
    prefix_hit_share: float = 0.0


class _Series:
    """The metrics of one API server with some engines, since its start."""

    def __init__(self, *, model: str, engines: int, edges: Mapping[str, Sequence[float]], lora: bool) -> None:
        self.registry = CollectorRegistry()
        self._model = model
        self._engines = [str(engine) for engine in range(engines)]
        self.running = self._each(Gauge, "num_requests_running", "Number of requests in model execution batches.")
        self.waiting = self._each(Gauge, "num_requests_waiting", "Number of requests waiting to be processed.")
        self.by_reason = self._gauge("num_requests_waiting_by_reason", "Waiting requests by reason.", "reason")
        self.kv_usage = self._each(Gauge, "kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        self.preemptions = self._each(Counter, "num_preemptions", "Cumulative number of preemptions.")
        self.prompt_tokens = self._each(Counter, "prompt_tokens", "Number of prefill tokens processed.")
        self.output_tokens = self._each(Counter, "generation_tokens", "Number of generation tokens processed.")
        self.finished = Counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            ("model_name", "engine", "finished_reason"),
            registry=self.registry,
        )
        self.rejections = Counter(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            ("model_name", "reason"),
            registry=self.registry,
        )
        self.prompts = self._histogram("request_prompt_tokens", edges["tokens"])
        self.outputs = self._histogram("request_generation_tokens", edges["tokens"])
        self.prefix_queries = self._each(Counter, "prefix_cache_queries", "Prefix cache queries, in queried tokens.")
        self.prefix_hits = self._each(Counter, "prefix_cache_hits", "Prefix cache hits, in cached tokens.")
        self.ttft = self._histogram("time_to_first_token_seconds", edges["ttft"])
        self.token = self._histogram("inter_token_latency_seconds", edges["tpot"])
        self.tpot = self._histogram("request_time_per_output_token_seconds", edges["tpot"])
        self.e2el = self._histogram("e2e_request_latency_seconds", edges["request"])
        self.queue = self._histogram("request_queue_time_seconds", edges["request"])
        self._start_at_zero()
        if lora:
            names = ("max_lora", "waiting_lora_adapters", "running_lora_adapters")
            info = Gauge("vllm:lora_requests_info", "Running stats on lora requests.", names, registry=self.registry)
            info.labels("1", "", "").set(time.time())

    def _each(self, kind: Any, name: str, text: str, **options: Any) -> list[Any]:
        metric = kind(f"vllm:{name}", text, ("model_name", "engine"), registry=self.registry, **options)
        return [metric.labels(self._model, engine) for engine in self._engines]

    def _gauge(self, name: str, text: str, label: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, ("model_name", "engine", label), registry=self.registry)

    def _histogram(self, name: str, edges: Sequence[float]) -> list[Histogram]:
        return self._each(Histogram, name, f"Histogram of {name}.", buckets=edges)

    def _start_at_zero(self) -> None:
        """vLLM's series exist before the first request."""
        for engine in self._engines:
            for reason in FINISHED_REASONS:
                self.finished.labels(self._model, engine, reason)
        for reason in REJECTION_REASONS:
            self.rejections.labels(self._model, reason)

    def show(self, load: Load) -> None:
        """Set the gauges; each engine has its part."""
        share = 1 / len(self._engines)
        for index, engine in enumerate(self._engines):
            self.running[index].set(load.running * share)
            self.waiting[index].set((load.waiting + load.deferred) * share)
            self.by_reason.labels(self._model, engine, "capacity").set(load.waiting * share)
            self.by_reason.labels(self._model, engine, "deferred").set(load.deferred * share)
            self.kv_usage[index].set(load.kv_usage if index == 0 else load.kv_usage / 2)

    def arrive(self, index: int, load: Load) -> None:
        """One first token."""
        engine = index % len(self._engines)
        self.ttft[engine].observe(load.ttft_s)

    def finish(self, index: int, load: Load) -> None:
        """One finished request."""
        engine = index % len(self._engines)
        self.finished.labels(self._model, str(engine), "length").inc()
        self.prompts[engine].observe(load.prompt_tokens)
        self.prompt_tokens[engine].inc(load.prompt_tokens)
        self.outputs[engine].observe(load.output_tokens)
        self.prefix_queries[engine].inc(load.prompt_tokens)
        self.prefix_hits[engine].inc(load.prompt_tokens * load.prefix_hit_share)
        self.output_tokens[engine].inc(load.output_tokens)
        self.tpot[engine].observe(load.tpot_s)
        self.token[engine].observe(load.tpot_s)
        self.queue[engine].observe(load.queue_s)
        self.e2el[engine].observe(load.ttft_s + load.tpot_s * load.output_tokens)

    def reject(self, _: int, __: Load) -> None:
        """One request refused at the door."""
        self.rejections.labels(self._model, REJECTION_REASONS[0]).inc()

    def preempt(self, index: int, _: Load) -> None:
        """One request pushed out of the KV cache."""
        self.preemptions[index % len(self._engines)].inc()


class SimulatedEngine:
    """One pod. Counts go on by themselves, by its load and the seconds of `clock`; `fault` answers instead of it.

    Thread-safe: a test sets what the server's thread shows.
    """

    def __init__(
        self,
        *,
        model: str = "tiny",
        engines: int = 1,
        edges: Mapping[str, Sequence[float]] = OWNED_EDGES,
        lora: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        self.healthy = True
        self.fault: Fault | None = None
        self.model = model
        self._options: dict[str, Any] = {"model": model, "engines": engines, "edges": edges, "lora": lora}
        self._clock = clock
        self._lock = threading.RLock()
        self._load = Load()
        self.restart()

    def restart(self) -> None:
        """Lose all counts, as an engine that crashed does."""
        with self._lock:
            self._series = _Series(**self._options)
            self._counted_at_s = self._clock()
            self._due = {"arrive": 0.0, "finish": 0.0, "reject": 0.0, "preempt": 0.0}
            self._index = 0
            self._series.show(self._load)

    def set(self, **changes: Any) -> None:
        """Change the load from now on; what is not named stays."""
        with self._lock:
            self._go_on()
            self._load = replace(self._load, **changes)
            self._series.show(self._load)

    def count(self, *, arrived: int = 0, finished: int = 0, rejected: int = 0, preempted: int = 0) -> None:
        """Count requests at once, each as the present load says."""
        with self._lock:
            self._go_on()
            numbers = {"arrive": arrived, "finish": finished, "reject": rejected, "preempt": preempted}
            self._add({what: float(number) for what, number in numbers.items()})

    def metrics(self) -> bytes:
        """The text of /metrics now."""
        with self._lock:
            self._go_on()
            return generate_latest(self._series.registry)

    def _go_on(self) -> None:
        now_s = self._clock()
        seconds, self._counted_at_s = now_s - self._counted_at_s, now_s
        load = self._load
        finished = load.arrivals_per_s if load.finished_per_s is None else load.finished_per_s
        rates = {
            "arrive": load.arrivals_per_s,
            "finish": finished,
            "reject": load.rejections_per_s,
            "preempt": load.preemptions_per_s,
        }
        self._add({what: rate * seconds for what, rate in rates.items()})

    def _add(self, numbers: Mapping[str, float]) -> None:
        for what, number in numbers.items():
            whole, self._due[what] = divmod(self._due[what] + number, 1)
            for _ in range(int(whole)):
                self._index += 1
                getattr(self._series, what)(self._index, self._load)

    # ---- what it serves ----

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer as vLLM does: /metrics, /health, and completions of one token each."""
        if self.fault is not None:
            return await self.fault(request)
        if request.path == "/metrics":
            return web.Response(body=self.metrics(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
        if request.path == "/health":
            return web.Response(status=200 if self.healthy else 503)
        if request.path == "/v1/completions" and request.method == "POST":
            return self._complete()
        return web.json_response({"detail": "Not Found"}, status=404)

    def _complete(self) -> web.Response:
        if not self.healthy:
            return web.json_response({"error": {"message": "the engine is not ready", "code": 503}}, status=503)
        self.count(arrived=1, finished=1)
        choice = {"index": 0, "text": "a", "finish_reason": "length", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response(
            {"id": "cmpl-1", "object": "text_completion", "model": self.model, "choices": [choice], "usage": usage}
        )


class EngineHost:
    """Serves engines, each on a port of its own, from one thread. A context manager: the ports close with it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engines", daemon=True)
        self._runners: dict[tuple[str, int], web.AppRunner] = {}

    def __enter__(self) -> EngineHost:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for address in list(self._runners):
            self._await(self._runners.pop(address).cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def add(self, engine: SimulatedEngine, host: str = "127.0.0.1", port: int = 0) -> SimulatedEngine:
        """Serve an engine, at a loopback address and, unless told, a port of its own; it knows them then."""
        engine.host = host
        engine.port = self._await(self._serve(engine, host, port))
        return engine

    def serve(self, answer: Fault) -> int:
        """Serve whatever a function answers; the port."""
        engine = SimulatedEngine()
        engine.fault = answer
        return self.add(engine).port

    def remove(self, engine: SimulatedEngine) -> None:
        """Close an engine's port: connections to it are refused."""
        self._await(self._runners.pop((engine.host, engine.port)).cleanup())

    async def _serve(self, engine: SimulatedEngine, host: str, port: int) -> int:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", engine.serve)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        await site.start()
        served = int(runner.addresses[0][1])
        self._runners[host, served] = runner
        return served

    def _await(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
