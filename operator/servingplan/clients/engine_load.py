"""What an engine under a benchmark says of itself: queue, batch, KV cache, preemptions, prefix cache.

In: the text of /metrics of one API server. Out: an `EngineLoad`; or `NoReading` where the text is broken, or another
program's. What a version does not have is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from servingplan.clients.engine_metrics import Lines, lines_by_name
from servingplan.clients.engine_series import NAMES, WAITING_BY_REASON, NoReading, Signal
from servingplan.planning.reasons import Reason

_CAPACITY = "capacity"
_PREFIX_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
_PREFIX_QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
_ITERATIONS = "vllm:iteration_tokens_total_bucket"
_CPU = "process_cpu_seconds_total"
_CACHE = "vllm:cache_config_info"
_QUEUE, _INFERENCE, _LATENCY = (
    "vllm:request_queue_time_seconds",
    "vllm:request_inference_time_seconds",
    "vllm:e2e_request_latency_seconds",
)
_COUNTED = (
    Signal.RUNNING,
    Signal.WAITING,
    Signal.ARRIVED,
    Signal.FINISHED,
    Signal.PREEMPTIONS,
    Signal.REJECTIONS,
    Signal.KV_USAGE,
)
_WANTED = frozenset(
    {
        *(name for signal in _COUNTED for name in NAMES[signal]),
        *_PREFIX_HITS,
        *_PREFIX_QUERIES,
        WAITING_BY_REASON,
        _ITERATIONS,
        _CPU,
        _CACHE,
        *(name + end for name in (_QUEUE, _INFERENCE, _LATENCY) for end in ("_sum", "_count")),
    }
)
_NEEDED = (Signal.RUNNING, Signal.WAITING, Signal.ARRIVED, Signal.FINISHED, Signal.PREEMPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """One reading; counters since the start, summed over engines. at: seconds on the caller's clock.

    kv_usage: 0 to 1, the maximum over engines. iteration_tokens: cumulative counts by upper edge. queue, inference,
    latency: (sum in seconds, count) of finished requests. api_cpu_s: processor seconds of the API server. cache:
    what it says of its KV cache.
    """

    at: float
    running: float
    waiting: float
    waiting_for_capacity: float | None
    kv_usage: float | None
    arrived: float
    finished: float
    preemptions: float
    rejections: float
    prefix_hits: float | None
    prefix_queries: float | None
    iteration_tokens: Mapping[float, float]
    queue: tuple[float, float] | None
    inference: tuple[float, float] | None
    latency: tuple[float, float] | None
    api_cpu_s: float | None
    cache: Mapping[str, str]


def kv_tokens(cache: Mapping[str, str]) -> float | None:
    """How many tokens the KV cache holds, by what an engine says of it (`EngineLoad.cache`); None where it does not."""
    stated = cache.get("kv_cache_size_tokens", "")
    if stated.isdigit():
        return float(stated)
    size, blocks = cache.get("block_size", ""), cache.get("num_gpu_blocks", "")
    return float(size) * float(blocks) if size.isdigit() and blocks.isdigit() else None


def read_load(text: str, *, server: str, at: float) -> EngineLoad:
    """The reading in a text. server: how messages name it. Raises `NoReading`."""
    try:
        lines = lines_by_name(text, _WANTED, server)
        missing = [signal for signal in _NEEDED if not any(name in lines for name in NAMES[signal])]
        if missing:
            raise NoReading(
                Reason.METRICS_MISSING,
                f"the metrics of {server} have no {NAMES[missing[0]][0]}: is it an engine of vLLM?",
            )
        return _load(lines, at)
    except (ValueError, IndexError, KeyError) as error:
        raise NoReading(Reason.METRICS_INVALID, f"the metrics of {server} cannot be read ({error})") from error


def _load(lines: Lines, at: float) -> EngineLoad:
    sums = {signal: _sum(lines, *NAMES[signal]) or 0.0 for signal in _COUNTED if signal is not Signal.KV_USAGE}
    if not all(math.isfinite(value) for value in sums.values()):
        raise ValueError("a value is no number")
    usage = next((lines[name] for name in NAMES[Signal.KV_USAGE] if name in lines), ())
    for_capacity = [line.value for line in lines.get(WAITING_BY_REASON, ()) if line.labels["reason"] == _CAPACITY]
    iterations: dict[float, float] = {}
    for line in lines.get(_ITERATIONS, ()):
        edge = float(line.labels["le"])
        iterations[edge] = iterations.get(edge, 0.0) + line.value
    cache = lines.get(_CACHE, ())
    return EngineLoad(
        at=at,
        running=sums[Signal.RUNNING],
        waiting=sums[Signal.WAITING],
        waiting_for_capacity=sum(for_capacity) if for_capacity else None,
        kv_usage=max((line.value for line in usage), default=None),
        arrived=sums[Signal.ARRIVED],
        finished=sums[Signal.FINISHED],
        preemptions=sums[Signal.PREEMPTIONS],
        rejections=sums[Signal.REJECTIONS],
        prefix_hits=_sum(lines, *_PREFIX_HITS),
        prefix_queries=_sum(lines, *_PREFIX_QUERIES),
        iteration_tokens=iterations,
        queue=_sum_and_count(lines, _QUEUE),
        inference=_sum_and_count(lines, _INFERENCE),
        latency=_sum_and_count(lines, _LATENCY),
        api_cpu_s=_sum(lines, _CPU),
        cache=dict(cache[0].labels) if cache else {},
    )


def _sum(lines: Lines, *names: str) -> float | None:
    """Of the first name that is there; over all its series."""
    found = next((lines[name] for name in names if name in lines), None)
    return None if found is None else sum(line.value for line in found)


def _sum_and_count(lines: Lines, name: str) -> tuple[float, float] | None:
    total, count = _sum(lines, name + "_sum"), _sum(lines, name + "_count")
    return None if total is None or count is None else (total, count)
