"""What vLLM's series are called, and how the values of one pod become a `Reading`.

In: a `Sample`, the values of one pod's engines at one instant, from its own /metrics (`engine_metrics`) or from
Prometheus (`prometheus`). Out: the planning layer's `Reading`, or `NoReading` with a reason. Pure: both sources end
here, so that they cannot disagree about what a value means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from servingplan.errors import ClusterError
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading, Within


class NoReading(ClusterError):
    """Engines or a source said nothing that can be used. reason: one of the metrics' reasons."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def signals(self) -> NoSignals:
        """The same as a value, for whoever must not raise."""
        return NoSignals(reason=self.reason, message=str(self))


class Signal(StrEnum):
    """One number of a pod. The value is its field in `Reading`."""

    RUNNING = "running"
    WAITING = "waiting"
    ARRIVED = "arrived"
    FINISHED = "finished"
    PREEMPTIONS = "preemptions"
    REJECTIONS = "rejections"
    KV_USAGE = "kv_usage"
    PROMPTS = "prompts"
    PROMPT_TOKENS = "prompt_tokens"
    OUTPUT_TOKENS = "output_tokens"
    PREFIX_QUERIES = "prefix_queries"
    PREFIX_HITS = "prefix_hits"


class Latency(StrEnum):
    """One latency histogram of a pod. The value is its field in `Reading` and in `Limits`."""

    TTFT = "ttft"
    TPOT = "tpot"
    QUEUE = "queue"


NAMES: Mapping[Signal, tuple[str, ...]] = {
    Signal.RUNNING: ("vllm:num_requests_running",),
    Signal.WAITING: ("vllm:num_requests_waiting",),
    Signal.ARRIVED: ("vllm:time_to_first_token_seconds_count",),
    Signal.FINISHED: ("vllm:request_success_total",),
    Signal.PREEMPTIONS: ("vllm:num_preemptions_total",),
    Signal.REJECTIONS: ("vllm:admission_rejections_total",),
    Signal.KV_USAGE: ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    Signal.PROMPTS: ("vllm:request_prompt_tokens_count",),
    Signal.PROMPT_TOKENS: ("vllm:request_prompt_tokens_sum",),
    Signal.OUTPUT_TOKENS: ("vllm:request_generation_tokens_sum",),
    Signal.PREFIX_QUERIES: ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    Signal.PREFIX_HITS: ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
"""Series by signal, the newest name first. A version in between may expose both: the first that is there counts."""

HISTOGRAMS: Mapping[Latency, tuple[str, ...]] = {
    Latency.TTFT: ("vllm:time_to_first_token_seconds",),
    # The older one observes every token rather than every request, so its shares are shares of tokens.
    Latency.TPOT: ("vllm:request_time_per_output_token_seconds", "vllm:time_per_output_token_seconds"),
    Latency.QUEUE: ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
}
"""Histograms by latency, the newest name first."""

WAITING_BY_REASON = "vllm:num_requests_waiting_by_reason"
DEFERRED = "deferred"
"""The reason of requests that wait for something other than capacity: KV transfer, or a LoRA slot."""

LORA = "vllm:lora_requests_info"
"""There once requests used LoRA. Only then does `deferred` mean a slot that more replicas would bring."""

NEEDED = (Signal.RUNNING, Signal.WAITING, Signal.ARRIVED, Signal.FINISHED, Signal.PREEMPTIONS)
"""What every version of vLLM exposes from its start: without one of these there is no reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The per-request limits that a plan wants attainment for, in seconds; None where it states none."""

    ttft: float | None = None
    tpot: float | None = None
    queue: float | None = None

    def of(self, latency: Latency) -> float | None:
        """The limit of one latency."""
        limit: float | None = getattr(self, latency)
        return limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The values of one pod at one instant, summed over its engines. Cumulative, as exposed.

    buckets: observations at most each edge, in seconds; `math.inf` is the edge of all.
    """

    at: datetime
    values: Mapping[Signal, float]
    buckets: Mapping[Latency, Mapping[float, float]] = field(default_factory=dict)


def reading(sample: Sample, *, pod: str, limits: Limits) -> Reading:
    """What one pod said. Raises `NoReading` where a needed value is missing, or one is no count."""
    missing = [NAMES[signal][0] for signal in NEEDED if signal not in sample.values]
    if missing:
        raise NoReading(
            Reason.METRICS_MISSING,
            f"{', '.join(missing)} of pod {pod} is missing; is it an engine's port, and is every series kept that "
            "begins with vllm:?",
        )
    for signal, value in sample.values.items():
        if not (math.isfinite(value) and value >= 0):
            raise NoReading(Reason.METRICS_INVALID, f"{NAMES[signal][0]} of pod {pod} is {value}, which is no count")
    values = {signal: sample.values.get(signal) for signal in Signal}
    return Reading(
        pod=pod,
        at=sample.at,
        running=sample.values[Signal.RUNNING],
        waiting=sample.values[Signal.WAITING],
        arrived=sample.values[Signal.ARRIVED],
        finished=sample.values[Signal.FINISHED],
        preemptions=sample.values[Signal.PREEMPTIONS],
        rejections=sample.values.get(Signal.REJECTIONS, 0.0),
        kv_usage=values[Signal.KV_USAGE],
        prompts=values[Signal.PROMPTS],
        prompt_tokens=values[Signal.PROMPT_TOKENS],
        output_tokens=values[Signal.OUTPUT_TOKENS],
        prefix_queries=values[Signal.PREFIX_QUERIES],
        prefix_hits=values[Signal.PREFIX_HITS],
        ttft=_within(sample, Latency.TTFT, pod, limits),
        tpot=_within(sample, Latency.TPOT, pod, limits),
        queue=_within(sample, Latency.QUEUE, pod, limits),
    )


def _within(sample: Sample, latency: Latency, pod: str, limits: Limits) -> Within | None:
    """The histogram around the limit. None where there is no limit, or no such histogram.

    Any subset of the edges gives right bounds: at worst they are 0 and all.
    """
    limit, buckets = limits.of(latency), sample.buckets.get(latency, {})
    if limit is None or math.inf not in buckets:
        return None
    at_or_below = [edge for edge in buckets if edge <= limit]
    below = buckets[max(at_or_below)] if at_or_below else 0.0
    above = buckets[min(edge for edge in buckets if edge >= limit)]
    count = buckets[math.inf]
    if not (0 <= below <= above <= count < math.inf):  # false for NaN too
        raise NoReading(
            Reason.METRICS_INVALID,
            f"{HISTOGRAMS[latency][0]} of pod {pod} is no histogram: {below:g}, {above:g} and {count:g} requests up to "
            f"edges around {limit:g} s do not ascend",
        )
    return Within(below=below, above=above, count=count)
