"""From a measurement to a run: windows on one clock, counters as differences, and the faults that void it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from servingplan.benchmarking.requests import Silence
from servingplan.benchmarking.run import Probes, VoidReason
from servingplan.benchmarking.seen import Measured, Plot, run_of
from servingplan.benchmarking.validity import Expected
from servingplan.clients.engine_load import EngineLoad
from support.queueing import Server, some_objectives

PLOT = Plot(rate=5.0, seed=0, extended=False, warm_up_s=30.0, window_s=180.0, took_s=240.0)
LIMITS = some_objectives()


def a_load(at: float, **changes: Any) -> EngineLoad:
    """A reading at a second of the run, of an engine that has served 5 requests/s since its start."""
    load = EngineLoad(
        at=1000.0 + at,
        running=30.0,
        waiting=0.0,
        waiting_for_capacity=0.0,
        kv_usage=0.4,
        arrived=500 + 5 * at,
        finished=500 + 5 * at,
        preemptions=7.0,
        rejections=0.0,
        prefix_hits=100.0,
        prefix_queries=3000.0 * at,
        iteration_tokens={64.0: 10 * at, 2048.0: 40 * at, float("inf"): 40 * at},
        queue=(0.1 * at, 5 * at),
        inference=(20 * at, 5 * at),
        latency=(25 * at, 5 * at),
        api_cpu_s=0.5 * at,
        cache={},
    )
    return replace(load, **changes)


def measured(server: Server | None = None, **changes: Any) -> Measured:
    """A run of 218 seconds at 5 requests/s; the client used 0.3 cores."""
    requests = (server or Server()).serve(np.random.default_rng(1), rate=5.0, seconds=218)
    own = len(requests.started)
    found = Measured(
        requests=replace(requests, clock=1000.0),
        loads=tuple(a_load(float(second)) for second in range(0, 220, 2)),
        before=a_load(0.0, arrived=500, running=0.0),
        after=a_load(220.0, arrived=500 + own),
        client_cpu=tuple((1000.0 + second, 40 + 0.3 * second) for second in range(0, 220, 2)),
        probes=Probes(before=0.5, after=0.5),
        own=own,
    )
    return replace(found, **changes)


def expected(found: Measured) -> Expected:
    """Exactly what was measured without a fault."""
    return Expected(
        rate=5.0,
        ttft_limit_s=1.5,
        input_tokens=float(found.requests.input_tokens.mean()),
        output_tokens=float(Server().serve(np.random.default_rng(1), rate=5.0, seconds=218).output_tokens.mean()),
        prefix_hit_share=0.0,
    )


def test_a_quiet_run_counts() -> None:
    found = measured()
    run = run_of(found, PLOT, LIMITS, expected(found))
    assert run.voids == ()
    assert run.unjudged == ()
    assert sum(block.sent for block in run.blocks) == pytest.approx(900, abs=90)
    assert len(run.blocks) == 6


def test_figures_are_those_of_the_window() -> None:
    found = measured()
    seen = run_of(found, PLOT, LIMITS, expected(found)).seen
    assert seen is not None
    assert seen.engine is not None
    assert seen.client.cores == pytest.approx(0.3)
    assert seen.engine.finished == pytest.approx(900)
    assert seen.engine.preemptions == 0
    assert seen.engine.api_cores == pytest.approx(0.5)
    assert seen.engine.inference_s == pytest.approx(4.0)
    assert dict(seen.engine.iteration_tokens)[2048.0] == pytest.approx(0.75)
    assert seen.in_flight_mean == pytest.approx(5.0 * (seen.e2el.mean if seen.e2el else 0), rel=0.1)


FAULTS = {
    "a slow client": (
        lambda found: replace(found, requests=replace(
            found.requests, lag=np.where(np.arange(len(found.requests.lag)) % 20 == 0, 0.3, 0.0))),
        VoidReason.DISPATCH_LAG,
    ),
    "a warm cache": (
        lambda found: replace(found, loads=tuple(
            replace(load, prefix_hits=0.6 * (load.prefix_queries or 0)) for load in found.loads)),
        VoidReason.WARM_CACHE,
    ),
    "compilation in the window": (
        lambda found: replace(found, requests=replace(
            found.requests, silences=(Silence(start=60.0, length=6.0),))),
        VoidReason.COMPILATION,
    ),
    "a neighbour's load": (
        lambda found: replace(found, probes=Probes(before=0.5, after=0.9)),
        VoidReason.NEIGHBOUR,
    ),
    "short outputs": (
        lambda found: replace(measured(Server(answer=0.5)), own=found.own),
        VoidReason.OUTPUT_TOKENS,
    ),
    "somebody else's requests": (
        lambda found: replace(found, after=replace(found.after, arrived=found.after.arrived + 50)),
        VoidReason.OTHER_REQUESTS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("disturb", "reason"), FAULTS.values(), ids=FAULTS)
def test_an_injected_fault_voids_the_run_for_its_own_reason(disturb: Any, reason: VoidReason) -> None:
    found = measured()
    run = run_of(disturb(found), PLOT, LIMITS, expected(found))
    assert [void.reason for void in run.voids] == [reason]
    assert not run.counts


def test_compilation_before_the_window_does_not_matter() -> None:
    found = measured()
    early = replace(found, requests=replace(found.requests, silences=(Silence(start=10.0, length=6.0),)))
    assert run_of(early, PLOT, LIMITS, expected(found)).counts


def test_a_queue_that_grows_through_the_window_is_seen() -> None:
    found = measured()
    growing = tuple(replace(load, waiting=(load.at - 1000) / 20) for load in found.loads)
    run = run_of(replace(found, loads=growing), PLOT, LIMITS, expected(found))
    assert run.queue_rises
    steady = tuple(replace(load, waiting=6.0) for load in found.loads)
    assert not run_of(replace(found, loads=steady), PLOT, LIMITS, expected(found)).queue_rises


def test_without_metrics_the_run_counts_and_says_what_was_not_judged() -> None:
    found = replace(measured(), loads=(), before=None, after=None)
    run = run_of(found, PLOT, LIMITS, expected(found))
    assert run.voids == ()
    assert VoidReason.OTHER_REQUESTS in run.unjudged
    assert run.seen is not None
    assert run.seen.engine is None
