"""CapacityBenchmark v1alpha1: the wire models of the whole object.

Place in the flow: as ``v1alpha1`` for the plan; ``resolve_benchmark`` turns a spec into values, and
``rendering.benchmark`` writes a status of this shape. No logic in here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from servingplan.api import evidence_rules as rules
from servingplan.api.evidence import FileSpec, PlanRefSpec, RunnerSpec, ServiceSpec
from servingplan.api.objectives import ObjectivesSpec
from servingplan.api.rules import POSITIVE_DURATION
from servingplan.api.status import ConditionStatus, Instant, ReasonWord, Sentence, Words
from servingplan.api.wire import AS_SET, ATOMIC, MAX_RATE, SomeReplicas, Text, Wire, map_by, ruled
from servingplan.planning.units import DURATION_PATTERN

MAX_SIZES = 8
MAX_LEVELS = 256
"""Of 30 rates a size, as many as a ramp has."""

LongestDuration = Annotated[
    str,
    Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(POSITIVE_DURATION, rules.LONGEST_LIMIT)),
]
Rate = Annotated[float, Field(ge=0, le=MAX_RATE)]
Amount = Annotated[float, Field(ge=0)]


class CapacityBenchmarkSpec(Wire):
    """What is measured, with what, and when."""

    keeps: ClassVar = (rules.ONE_MEASURED, rules.SERVICE_WHEN_QUIET, rules.SERVICE_SIZE)

    plan_ref: PlanRefSpec | None = Field(
        default=None, description="Measure this plan's engine, in a pool of its own that runs only meanwhile."
    )
    service: ServiceSpec | None = Field(default=None, description="Measure what serves already.")
    quiet_hours_of: PlanRefSpec | None = Field(
        default=None, description="Measure only while nothing is scheduled in this plan, its next lead included."
    )
    pool_sizes: Annotated[list[SomeReplicas], Field(min_length=1, max_length=MAX_SIZES)] = Field(
        default=[1],
        description="One ramp for each of these numbers of replicas, smallest first, through the pool's Service.",
        json_schema_extra=AS_SET,
    )
    objectives: ObjectivesSpec | None = Field(
        default=None, description="What a good request is; the plan's where left out."
    )
    prompts: FileSpec = Field(description="Your requests as JSON lines: prompt and output_tokens.")
    cv: Annotated[float, Field(ge=0.1, le=10)] = Field(
        default=1, description="Coefficient of variation of the times between arrivals; 1 is chance alone."
    )
    prefix_hit_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0, description="Share of prompt tokens that the workload finds in the prefix cache."
    )
    chat: bool = Field(default=False, description="Send prompts as chat messages.")
    effort: Literal["Quick", "Standard"] = Field(
        default="Standard", description="Quick: the order of magnitude in half an hour. Standard: to 2.5 %."
    )
    start: Annotated[float, Field(gt=0, le=MAX_RATE)] | None = Field(
        default=None, description="First rate of one replica, in requests/s; found out where left out."
    )
    longest: LongestDuration | None = Field(
        default=None, description="Limit of one ramp's runs together; 4h, or 30m with effort Quick, where left out."
    )
    suspend: bool = Field(default=False, description="True: stop, and give the accelerators back.")
    runner: RunnerSpec = Field(default=RunnerSpec(), description="The Job that sends the requests.")


# ---- status -----------------------------------------------------------------------------------------------


class PoolCapacityStatus(Wire):
    """What a pool of one size was found to serve."""

    replicas: SomeReplicas = Field(description="Replicas of the pool.")
    requests_per_second: Rate = Field(description="The largest rate of one replica that held, in requests/s.")
    failing_requests_per_second: Rate | None = Field(default=None, description="The smallest one that did not.")


class BenchmarkCapacityStatus(Wire):
    """The capacity that was found."""

    requests_per_second: Rate = Field(
        description="Of one replica in the smallest pool: the largest rate that held, in requests/s."
    )
    failing_requests_per_second: Rate | None = Field(default=None, description="The smallest one that did not.")
    per_pool_size: Annotated[list[PoolCapacityStatus], Field(max_length=MAX_SIZES)] = Field(
        default=[], description="By pool size.", json_schema_extra=map_by("replicas")
    )


class LevelReport(Wire):
    """One rate of a ramp."""

    rate: Rate = Field(description="Rate of the whole pool, in requests/s.")
    verdict: ReasonWord = Field(description="Pass, Fail, Undecided or Open.")
    because: ReasonWord = Field(description="Why.")
    runs: Annotated[int, Field(ge=0)] = Field(description="Runs that count.")
    void: Annotated[int, Field(ge=0)] = Field(description="Runs that do not count.")
    void_because: Annotated[list[ReasonWord], Field(max_length=16)] = Field(
        default=[], description="Why they do not.", json_schema_extra=ATOMIC
    )


class LevelStatus(LevelReport):
    """One rate of one pool's ramp."""

    replicas: SomeReplicas = Field(description="Replicas of the pool.")


class BottleneckStatus(Wire):
    """What bound the server at the first rate that failed."""

    bounds: Annotated[list[ReasonWord], Field(max_length=8)] = Field(
        default=[], description="What bound it; several where they cannot be told apart.", json_schema_extra=ATOMIC
    )
    evidence: Annotated[list[Sentence], Field(max_length=16)] = Field(
        default=[], description="What says so.", json_schema_extra=ATOMIC
    )
    doubt: Annotated[list[Sentence], Field(max_length=16)] = Field(
        default=[], description="What speaks against it, or is not known.", json_schema_extra=ATOMIC
    )
    change: Sentence | None = Field(default=None, description="The one change that would decide.")


class AtCapacityStatus(Wire):
    """One replica at the rate that was found, in the smallest pool. Left out where it is not known."""

    in_flight_mean: Amount | None = Field(default=None, description="Requests in flight, mean.")
    in_flight_p99: Amount | None = Field(default=None, description="Requests in flight, p99.")
    ttft_p95_seconds: Amount | None = Field(default=None, description="Time to first token, p95.")
    tpot_p95_seconds: Amount | None = Field(default=None, description="Time per output token, p95.")
    input_tokens: Amount | None = Field(default=None, description="Mean prompt tokens a request.")
    output_tokens: Amount | None = Field(default=None, description="Mean generated tokens a request.")
    kv_cache_use_p90: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of the KV cache in use, p90."
    )
    unloaded_ttft_p95_seconds: Amount | None = Field(
        default=None, description="Time to first token of one request at a time, p95."
    )
    prefill_tokens_per_second: Amount | None = Field(
        default=None, description="Prompt tokens a second until the first token, of one request at a time."
    )
    prefix_hit_share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of prompt tokens that was to be found in the prefix cache."
    )


class FingerprintStatus(Wire):
    """What was measured. Left out where it is not known."""

    digest: Words | None = Field(default=None, description="Of image, model, arguments and accelerator.")
    image: Text | None = Field(default=None, description="The engine's image, as stated.")
    image_digest: Text | None = Field(default=None, description="The engine's image, as it ran.")
    model: Text | None = Field(default=None, description="The model, as stated.")
    arguments: Annotated[list[Annotated[str, Field(max_length=8192)]], Field(max_length=256)] = Field(
        default=[],
        description="vLLM's arguments that change answers or speed, and the model's volume.",
        json_schema_extra=ATOMIC,
    )
    accelerator: Words | None = Field(default=None, description="The accelerators of a replica.")
    product: Words | None = Field(default=None, description="The accelerator's product, as its node says.")
    driver: Words | None = Field(default=None, description="The accelerator's driver, as its node says.")
    vllm: Words | None = Field(default=None, description="Version of vLLM, as the server says.")
    dataset: Words | None = Field(default=None, description="Digest of the prompts.")
    objectives: ObjectivesSpec | None = Field(default=None, description="What a good request was.")
    router: Words | None = Field(default=None, description="What requests went through.")


class CapacityBenchmarkStatus(Wire):
    """What was found, and how far the work is."""

    observed_generation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Generation of the spec that this speaks of.", json_schema_extra={"format": "int64"}
    )
    work: Words | None = Field(
        default=None, description="Names what the spec asks for; an edit of suspend alone does not change it."
    )
    capacity: BenchmarkCapacityStatus | None = Field(default=None, description="The capacity that was found last.")
    levels: Annotated[list[LevelStatus], Field(max_length=MAX_LEVELS)] = Field(
        default=[], description="The rates that were measured.", json_schema_extra=ATOMIC
    )
    bottleneck: BottleneckStatus | None = Field(default=None, description="What bound the server.")
    at_capacity: AtCapacityStatus | None = Field(default=None, description="One replica at its capacity.")
    fingerprint: FingerprintStatus | None = Field(default=None, description="What was measured.")
    started_at: Instant | None = Field(default=None, description="When the first ramp began.")
    finished_at: Instant | None = Field(default=None, description="When the last ramp ended.")
    conditions: Annotated[list[ConditionStatus], Field(max_length=8)] | None = Field(
        default=None, description="Conditions, one of each type.", json_schema_extra=map_by("type")
    )


class CapacityBenchmark(Wire):
    """What one replica serves at the objectives, measured with vLLM's own client and your own requests."""

    keeps: ClassVar = (rules.EVIDENCE_NAME,)

    spec: CapacityBenchmarkSpec = Field(description="What to measure.")
    status: CapacityBenchmarkStatus | None = Field(default=None, description="What was found.")
