"""Signals: what the engines of a plan say about the load, as a decision reads it.

In: `Reading` values, what one pod's engine counted up to an instant, from Prometheus or from the pod itself. Out:
`Signals`, rates and shares over the last minutes, made by `planning.record`. Counters that start again, pods that come
and go, and values that are missing or not numbers are handled there; whoever reads a `Signals` reads numbers. Pure;
instants are on the plan's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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
    output_tokens: sum of request_generation_tokens. prefix_queries, prefix_hits: prompt tokens looked up and found.
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
    output_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    ttft: Within | None = None
    tpot: Within | None = None
    queue: Within | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """A figure, and the least that it was in any part of its window: what a short burst cannot lift."""

    value: float
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of requests between two bounds; equal where the limit is an edge of the histogram. count: of how many.

    best: the highest favourable bound of any half-minute of the window, so that a short burst is no breach; 1 where one
    of them had no requests.
    """

    at_least: float
    at_most: float
    best: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What requests of the last hour were like, on average. prefix_hit_share: of prompt tokens; None where unknown."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    prefix_hit_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSignals:
    """Why there are no signals now, of a plan or of one pod. Both go into the condition MetricsAvailable."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The load of a plan's pods now. Rates in requests/s, summed over pods.

    at: the oldest of the newest readings: nothing here is older than it says.
    arrivals_2m, arrivals_10m: delta of arrived, waiting and rejections; None until heard for that long. reach: how much
    older than its window a count may be, because two readings of a pod lie that far apart. arrivals_now: the largest
    rate of the last minute, two and five; None until heard for two. minutes: how many arrived, by the minute since
    1970, of the last hours, as far as all of a minute was heard.
    dispersion: variance over mean of one-minute arrivals in the last hour, at least 1.
    rejections: requests/s over two minutes. preemption_share: preemptions over finished, two minutes.
    waiting: requests now. in_flight: running + waiting by pod; in_flight_mean: per pod that answers. Their `least` is
    that of the last half-minute, 0 until heard for that long and while it falls. waiting_most: the most in two minutes.
    ttft, tpot, queue: attainment over two minutes. prompt_mean: tokens, ten minutes.
    first_heard: since when each pod answers without a pause. missing: the pods that should answer and do not, and why.
    traffic: of the last hour; None until heard for that long, and while too few requests finish.
    None: not known.
    """

    at: datetime
    arrivals_2m: Lasting | None
    arrivals_10m: Lasting | None
    reach: timedelta
    dispersion: float
    rejections: Lasting | None
    preemption_share: Lasting | None
    waiting: Lasting
    waiting_most: float
    in_flight: Mapping[str, float]
    in_flight_mean: Lasting
    ttft: Share | None
    tpot: Share | None
    queue: Share | None
    prompt_mean: float | None
    kv_usage: float | None
    first_heard: Mapping[str, datetime]
    missing: Mapping[str, NoSignals] = field(default_factory=dict)
    traffic: Traffic | None = None
    arrivals_now: float | None = None
    minutes: Mapping[int, float] = field(default_factory=dict)


NOT_ASKED = NoSignals(reason=Reason.METRICS_AWAITED, message="the source is asked with the next poll")
"""As after a start of the operator: who listens knows nothing yet, and nothing is wrong."""

Heard = Signals | NoSignals
"""What a decision hears of the engines. Neither ever lowers replicas."""
