"""ServingPlan v1alpha1: the wire models of the whole object.

Place in the flow: JSON that is valid here (and keeps ``rules``) is what the API server accepts. ``crd`` prints the
schema from these models, ``resolve`` turns them into a ``planning.plan.Plan``. No logic in here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from servingplan.api import rules
from servingplan.api.engine import EngineSpec, TargetRefSpec
from servingplan.api.feedback import FeedbackSpec
from servingplan.api.objectives import ObjectivesSpec
from servingplan.api.schedule import ScheduleSpec
from servingplan.api.status import Status
from servingplan.api.wire import (
    MAX_PARALLELISM,
    CapacityPerReplica,
    LeadDuration,
    ObjectName,
    ObjectReference,
    Percent,
    Replicas,
    SomeReplicas,
    StepDuration,
    Tokens,
    Wire,
    map_by,
    ruled,
)

GROUP = "servingplan.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ServingPlan"
PLURAL = "servingplans"


class QuantilesSpec(Wire):
    """Tokens per request, by quantile."""

    keeps: ClassVar = (rules.QUANTILES_ASCEND,)

    p50: Tokens | None = Field(default=None, description="Half of all requests have at most this many tokens.")
    p90: Tokens | None = Field(default=None, description="90 % of all requests have at most this many tokens.")
    p95: Tokens | None = Field(default=None, description="95 % of all requests have at most this many tokens.")
    p99: Tokens | None = Field(default=None, description="99 % of all requests have at most this many tokens.")


class TokensSpec(Wire):
    """Tokens per request."""

    input: QuantilesSpec | None = Field(default=None, description="Prompt tokens per request.")
    output: QuantilesSpec | None = Field(default=None, description="Generated tokens per request.")


class WorkloadSpec(Wire):
    """The workload as a team can state it. It judges the engine and never restarts it."""

    tokens: TokensSpec | None = Field(default=None, description="How long requests and answers are.")
    objectives: ObjectivesSpec | None = Field(default=None, description="Latency objectives.")


class PoolSizeSpec(Wire):
    """A replica's goodput in a pool of a given size."""

    replicas: SomeReplicas = Field(description="Number of replicas in the pool.")
    requests_per_second: CapacityPerReplica = Field(description="Goodput of one of them, in requests/s.")


class CapacitySpec(Wire):
    """One replica's goodput at the objectives."""

    keeps: ClassVar = (rules.ONE_CAPACITY,)

    requests_per_second: CapacityPerReplica | None = Field(
        default=None, description="Goodput of one replica, in requests/s, whatever the pool's size."
    )
    per_pool_size: Annotated[list[PoolSizeSpec], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Goodput of one replica by pool size; linear between the points, constant beyond them.",
        json_schema_extra=map_by("replicas"),
    )
    benchmark_ref: ObjectReference | None = Field(
        default=None, description="A CapacityBenchmark whose result counts, by pool size where it measured several."
    )


class ReserveSpec(Wire):
    """Replicas beyond the need, for a lost node or a rolling update."""

    replicas: Replicas = Field(default=1, description="Reserve in busy hours.")
    quiet: Replicas | None = Field(
        default=None, description="Reserve in quiet hours; the same as replicas where left out."
    )


class LeadTimeSpec(Wire):
    """From the decision to the first verified token."""

    keeps: ClassVar = (rules.LEAD_MAX,)

    declared: LeadDuration = Field(description="How long a replica takes to be ready.")
    margin: Percent = Field(default="20%", description="Added to the lead, in per cent of it.")
    learn: bool = Field(default=True, description="Whether rises that took longer make the lead longer.")
    max: LeadDuration | None = Field(
        default=None, description="The lead with its margin is never longer; three times declared where left out."
    )


class ScaleDownSpec(Wire):
    """How a fall goes down."""

    step: SomeReplicas = Field(default=1, description="Most replicas that leave at a time.")
    every: StepDuration = Field(default="2m", description="Time between two steps.")
    stabilization: StepDuration = Field(
        default="10m", description="How long a replica that feedback raised is kept after the last evidence for it."
    )


class BoundsSpec(Wire):
    """Limits of everything that is decided."""

    keeps: ClassVar = (rules.BOUNDS_ORDERED,)

    min_replicas: Replicas = Field(default=1, description="Never fewer.")
    max_replicas: SomeReplicas = Field(description="Never more.")


class EvaluationRefSpec(Wire):
    """A ModelEvaluation in the plan's namespace."""

    name: ObjectName = Field(description="Name of the ModelEvaluation.")


class AcceptanceSpec(Wire):
    """What a variant must show before it is rolled out."""

    evaluation_ref: EvaluationRefSpec = Field(description="The evaluation that must have passed for exactly it.")


class ServingPlanSpec(Wire):
    """What runs, its workload, and when how much of it is needed."""

    keeps: ClassVar = (
        rules.ONE_TARGET,
        rules.TARGET_FORM_STAYS,
        rules.GPUS_AGREE,
        rules.ACCEPTANCE_OF_ENGINE,
        rules.FLOOR_MINIMUM,
        rules.RESERVE_FITS,
        rules.QUIET_RESERVE_FITS,
    )

    suspend: bool = Field(default=False, description="True: decide and report, but change nothing.")
    engine: EngineSpec | None = Field(default=None, description="A vLLM server that the operator owns.")
    target_ref: TargetRefSpec | None = Field(
        default=None,
        description="A workload of yours that the operator scales.",
        json_schema_extra=ruled(rules.TARGET_REF_STAYS),
    )
    gpus_per_replica: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] | None = Field(
        default=None,
        description="GPUs per replica, for GPU-hours; a slice counts as one. Derived for an engine.",
    )
    workload: WorkloadSpec | None = Field(default=None, description="Token lengths and latency objectives.")
    capacity: CapacitySpec = Field(description="One replica's goodput at the objectives.")
    reserve: ReserveSpec = Field(default=ReserveSpec(), description="Replicas beyond the need.")
    schedule: ScheduleSpec = Field(description="When how much demand is expected.")
    lead_time: LeadTimeSpec = Field(description="How long before a rise its replicas are asked for.")
    scale_down: ScaleDownSpec = Field(default=ScaleDownSpec(), description="How a fall goes down.")
    bounds: BoundsSpec = Field(description="Fewest and most replicas.")
    feedback: FeedbackSpec | None = Field(default=None, description="The check against reality; none where left out.")
    acceptance: AcceptanceSpec | None = Field(
        default=None,
        description="Holds an edit of engine that changes answers or speed until it is accepted; none where left out.",
    )


class ServingPlan(Wire):
    """Replicas of a self-hosted LLM that are ready before the ramp, from a declared workload and schedule."""

    keeps: ClassVar = (rules.PLAN_NAME,)

    spec: ServingPlanSpec = Field(description="What you want.")
    status: Status | None = Field(default=None, description="What the operator sees and decided.")
