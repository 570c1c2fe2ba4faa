"""ModelEvaluation v1alpha1: the wire models of the whole object.

Place in the flow: as ``v1alpha1`` for the plan; ``resolve_evaluation`` turns a spec into values, ``evaluated`` reads
what decides of a status. No logic in here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from servingplan.api import evidence_rules as rules
from servingplan.api.engine import SecretKeySpec
from servingplan.api.evidence import FileSpec, PlanRefSpec, RunnerSpec
from servingplan.api.rules import POSITIVE_DURATION
from servingplan.api.status import ConditionStatus, Instant, Words
from servingplan.api.wire import ATOMIC, ObjectName, Text, Wire, map_by, ruled
from servingplan.planning.acceptance import Verdict
from servingplan.planning.units import DURATION_PATTERN

MAX_CONCURRENCY = 1000

LongestDuration = Annotated[
    str,
    Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(POSITIVE_DURATION, rules.LONGEST_LIMIT)),
]
Share = Annotated[float, Field(ge=0, le=1)]
Mean = Annotated[float, Field(ge=-1, le=1)]
Items = Annotated[int, Field(ge=0)]


class ComparedServiceSpec(Wire):
    """What serves a model, behind a Service of the same namespace."""

    name: ObjectName = Field(description="Name of a Service in the same namespace.")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=8000, description="Port of the Service.")
    model: Text | None = Field(default=None, description="Name that the server gives its model, if it has several.")
    api_key_secret_ref: SecretKeySpec | None = Field(
        default=None, description="Key that the server wants; none where left out."
    )


class ComparedSpec(Wire):
    """One side of a comparison."""

    service: ComparedServiceSpec = Field(description="What serves it.")


class AcceptanceRuleSpec(Wire):
    """When a variant passes: good enough, and by at most the margin worse than the baseline."""

    minimum_score: Share = Field(default=0, description="Least mean score of the variant; 0 asks nothing of it alone.")
    margin: Annotated[float, Field(gt=0, le=0.5)] = Field(
        default=0.02, description="The most by which the mean score may be lower than the baseline's, with 95 %."
    )


class ContainerSpec(Wire):
    """A program of yours that asks both and writes a score for each item."""

    image: Text = Field(description="Its image.")
    args: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=128)] = Field(
        default=[], description="Arguments of its entry point.", json_schema_extra=ATOMIC
    )


class ModelEvaluationSpec(Wire):
    """What is compared with what, by which questions, and what passes."""

    keeps: ClassVar = (rules.ONE_COMPARISON, rules.BOTH_SIDES, rules.ONE_QUESTIONER)

    plan_ref: PlanRefSpec | None = Field(
        default=None,
        description="Compare the engine that this plan states, in a pool of its own, with what the plan serves.",
    )
    baseline: ComparedSpec | None = Field(default=None, description="What the variant is compared with.")
    variant: ComparedSpec | None = Field(default=None, description="What is to be accepted.")
    set: FileSpec | None = Field(default=None, description="The items, as JSON lines with a scorer each.")
    container: ContainerSpec | None = Field(default=None, description="A program of yours, in place of a set.")
    rule: AcceptanceRuleSpec = Field(default=AcceptanceRuleSpec(), description="What passes.")
    chat: bool = Field(default=False, description="Ask the items of a set as chat messages.")
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = Field(
        default=4, description="Items that are asked at a time."
    )
    longest: LongestDuration = Field(default="4h", description="Limit of the whole work.")
    suspend: bool = Field(default=False, description="True: stop, and give the accelerators back.")
    runner: RunnerSpec = Field(default=RunnerSpec(), description="The Job that asks.")


# ---- status -----------------------------------------------------------------------------------------------


class ScoreStatus(Wire):
    """Mean scores, 0 to 1."""

    baseline: Share = Field(description="Of the baseline.")
    variant: Share = Field(description="Of the variant.")


class DifferenceStatus(Wire):
    """The variant's score less the baseline's, item by item."""

    mean: Mean = Field(description="Its mean.")
    lower_bound: Mean = Field(description="It is at least this, with 95 %.")
    upper_bound: Mean | None = Field(default=None, description="It is at most this, with 95 %.")
    discordant: Share = Field(description="Share of the items at which the two differ.")
    baseline_discordant: Share | None = Field(
        default=None, description="Share of the items at which the baseline differs from itself."
    )
    items: Items = Field(description="Items that were compared.")
    needed: Items | None = Field(default=None, description="Items that would tell, about.")


class SetStatus(Wire):
    """What was asked."""

    digest: Words = Field(description="Digest of the set, or of a container's results.")
    items: Items = Field(description="Its items.")


class ComparedStatus(Wire):
    """What answered. Left out where it is not known."""

    digest: Words | None = Field(default=None, description="Of image, model, arguments and accelerator.")
    image: Text | None = Field(default=None, description="Its image, as stated.")
    image_digest: Text | None = Field(default=None, description="Its image, as it ran.")
    model: Text | None = Field(default=None, description="The model, as stated.")
    vllm: Words | None = Field(default=None, description="Version of vLLM, as the server says.")


class ModelEvaluationStatus(Wire):
    """What was found, and how far the work is."""

    observed_generation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Generation of the spec that this speaks of.", json_schema_extra={"format": "int64"}
    )
    work: Words | None = Field(
        default=None, description="Names what the spec asks for; an edit of suspend alone does not change it."
    )
    verdict: Literal[Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE] | None = Field(
        default=None, description="What was found; absent until the work is done."
    )
    score: ScoreStatus | None = Field(default=None, description="Mean scores.")
    difference: DifferenceStatus | None = Field(default=None, description="How the two compare.")
    set: SetStatus | None = Field(default=None, description="What was asked.")
    variant: ComparedStatus | None = Field(default=None, description="What was measured.")
    baseline: ComparedStatus | None = Field(default=None, description="What it was compared with.")
    started_at: Instant | None = Field(default=None, description="When the first item was asked.")
    finished_at: Instant | None = Field(default=None, description="When the last answer came.")
    conditions: Annotated[list[ConditionStatus], Field(max_length=8)] | None = Field(
        default=None, description="Conditions, one of each type.", json_schema_extra=map_by("type")
    )


class ModelEvaluation(Wire):
    """Whether a variant of a model answers as well as what it is to replace, by questions of your own."""

    keeps: ClassVar = (rules.EVIDENCE_NAME,)

    spec: ModelEvaluationSpec = Field(description="What to compare.")
    status: ModelEvaluationStatus | None = Field(default=None, description="What was found.")
