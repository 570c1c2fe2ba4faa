"""What evidence kinds state alike: a plan, what serves, a file, and the runner that does the work.

Place in the flow: part of ``benchmark``, and of every other kind whose work is one Job.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from servingplan.api import evidence_rules as rules
from servingplan.api.engine import SecretKeySpec
from servingplan.api.wire import ANY_FIELDS, FILE_PATH_PATTERN, KEY_PATTERN, MAX_REPLICAS, ObjectName, Text, Wire


class PlanRefSpec(Wire):
    """A ServingPlan in the same namespace."""

    name: ObjectName = Field(description="Name of a ServingPlan in the same namespace.")


class ServiceSpec(Wire):
    """What serves already, behind a Service of the same namespace."""

    name: ObjectName = Field(description="Name of a Service in the same namespace.")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=8000, description="Port of the Service.")
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = Field(
        default=1, description="Replicas behind it while it is measured."
    )
    model: Text | None = Field(default=None, description="Name that the server gives its model, if it has several.")
    tokenizer: Text | None = Field(
        default=None, description="Name or path of the tokenizer, where the model's name does not lead to it."
    )
    api_key_secret_ref: SecretKeySpec | None = Field(
        default=None, description="Key that the server wants; none where left out."
    )


class ConfigMapFileSpec(Wire):
    """One key of a ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: Annotated[str, Field(max_length=253, pattern=KEY_PATTERN)] = Field(description="Key within it.")


class ClaimFileSpec(Wire):
    """A file on a persistent volume."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")
    path: Annotated[str, Field(max_length=1024, pattern=FILE_PATH_PATTERN)] = Field(
        description="Path of the file in the volume, without a leading slash."
    )


class FileSpec(Wire):
    """A file that the runner reads."""

    keeps: ClassVar = (rules.ONE_FILE,)

    config_map: ConfigMapFileSpec | None = Field(default=None, description="In a ConfigMap.")
    persistent_volume_claim: ClaimFileSpec | None = Field(default=None, description="On a persistent volume.")


class RunnerClaimSpec(Wire):
    """A persistent volume claim that the runner writes to."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")


class RunnerVolumeSpec(Wire):
    """Where the runner keeps its work."""

    persistent_volume_claim: RunnerClaimSpec = Field(description="The claim that holds the volume.")


class RunnerSpec(Wire):
    """The Job that does the work."""

    image: Text | None = Field(
        default=None, description="Image with vLLM and servingplan[bench,evaluate]; the installation's where left out."
    )
    resources: dict[str, Any] = Field(
        default={}, description="Container resources, as in a Pod: requests and limits.", json_schema_extra=ANY_FIELDS
    )
    volume: RunnerVolumeSpec | None = Field(
        default=None, description="Keeps the work over a lost pod and over a pause; without it, both begin anew."
    )
