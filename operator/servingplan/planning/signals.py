"""Signals: what the engines of a plan say about the load, as a decision reads it.

In: `Reading` values, what one pod's engine counted up to an instant, from Prometheus or from the pod itself. Out:
`Signals`, rates and shares over the last minutes. Counters that start again, pods that come and go, and values that are
missing or not numbers are handled here; whoever reads a `Signals` reads numbers. Pure; instants are on the plan's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from servingplan.planning.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A latency histogram against a limit, cumulative since the engine started.

    below: observations at most the nearest edge at or below the limit. above: at most the nearest edge at or above it.
    Both are equal where the limit is an edge. count: all observations.
    """

    below: float
    above: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one pod's engines said at one instant; counters since their start, summed over engines and LoRA.

    running, waiting: requests now. kv_usage: 0 to 1, the maximum over engines. arrived: the count of
    time_to_first_token. finished: all request_success. prompts, prompt_tokens: count and sum of request_prompt_tokens.
    None: this version of vLLM does not have it, or the plan states no such limit.
    """

    pod: str
    at: datetime
    running: float
    waiting: float
    arrived: float
    finished: float
    preemptions: float
    rejections: float
    kv_usage: float | None = None
    prompts: float | None = None
    prompt_tokens: float | None = None
    ttft: Within | None = None
    tpot: Within | None = None
    queue: Within | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of requests between two bounds; equal where the limit is an edge of the histogram. count: of how many."""

    at_least: float
    at_most: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The load of a plan's pods now. Rates in requests/s, summed over pods.

    at: the oldest of the newest readings: nothing here is older than it says. arrivals_2m, arrivals_10m: delta of
    arrived, waiting and rejections. dispersion: variance over mean of one-minute arrivals in the last hour, at least 1.
    in_flight: running + waiting by pod. ttft, tpot, queue: attainment over two minutes. preemption_share: preemptions over
    finished, two minutes. prompt_mean: tokens, ten minutes. None: not known.
    """

    at: datetime
    arrivals_2m: float
    arrivals_10m: float | None
    rejections_2m: float
    dispersion: float
    waiting: float
    in_flight: Mapping[str, float]
    ttft: Share | None
    tpot: Share | None
    queue: Share | None
    preemption_share: float | None
    prompt_mean: float | None
    kv_usage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSignals:
    """Why there are no signals now. reason and message go into the condition MetricsAvailable."""

    reason: Reason
    message: str


Heard = Signals | NoSignals
"""What a decision hears of the engines. Neither ever lowers replicas."""

_ = field
