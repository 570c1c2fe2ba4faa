"""Builders of what a benchmark sees: runs, figures of a run, and results of `vllm bench serve`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from servingplan.benchmarking.effort import Effort
from servingplan.benchmarking.goodput import Block
from servingplan.benchmarking.record import Asked, Fingerprint, Kept, Unloaded
from servingplan.benchmarking.run import Client, Engine, Probes, Run, Seen, Spread, Void, VoidReason
from servingplan.benchmarking.validity import Expected
from support.plans import a_workload

SHORT = Effort(name="quick", seeds=1, most_seeds=1, resolution=1.2, warm_up_s=5, window_s=20, longest_s=1e6)
"""One run decides a rate, for rates that lie far apart; in the place of the effort of that name."""


def a_spread(seconds: float = 0.2) -> Spread:
    """Around so many seconds."""
    return Spread(mean=seconds, p50=seconds, p95=2 * seconds, p99=3 * seconds)


def a_client(**changes: Any) -> Client:
    """A client that kept up with 5 requests/s."""
    client = Client(
        dispatch_rate=5.0,
        lag_p99=0.004,
        cores=0.3,
        silence=0.0,
        silences=0,
        input_tokens=700.0,
        output_tokens=200.0,
    )
    return replace(client, **changes)


def an_engine_seen(**changes: Any) -> Engine:
    """An engine at ease: nothing waits, half of its KV cache is free."""
    engine = Engine(
        waiting=0.0,
        waiting_for_capacity=0.0,
        waiting_early=0.0,
        waiting_late=0.0,
        running_p50=30.0,
        running_high=38.0,
        kv_p90=0.5,
        preemptions=0.0,
        finished=900.0,
        arrived=900.0,
        rejections=0.0,
        prefix_hit_share=0.0,
        iteration_tokens=((16.0, 0.2), (512.0, 0.8), (2048.0, 0.0)),
        api_cores=0.4,
        queue_s=0.0,
        inference_s=6.0,
        latency_s=6.1,
    )
    return replace(engine, **changes)


def a_seen(*, engine: Engine | None = None, client: Client | None = None, **changes: Any) -> Seen:
    """What a good run at 5 requests/s saw."""
    seen = Seen(
        sent=900,
        failed=0,
        misses={"ttft": 0, "tpot": 0, "e2el": 0},
        ttft=a_spread(),
        tpot=a_spread(0.02),
        e2el=a_spread(6.0),
        itl_median=0.02,
        input_tokens=700.0,
        input_tokens_p95=2400.0,
        output_tokens=200.0,
        in_flight_mean=30.0,
        in_flight_p99=44.0,
        client=client or a_client(),
        engine=engine or an_engine_seen(),
        probes=Probes(before=0.5, after=0.52),
        others=0.0,
    )
    return replace(seen, **changes)


def expected(**changes: Any) -> Expected:
    """What a run at 5 requests/s was asked for."""
    asked = Expected(rate=5.0, ttft_limit_s=1.5, input_tokens=700.0, output_tokens=200.0, prefix_hit_share=0.0)
    return replace(asked, **changes)


def a_run(rate: float, good: float, *, seed: int = 0, blocks: int = 6, a_block: int = 150, **changes: Any) -> Run:
    """A run of which that share was good, in every block the same."""
    met = round(good * a_block)
    run = Run(
        rate=rate,
        seed=seed,
        took_s=210.0,
        window_s=180.0,
        blocks=tuple(Block(sent=a_block, met=(met,)) for _ in range(blocks)),
        seen=a_seen(),
    )
    return replace(run, **changes)


def a_void(rate: float, reason: VoidReason = VoidReason.NEIGHBOUR, *, seed: int = 0) -> Run:
    """A run that does not count."""
    return a_run(rate, 1.0, seed=seed, voids=(Void(reason=reason, message="said so"),))


def a_ramp(*runs: Run, replicas: int = 1, start: float = 5.0, **changes: Any) -> Kept:
    """A kept ramp at the worked example's objectives."""
    kept = Kept(
        name="ramp-1",
        started="2026-12-01T07:00:00+00:00",
        asked=Asked(
            objectives=a_workload().objectives,
            effort="standard",
            start=start,
            longest_s=1e6,
            burstiness=1.0,
            prefix_hit_share=0.0,
            replicas=replicas,
        ),
        fingerprint=Fingerprint(
            url="http://engine:8000",
            model="qwen3-14b",
            vllm="0.32.0",
            chat=False,
            dataset="sha256:" + "ab" * 32,
            max_num_seqs=128,
            max_num_batched_tokens=2048,
            cache={"kv_cache_size_tokens": "80000"},
            scheduler={},
            parallel={},
        ),
        unloaded=Unloaded(ttft_p95_s=0.08, latency_s=4.0, prefill_tokens_per_s=9000.0),
        runs=runs,
    )
    return replace(kept, **changes)


def a_result(
    *,
    started: Sequence[float] = (0.0, 1.0, 2.0),
    ttft: float = 0.1,
    gap: float = 0.02,
    tokens: int = 11,
    **changes: Any,
) -> str:
    """A result of `vllm bench serve`, all requests alike; None takes a key out."""
    count = len(started)
    result: dict[str, Any] = {
        "request_rate": 1.0,
        "burstiness": 1.0,
        "start_times": [100.0 + start for start in started],
        "ttfts": [ttft] * count,
        "itls": [[gap] * (tokens - 1)] * count,
        "latencies": [ttft + gap * (tokens - 1)] * count,
        "queue_times": [0.0] * count,
        "input_lens": [50] * count,
        "output_lens": [tokens] * count,
        "errors": [""] * count,
        **changes,
    }
    return json.dumps({key: value for key, value in result.items() if value is not None})


def schedule(count: int, rate: float, seed: int) -> list[float]:
    """When vLLM's client sends a Poisson stream, in seconds."""
    times = np.cumsum(np.random.RandomState(seed).gamma(1.0, 1 / rate, size=count))
    return [float(time) for time in times * (count / rate / times[-1])]


def a_found_ramp(rate: float = 5.0, *, replicas: int = 1) -> Kept:
    """A ramp that ended: at `rate` a pool of so many replicas holds, 2.4 % above it does not; one run was void."""
    pool = rate * replicas
    above = float(f"{pool * 1.024:.4g}")
    runs = [
        *(a_run(pool, 0.999, seed=seed, a_block=1000) for seed in range(8)),
        a_void(above, VoidReason.WARM_CACHE, seed=8),
        *(a_run(above, 0.93, seed=seed, a_block=1000) for seed in range(9, 12)),
    ]
    return a_ramp(*runs, replicas=replicas)
