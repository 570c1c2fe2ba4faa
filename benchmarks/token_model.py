"""The token-level model beside the fluid one: the same busy hours, and where the two part; and how fast it is.

    python benchmarks/token_model.py

Steps cost what a roofline says of Llama-3.3-70B in FP8 on two H100 (docs/explanation/sizing.md); the cache is that of a
public log. A replica's capacity is found on the token-level model by bisection, and is what the fluid model is told.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from servingplan.hardware.lengths import Lengths
from servingplan.planning.plan import Objective, Objectives
from servingplan.simulation.fleet import Rules, serve
from servingplan.simulation.token_fleet import FleetRun, followed
from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_capacity import attainment, capacity
from servingplan.simulation.tokens_drawn import counts_at, drawn
from servingplan.simulation.tokens_played import changes
from servingplan.simulation.tokens_replica import answered
from servingplan.simulation.workload import SLICE_S

COST = StepCost(base_s=0.0194, prefill_token_s=1.6e-4, sequence_s=2e-5, context_token_s=6.4e-8)
ENGINE = EngineLimits(max_num_seqs=256, max_num_batched_tokens=8192, blocks=15269, block_size=16, async_scheduling=True)
TIGHT = dataclasses.replace(ENGINE, blocks=2001)
"""A cache of 32,000 tokens: it is full before the objectives break."""

PROMPT = Lengths.from_quantiles({"p50": 600, "p95": 2400})
OUTPUT = Lengths.from_quantiles({"p50": 180, "p95": 600})
LONGEST = 8192
OBJECTIVES = Objectives(
    ttft=Objective(percentile="p95", limit=timedelta(seconds=2)),
    tpot=Objective(percentile="p95", limit=timedelta(milliseconds=60)),
    goodput_share=Decimal("0.95"),
)

HOURS = 1.5
PEAK = 3.6
"""Replicas' worth of demand at the top of the ramp."""

AHEAD_S = 300
"""How long before its demand a replica is ready."""

LATE_S = 300

SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A run on both models: shares of requests that are good."""

    fluid: float
    tokens: float
    run: FleetRun


def rates(unit: float) -> NDArray[np.float64]:
    """Requests/s by slice: a quiet time, a rise of half an hour, a busy time, a fall. unit: of one replica."""
    hours = np.arange(round(HOURS * 3600 / SLICE_S)) * SLICE_S / 3600
    return np.interp(hours, [0, 0.2, 0.7, 1.3, 1.5], [0.8, 0.8, PEAK, PEAK, 1.5]) * unit


def replicas(demand: NDArray[np.float64], *, share: float, late_s: float) -> NDArray[np.int64]:
    """Ready by slice: what the demand is in the next five minutes, if each runs at `share` of its capacity; or late."""
    ahead = round(AHEAD_S / SLICE_S)
    padded = np.concatenate([demand, np.repeat(demand[-1:], ahead)])
    need = np.ceil(np.lib.stride_tricks.sliding_window_view(padded, ahead + 1).max(axis=1) / share)
    shift = round(late_s / SLICE_S)
    return np.concatenate([np.repeat(need[:1], shift), need])[: len(need)].astype(np.int64)


def fluid(counts: NDArray[np.int64], ready: NDArray[np.int64], unit: float, ttft_s: float) -> float:
    """The share that is good where requests flow and a replica serves `unit` requests/s, by `Rules`' patience."""
    rules = Rules(start_s=0, wait_limit_s=ttft_s)
    queue, good = np.zeros((1, 1), np.float32), 0.0
    for arrived, there in zip(counts, ready, strict=True):
        demand = np.array([[arrived / (SLICE_S * unit)]], np.float32)
        served = serve(queue, demand, np.array([[there]], np.float32), rules)
        queue, good = served.queue, good + float(served.good[0, 0]) * arrived
    return good / counts.sum()


def compared(requests: Sequence[TokenRequest], ready: NDArray[np.int64], engine: EngineLimits, unit: float) -> Compared:
    """The same requests and replicas on both."""
    counts = np.bincount([int(each.arrival_s // SLICE_S) for each in requests], minlength=len(ready))
    run = followed(requests, changes(ready), engine, COST, start_s=0)
    ttft = OBJECTIVES.ttft
    assert ttft is not None
    return Compared(
        fluid=fluid(counts, ready, unit, ttft.limit.total_seconds()),
        tokens=attainment(run.answers, OBJECTIVES),
        run=run,
    )


def some(counts: NDArray[np.int64], step_s: float, seed: int) -> list[TokenRequest]:
    """Requests with the lengths of above."""
    return drawn(counts, step_s, prompt=PROMPT, output=OUTPUT, longest=LONGEST, seed=seed)


def with_long_prompts(requests: Sequence[TokenRequest]) -> list[TokenRequest]:
    """Every ten minutes, one minute's prompts are as long as they may be."""
    return [
        dataclasses.replace(each, prompt_tokens=LONGEST - each.output_tokens) if each.arrival_s % 600 < 60 else each
        for each in requests
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    tell_speed(seed)
    base = some(counts_at(np.full(1500, 1.0), 1.0, seed=seed), 1.0, seed)
    for name, engine in (("cache of 244,000 tokens", ENGINE), ("cache of 32,000 tokens", TIGHT)):
        unit = capacity(base, engine, COST, OBJECTIVES, share=SHARE)
        print(f"{name}: one replica serves {unit:.2f} requests/s")
        tell_runs(engine, unit, seed)


def tell_runs(engine: EngineLimits, unit: float, seed: int) -> None:
    """The same requests on fleets of several sizes. unit: what the fluid model, and who plans, holds for capacity."""
    demand = rates(1.0)
    requests = some(counts_at(demand * unit, SLICE_S, seed=seed), SLICE_S, seed)
    full, spared = replicas(demand, share=1.0, late_s=0), replicas(demand, share=0.85, late_s=0)
    runs = {
        "on time": (requests, full),
        "on time, 15 % spare": (requests, spared),
        "five minutes late": (requests, replicas(demand, share=1.0, late_s=AHEAD_S + LATE_S)),
        "one too few": (requests, np.maximum(1, full - 1)),
        "minutes of long prompts": (with_long_prompts(requests), spared),
    }
    for words, (these, ready) in runs.items():
        found = compared(these, ready, engine, unit)
        again = sum(answer.preempted for answer in found.run.answers) / len(these)
        print(
            f"  {words:24} fluid {found.fluid:7.2%}  tokens {found.tokens:7.2%}  "
            f"{100 * (found.tokens - found.fluid):+6.1f} points  preemptions a request {again:.3f}",
            flush=True,
        )


def tell_speed(seed: int) -> None:
    """10,000 requests on one replica at a rate that it serves."""
    requests = some(counts_at(np.full(10_000, 1.0), 1.0, seed=seed), 1.0, seed)
    for name, engine in (("", ENGINE), (", prefix caching", dataclasses.replace(ENGINE, prefix_caching=True))):
        begun = time.process_time()
        tokens = sum(answer.asked.output_tokens for answer in answered(requests, engine, COST))
        took = time.process_time() - begun
        each = f"{1e6 * took / tokens:.2f} us a token"
        print(f"{len(requests)} requests, {tokens} output tokens{name}: {took:.2f} s of a processor, {each}")


if __name__ == "__main__":
    main()
