"""The parts that all wire models are made of: the model class, its scalar types and their limits.

Place in the flow: below ``engine``, ``schedule``, ``v1alpha1`` and ``status``. A model here describes JSON exactly as
the API server keeps it: camelCase names, unknown fields refused, no number read from a string. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from servingplan.api import rules
from servingplan.api.rules import Rule
from servingplan.planning.units import DURATION_PATTERN, PERCENT_PATTERN

MAX_RATE = 1e6
"""Largest rate in requests/s: beyond any deployment, and float64 still tells thousandths of a request apart."""

MAX_REPLICAS = 10_000
"""Largest number of replicas: more than any cluster's GPU nodes, and small enough for every sum to stay exact."""

MAX_TOKENS = 100_000_000
"""Largest token count: far beyond any model's context length."""

MAX_PARALLELISM = 1024
"""Largest tensor, pipeline or data parallel size."""


class Wire(BaseModel):
    """A JSON object of the API. `keeps` are printed into its schema and checked by ``validation``."""

    model_config = ConfigDict(alias_generator=to_camel, allow_inf_nan=False, extra="forbid", frozen=True, strict=True)

    keeps: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema with this model's rules."""
        schema = handler(core)
        if cls.keeps:
            handler.resolve_ref_schema(schema).update(ruled(*cls.keeps))
        return schema


class Tolerant(Wire):
    """A JSON object that another version of ours may have written: a field that is not known here is passed over."""

    model_config = ConfigDict(extra="ignore")


def ruled(*of: Rule) -> dict[str, Any]:
    """The schema extension that attaches rules to a value."""
    return {"x-kubernetes-validations": [rule.as_validation() for rule in of]}


def map_by(*keys: str) -> dict[str, Any]:
    """The schema extension of a list whose entries are merged by `keys`."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


AS_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
ANY_FIELDS: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
OBJECT_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
WORD_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
RESOURCE_PATTERN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"
API_VERSION_PATTERN = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$"
KIND_PATTERN = r"^[A-Z][A-Za-z0-9]*$"
LOCAL_TIME_PATTERN = r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]$"

PORT_PATTERN = r"^([a-z][-a-z0-9]*[a-z0-9]|[a-z]|[0-9]+)$"
PATH_PATTERN = r"^/[-A-Za-z0-9._~/]*$"
FILE_PATH_PATTERN = r"^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$"

PATTERN_WORDS: Mapping[str, str] = {
    NAME_PATTERN: "lower-case letters, digits and '-', for example working-day",
    OBJECT_NAME_PATTERN: "the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
    WORD_PATTERN: "one word as vLLM knows it, for example fp8",
    RESOURCE_PATTERN: "an extended resource, for example nvidia.com/gpu",
    KEY_PATTERN: "the key of a Secret: letters, digits, '-', '_' and '.'",
    API_VERSION_PATTERN: "an API version, for example apps/v1",
    KIND_PATTERN: "a kind, for example Deployment",
    LOCAL_TIME_PATTERN: "a local date and time of this century, without zone or seconds, for example 2026-12-01T07:00",
    DURATION_PATTERN: "a duration, for example 90s, 10m, 1h30m or 1500ms",
    PORT_PATTERN: "the name of a port of the pods, or its number, for example http or 8000",
    PATH_PATTERN: "a path, for example /metrics",
    PERCENT_PATTERN: "a percentage, for example 20%",
    FILE_PATH_PATTERN: "the path of a file in the volume, without a leading slash, for example sets/prompts.jsonl",
}
"""What to write where a text must match a pattern."""

Name = Annotated[str, Field(max_length=63, pattern=NAME_PATTERN)]
ObjectName = Annotated[str, Field(max_length=253, pattern=OBJECT_NAME_PATTERN)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Duration = Annotated[str, Field(max_length=32, pattern=DURATION_PATTERN)]
PositiveDuration = Annotated[
    str,
    Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(rules.POSITIVE_DURATION)),
]
LeadDuration = Annotated[str, Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(rules.LEAD_LIMIT))]
StepDuration = Annotated[
    str,
    Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(rules.POSITIVE_DURATION, rules.EVERY_LIMIT)),
]
Percent = Annotated[str, Field(max_length=8, pattern=PERCENT_PATTERN)]
RequestsPerSecond = Annotated[float, Field(ge=0, le=MAX_RATE)]
CapacityPerReplica = Annotated[float, Field(ge=0, le=MAX_RATE, json_schema_extra=ruled(rules.CAPACITY_POSITIVE))]
Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS)]
SomeReplicas = Annotated[int, Field(ge=1, le=MAX_REPLICAS)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]


class ObjectReference(Wire):
    """An object in the plan's namespace."""

    name: ObjectName = Field(description="Its name, in the plan's namespace.")


class ConfigMapName(Wire):
    """A ConfigMap in the plan's namespace."""

    name: ObjectName = Field(description="Name of a ConfigMap in the plan's namespace.")
