"""A simulated server of known capacity: requests in virtual time, thousands of seconds of it in a millisecond.

Prompts are processed one after the other (their wait is the queue), tokens are generated together, the slower the more
are in flight. Misses rise steeply near the capacity, as on a real server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from statistics import NormalDist

import numpy as np

from servingplan.benchmarking.goodput import Block, blocks, criteria
from servingplan.benchmarking.requests import Floats, Requests
from servingplan.planning.plan import Objective, Objectives

WARM_UP_S, WINDOW_S, COOL_DOWN_S = 30.0, 180.0, 8.0
"""A run of standard effort: latencies of these servers are below ten seconds."""


def some_objectives(*, share: str = "0.95", ttft_s: float = 1.5, tpot_s: float = 0.06) -> Objectives:
    """A limit for the first token and one for those after it."""
    return Objectives(
        ttft=Objective(percentile="p95", limit=timedelta(seconds=ttft_s)),
        tpot=Objective(percentile="p95", limit=timedelta(seconds=tpot_s)),
        goodput_share=Decimal(share),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """prefill_s: per 1,000 prompt tokens. step_s: a token alone; step_each_s: more for each other request in flight.

    answer: the share of the output tokens asked for that come.
    """

    prefill_s: float = 0.15
    step_s: float = 0.015
    step_each_s: float = 0.0005
    input_p50: float = 600
    output_p50: float = 180
    answer: float = 1.0

    def serve(self, rng: np.random.Generator, *, rate: float, seconds: float, burstiness: float = 1.0) -> Requests:
        """What a client saw that sent `rate` requests/s for so long."""
        count = max(1, round(rate * seconds))
        gaps = rng.gamma(burstiness, 1 / burstiness, size=count)
        # As `vllm bench serve` does: exactly as many as the rate says, over the whole run.
        started = (np.cumsum(gaps) - gaps[0]) * (seconds / gaps.sum())
        inputs = np.round(self.input_p50 * np.exp(0.6 * _balanced_normal(rng, count))) + 1
        outputs = np.round(self.output_p50 * np.exp(0.5 * _balanced_normal(rng, count)) * self.answer) + 2
        prefill = self.prefill_s * inputs / 1000
        ttft = _lindley(started, prefill)
        tpot = np.full(count, self.step_s)
        for _ in range(3):
            # How many are in flight follows from how long they take, and the other way round: three rounds settle.
            tpot = self.step_s + self.step_each_s * _beside(started + ttft, outputs * tpot)
        return Requests(
            clock=0.0,
            started=started,
            lag=np.zeros(count),
            ttft=ttft,
            latency=ttft + (outputs - 1) * tpot,
            input_tokens=inputs,
            output_tokens=outputs,
            failed=np.zeros(count, dtype=bool),
            itl_median=float(np.median(tpot)),
        )


def _lindley(started: Floats, service: Floats) -> Floats:
    """Waiting and service of a single server, first come first served: Lindley's recursion as a running maximum."""
    worked = np.cumsum(service)
    free = started - np.concatenate([[0.0], worked[:-1]])
    return np.maximum.accumulate(free) + worked - started


def _beside(began: Floats, lasting: Floats) -> Floats:
    """How many others are in flight beside each, on average over its time."""
    ended = began + lasting
    starts, ends = np.sort(began), np.sort(ended)

    def passed(edges: Floats, at: Floats) -> Floats:
        """The integral over time, up to `at`, of how many edges lie before."""
        place = np.searchsorted(edges, at)
        return place * at - np.concatenate([[0.0], np.cumsum(edges)])[place]

    requests_s = passed(starts, ended) - passed(starts, began) - passed(ends, ended) + passed(ends, began)
    return np.maximum(requests_s / lasting - 1, 0)


def _balanced_normal(rng: np.random.Generator, count: int) -> Floats:
    """Normal values of which every run has the same mixture, in random order: as runs share out a file of prompts."""
    probability = (rng.permutation(count) + rng.random(count)) / count
    return _NORMAL_QUANTILES[(probability * len(_NORMAL_QUANTILES)).astype(int)]


_NORMAL_QUANTILES = np.array([NormalDist().inv_cdf((index + 0.5) / 4096) for index in range(4096)])


def true_capacity(server: Server, objectives: Objectives, *, burstiness: float = 1.0, runs: int = 150) -> float:
    """The largest rate at which the windows of runs hold the objectives on average, to 0.2 %.

    A plan's demand is the mean of five minutes, so a rate is what arrives in minutes; over hours with the same mean it
    would have larger peaks.
    """
    wanted = criteria(objectives)
    low, high = 0.05, 1000 / (server.prefill_s * server.input_p50)
    while high / low > 1.002:
        rate = float(np.sqrt(low * high))
        seen: list[Block] = []
        for seed in range(runs if high / low < 1.3 else 10):  # the same randomness at every rate
            rng = np.random.default_rng(seed)
            requests = server.serve(rng, rate=rate, seconds=WARM_UP_S + WINDOW_S + COOL_DOWN_S, burstiness=burstiness)
            seen += blocks(requests, objectives, start=WARM_UP_S, length=WINDOW_S)
        shares = np.sum([block.met for block in seen], axis=0) / sum(block.sent for block in seen)
        holds = all(share >= criterion.target for share, criterion in zip(shares, wanted, strict=True))
        low, high = (rate, high) if holds else (low, rate)
    return float(np.sqrt(low * high))


STEEP = {
    "tokens slow down": (Server(prefill_s=0.02, step_each_s=0.0004), some_objectives(), 1.0),
    "a fast server": (
        Server(prefill_s=0.02, step_s=0.010, step_each_s=0.0002, output_p50=150),
        some_objectives(tpot_s=0.04),
        1.0,
    ),
    "nearly all must be good": (
        Server(prefill_s=0.02, step_s=0.010, step_each_s=0.0002, output_p50=150),
        some_objectives(tpot_s=0.04, share="0.99"),
        1.0,
    ),
    "prompts queue": (
        Server(prefill_s=0.04, step_s=0.012, step_each_s=0.0004, output_p50=120),
        some_objectives(share="0.99"),
        1.0,
    ),
    "arrivals in bursts": (
        Server(prefill_s=0.02, step_s=0.010, step_each_s=0.0002, output_p50=150),
        some_objectives(tpot_s=0.04),
        0.5,
    ),
}
"""Servers with their objectives and the burstiness of what arrives."""
