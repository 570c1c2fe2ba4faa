"""What one run saw, as plain numbers.

In: the requests of the whole run, the engine's readings during it, the probes around it. Out: a `Run`, judged valid or
void. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from servingplan.benchmarking import validity
from servingplan.benchmarking.goodput import blocks, met
from servingplan.benchmarking.requests import Floats, Requests
from servingplan.benchmarking.run import Client, Engine, Probes, Run, Seen, Spread
from servingplan.clients.engine_load import EngineLoad
from servingplan.planning.plan import Objectives

FEWEST_READINGS = 3
"""Readings in a window from which on they are an account of it."""

RISING = 2.0
"""A queue rises where at least so many more requests wait in the last third of a window than in the first, and twice as
many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run as it was measured. loads: readings of the engine; before, after: around all of the run's requests.

    client_cpu: (monotonic instant, processor seconds) of the client. All instants are on the machine's monotonic clock.
    own: requests that the run sent, warm-up requests of the client included.
    """

    requests: Requests
    loads: Sequence[EngineLoad]
    before: EngineLoad | None
    after: EngineLoad | None
    client_cpu: Sequence[tuple[float, float]]
    probes: Probes | None
    own: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Where a run's window lies, in seconds since its first request, and what the run is. took_s: all of it."""

    rate: float
    seed: int
    extended: bool
    warm_up_s: float
    window_s: float
    took_s: float


def run_of(measured: Measured, plot: Plot, objectives: Objectives, expected: validity.Expected) -> Run:
    """The run, with its blocks, its figures and its voids."""
    found = seen(measured, plot, objectives)
    voids, unjudged = validity.judge(found, expected)
    return Run(
        rate=plot.rate,
        seed=plot.seed,
        extended=plot.extended,
        took_s=plot.took_s,
        window_s=plot.window_s,
        blocks=blocks(measured.requests, objectives, start=plot.warm_up_s, length=plot.window_s),
        voids=voids,
        unjudged=unjudged,
        queue_rises=found.engine is not None and _rises(found.engine),
        seen=found,
    )


def seen(measured: Measured, plot: Plot, objectives: Objectives) -> Seen:
    """The figures of the window."""
    start, end = plot.warm_up_s, plot.warm_up_s + plot.window_s
    everything, window = measured.requests, measured.requests.within(start, end)
    answered = ~window.failed
    flags = met(window, objectives)
    in_flight_mean, in_flight_p99 = everything.in_flight(start, end)
    edges = (everything.clock + start, everything.clock + end)
    return Seen(
        sent=len(window.started),
        failed=int(window.failed.sum()),
        misses={name: int((~flags[name] & answered).sum()) for name, _ in objectives.stated},
        ttft=_spread(window.ttft[answered]),
        tpot=_spread(window.tpot[answered & (window.output_tokens > 1)]),
        e2el=_spread(window.latency[answered]),
        itl_median=window.itl_median,
        input_tokens=_mean(window.input_tokens[answered]),
        input_tokens_p95=float(np.quantile(window.input_tokens, 0.95)) if len(window.started) else 0.0,
        output_tokens=_mean(window.output_tokens[answered]),
        in_flight_mean=in_flight_mean,
        in_flight_p99=in_flight_p99,
        client=_client(everything, window, measured, edges),
        engine=_engine([load for load in measured.loads if edges[0] <= load.at <= edges[1]]),
        probes=measured.probes,
        others=_others(measured),
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _spread(values: Floats) -> Spread | None:
    if not len(values):
        return None
    p50, p95, p99 = (float(quantile) for quantile in np.quantile(values, (0.5, 0.95, 0.99)))
    return Spread(mean=float(values.mean()), p50=p50, p95=p95, p99=p99)


def _client(everything: Requests, window: Requests, measured: Measured, edges: tuple[float, float]) -> Client:
    lasted = float(everything.started[-1]) if len(everything.started) > 1 else 0.0
    stalls = None if window.silences is None else [silence.length for silence in window.silences]
    return Client(
        # Between n requests lie n - 1 gaps.
        dispatch_rate=(len(everything.started) - 1) / lasted if lasted > 0 else 0.0,
        lag_p99=float(np.quantile(window.lag, 0.99)) if len(window.lag) else 0.0,
        cores=_cores([sample for sample in measured.client_cpu if edges[0] <= sample[0] <= edges[1]]),
        silence=None if stalls is None else max(stalls, default=0.0),
        silences=sum(length >= validity.STALL_S for length in stalls or ()),
        input_tokens=_mean(everything.input_tokens[~everything.failed]),
        output_tokens=_mean(everything.output_tokens[~everything.failed]),
    )


def _cores(samples: Sequence[tuple[float, float]]) -> float | None:
    if len(samples) < FEWEST_READINGS:
        return None
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    return (last - first) / (last_at - first_at)


def _others(measured: Measured) -> float | None:
    """Requests that reached the engine while the run went on and were not its own."""
    if measured.before is None or measured.after is None:
        return None
    arrived = measured.after.arrived - measured.before.arrived
    arrived += measured.after.rejections - measured.before.rejections
    return max(0.0, arrived - measured.own) + measured.before.running + measured.before.waiting


def _engine(loads: Sequence[EngineLoad]) -> Engine | None:
    if len(loads) < FEWEST_READINGS:
        return None
    first, last, third = loads[0], loads[-1], max(1, len(loads) // 3)
    waiting, running = [load.waiting for load in loads], [load.running for load in loads]
    for_capacity = [load.waiting_for_capacity for load in loads if load.waiting_for_capacity is not None]
    usage = [load.kv_usage for load in loads if load.kv_usage is not None]
    seconds = last.at - first.at
    return Engine(
        waiting=float(np.mean(waiting)),
        waiting_for_capacity=float(np.mean(for_capacity)) if for_capacity else None,
        waiting_early=float(np.mean(waiting[:third])),
        waiting_late=float(np.mean(waiting[-third:])),
        running_p50=float(np.quantile(running, 0.5)),
        running_high=float(np.quantile(running, 0.95)),
        kv_p90=float(np.quantile(usage, 0.9)) if usage else None,
        preemptions=last.preemptions - first.preemptions,
        finished=last.finished - first.finished,
        arrived=last.arrived - first.arrived,
        rejections=last.rejections - first.rejections,
        prefix_hit_share=_share(last.prefix_hits, first.prefix_hits, last.prefix_queries, first.prefix_queries),
        iteration_tokens=_iterations(first, last),
        api_cores=None
        if last.api_cpu_s is None or first.api_cpu_s is None
        else (last.api_cpu_s - first.api_cpu_s) / seconds,
        queue_s=_mean_between(first.queue, last.queue),
        inference_s=_mean_between(first.inference, last.inference),
        latency_s=_mean_between(first.latency, last.latency),
    )


def _share(hits: float | None, hits_before: float | None, of: float | None, of_before: float | None) -> float | None:
    if hits is None or hits_before is None or of is None or of_before is None or of <= of_before:
        return None
    return (hits - hits_before) / (of - of_before)


def _mean_between(first: tuple[float, float] | None, last: tuple[float, float] | None) -> float | None:
    """Of a histogram's sum and count."""
    if first is None or last is None or last[1] <= first[1]:
        return None
    return (last[0] - first[0]) / (last[1] - first[1])


def _iterations(first: EngineLoad, last: EngineLoad) -> tuple[tuple[float, float], ...]:
    """Cumulative buckets to shares a bucket, by upper edge."""
    counts = [(edge, count - first.iteration_tokens.get(edge, 0.0)) for edge, count in last.iteration_tokens.items()]
    total = max((count for _, count in counts), default=0.0)
    if total <= 0:
        return ()
    below = sorted(counts)
    shares = [(below[0][0], below[0][1] / total)] if below else []
    return (*shares, *((edge, (count - before) / total) for (_, before), (edge, count) in pairwise(below)))


def _rises(engine: Engine) -> bool:
    return engine.waiting_late - engine.waiting_early >= RISING and engine.waiting_late >= 2 * engine.waiting_early
