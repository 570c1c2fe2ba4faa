"""The wire of status: what the operator writes, and nothing that changes by itself.

Place in the flow: part of ``v1alpha1``; ``rendering.status`` writes JSON of this shape. Instants are RFC 3339 in UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from servingplan.api.wire import ATOMIC, Duration, Replicas, Wire, map_by

MAX_TRAIL = 12
"""Steps of a decision that status keeps."""

MAX_RISES = 19
"""Rises that status keeps."""

MAX_POOL_SIZES = 128
"""Pool sizes of a capacity: those of two benchmarks where the smaller of both counts."""

INSTANT: dict[str, Any] = {"format": "date-time"}

Instant = Annotated[str, Field(max_length=32, json_schema_extra=INSTANT)]
Sentence = Annotated[str, Field(max_length=1024)]
Words = Annotated[str, Field(max_length=256)]
ReasonWord = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]


class NextChangeStatus(Wire):
    """The next change of replicas that is known now."""

    time: Instant = Field(description="When.")
    replicas: Replicas = Field(description="To how many.")
    because: Words = Field(description="Why, for example: working-day ends.")
    summary: Words = Field(description="The same for people, in the plan's zone.")


class RampStatus(Wire):
    """The rise that is under way or comes next."""

    start: Instant = Field(description="When the demand rises.")
    needed: Replicas = Field(description="Replicas that must be ready then.")
    verified: Replicas | None = Field(default=None, description="Replicas that are ready for it.")
    start_by: Instant = Field(description="When they are asked for at the latest.")


class LastScaleStatus(Wire):
    """The last change of replicas that the operator made."""

    time: Instant = Field(description="When.")
    from_: Replicas = Field(alias="from", description="From how many.")
    to: Replicas = Field(description="To how many.")
    because: Words = Field(description="Why.")


class LearnedStatus(Wire):
    """What rises taught."""

    p95: Duration = Field(description="The 95th percentile of how long they took.")
    rises: Annotated[int, Field(ge=0)] = Field(description="Of how many.")
    slowest: Words | None = Field(default=None, description="The stage that grew.")


class RiseStatus(Wire):
    """A complete rise, by stages, from the decision to the last of its replicas verified."""

    decided: Instant = Field(description="When it was decided.")
    scheduling: Duration = Field(description="To a node.")
    pulling: Duration = Field(description="To the containers' start.")
    engine: Duration = Field(description="To verified.")


class RunningStatus(Wire):
    """A rise in progress."""

    decided: Instant = Field(description="When it was decided.")
    from_: Replicas = Field(alias="from", description="From how many.")
    to: Replicas = Field(description="To how many.")


class RaisedStatus(Wire):
    """What feedback raised and still holds."""

    extra: Replicas = Field(description="Replicas above what the schedule asks for.")
    replicas: Replicas = Field(description="The total that it came to.")
    since: Instant = Field(description="Since when.")
    wanted_at: Instant = Field(description="When evidence last asked for it, rounded up.")


class ExcessStatus(Wire):
    """Arrivals above the plan."""

    since: Instant = Field(description="Since when.")
    seen_at: Instant = Field(description="When they were last seen, rounded up.")
    requests_per_second: Annotated[float, Field(ge=0)] = Field(description="The most, in requests/s, rounded up.")
    planned: Annotated[float, Field(ge=0)] = Field(description="What the plan expects, in requests/s.")
    source: Words = Field(description="The part of the schedule that expects it.")


class LeadTimeStatus(Wire):
    """The lead that counts."""

    effective: Duration = Field(description="The lead in effect: declared or learned, with its margin, at most max.")
    learned: LearnedStatus | None = Field(default=None, description="What rises taught.")
    fingerprint: Words | None = Field(default=None, description="Of the engine whose rises these are.")
    samples: Annotated[list[RiseStatus], Field(max_length=MAX_RISES)] = Field(
        default=[], description="The last rises that are complete.", json_schema_extra=ATOMIC
    )
    running: Annotated[list[RunningStatus], Field(max_length=MAX_RISES)] = Field(
        default=[], description="Rises whose replicas are not all verified.", json_schema_extra=ATOMIC
    )


class PoolCapacityStatus(Wire):
    """A replica's goodput in a pool of a given size."""

    replicas: Replicas = Field(description="Number of replicas in the pool.")
    requests_per_second: Annotated[float, Field(ge=0)] = Field(description="Goodput of one of them, in requests/s.")


class CapacityStatus(Wire):
    """The capacity that counts."""

    requests_per_second: Annotated[float, Field(ge=0)] = Field(
        description="Goodput of one replica, in requests/s; in the smallest pool where there are several."
    )
    per_pool_size: Annotated[list[PoolCapacityStatus], Field(max_length=MAX_POOL_SIZES)] | None = Field(
        default=None, description="By pool size.", json_schema_extra=map_by("replicas")
    )
    source: Words = Field(description="Where the number is from: plan, or the name of a CapacityBenchmark.")
    fingerprint: Words | None = Field(default=None, description="Digest of the engine that was measured.")


class GpuHoursStatus(Wire):
    """GPU-hours of a nominal month."""

    month_planned: Annotated[float, Field(ge=0)] = Field(description="As planned.")
    month_flat: Annotated[float, Field(ge=0)] = Field(description="With the peak round the clock.")


class ContestedStatus(Wire):
    """Who else writes the target's replicas."""

    manager: Words = Field(description="Its field manager.")
    since: Instant = Field(description="Since when.")
    last_write: Instant = Field(description="When it was last seen to write.")
    value: Replicas = Field(description="The replicas that it wrote last.")
    raises: Annotated[int, Field(ge=0)] = Field(default=0, description="How often replicas were raised again.")
    last_raise: Instant | None = Field(default=None, description="When they were raised last.")


class VariantStatus(Wire):
    """The engine that must be accepted, beside the one that runs."""

    stated: Words = Field(description="Digest of spec.engine, as a ModelEvaluation records it.")
    running: Words | None = Field(default=None, description="Digest of the engine that runs.")


class StepStatus(Wire):
    """One step of a decision."""

    name: Words = Field(description="What was decided.")
    value: Words = Field(description="Its result.")
    reason: ReasonWord = Field(description="Machine reason.")
    message: Sentence = Field(description="The same for people.")


class ConditionStatus(Wire):
    """A condition as Kubernetes defines it."""

    type: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9]*$")] = Field(description="Its name.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    observed_generation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Generation of the spec that it speaks of.", json_schema_extra={"format": "int64"}
    )
    last_transition_time: Instant = Field(description="When the status last changed.")
    reason: ReasonWord = Field(description="Machine reason.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="The same for people, and what to do.")


class Status(Wire):
    """What the operator sees and decided."""

    observed_generation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Generation of the spec that was acted on.", json_schema_extra={"format": "int64"}
    )
    desired_replicas: Replicas | None = Field(default=None, description="What should run now.")
    current_replicas: Replicas | None = Field(default=None, description="What the target is set to.")
    ready_replicas: Replicas | None = Field(default=None, description="What is ready.")
    available_replicas: Replicas | None = Field(default=None, description="What is available.")
    floor_replicas: Replicas | None = Field(default=None, description="What the schedule alone asks for.")
    reserve_replicas: Replicas | None = Field(default=None, description="Reserve that counts now.")
    window: Words | None = Field(default=None, description="What the demand now comes from.")
    next_change: NextChangeStatus | None = Field(default=None, description="The next change of replicas.")
    ramp: RampStatus | None = Field(default=None, description="The rise under way or next.")
    last_scale: LastScaleStatus | None = Field(default=None, description="The last change that was made.")
    lead_time: LeadTimeStatus | None = Field(default=None, description="The lead that counts.")
    capacity: CapacityStatus | None = Field(default=None, description="The capacity that counts.")
    gpu_hours: GpuHoursStatus | None = Field(default=None, description="GPU-hours of an average month.")
    raised: RaisedStatus | None = Field(default=None, description="What feedback raised.")
    excess: ExcessStatus | None = Field(default=None, description="Arrivals above the plan.")
    contested: ContestedStatus | None = Field(default=None, description="Who else writes replicas.")
    demo_clock: Words | None = Field(default=None, description="Only while a faster clock is on: what it shows.")
    variant: VariantStatus | None = Field(default=None, description="With acceptance: which engines there are.")
    decision: Annotated[list[StepStatus], Field(max_length=MAX_TRAIL)] | None = Field(
        default=None, description="Trail of the last change.", json_schema_extra=ATOMIC
    )
    conditions: Annotated[list[ConditionStatus], Field(max_length=32)] | None = Field(
        default=None, description="Conditions, one of each type.", json_schema_extra=map_by("type")
    )
