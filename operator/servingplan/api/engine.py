"""The wire of what runs: the vLLM engine that the operator owns, or a reference to a workload that exists.

Place in the flow: part of ``v1alpha1``; ``resolve`` turns it into ``planning.target``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from servingplan.api import rules
from servingplan.api.wire import (
    ANY_FIELDS,
    API_VERSION_PATTERN,
    ATOMIC,
    KEY_PATTERN,
    KIND_PATTERN,
    MAX_PARALLELISM,
    RESOURCE_PATTERN,
    WORD_PATTERN,
    ObjectName,
    PositiveDuration,
    Text,
    Tokens,
    Wire,
)

ParallelSize = Annotated[int, Field(ge=1, le=MAX_PARALLELISM)]
Word = Annotated[str, Field(min_length=1, max_length=63, pattern=WORD_PATTERN)]
"""A value that vLLM knows by name, such as ``fp8``; which ones there are depends on its version."""

Argument = Annotated[str, Field(min_length=1, max_length=4096)]
ResourceName = Annotated[str, Field(max_length=317, pattern=RESOURCE_PATTERN)]


class ParallelismSpec(Wire):
    """How one replica is spread over GPUs: tensor x pipeline x data."""

    tensor: ParallelSize = Field(default=1, description="Tensor parallel size: GPUs that share each layer.")
    pipeline: ParallelSize = Field(default=1, description="Pipeline parallel size: GPUs that share the layers.")
    data: ParallelSize = Field(default=1, description="Data parallel size: engines in one replica.")
    expert: bool = Field(default=False, description="Expert parallelism for mixture-of-experts models.")


class AcceleratorSpec(Wire):
    """The accelerator that a replica takes."""

    resource: ResourceName = Field(
        default="nvidia.com/gpu",
        description="Extended resource that counts accelerators on a node; each nvidia.com/mig-1g.10gb is one.",
    )


class SecretKeySpec(Wire):
    """One key of a Secret in the plan's namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: Annotated[str, Field(max_length=253, pattern=KEY_PATTERN)] = Field(description="Key within the Secret.")


class ClaimSpec(Wire):
    """A persistent volume claim in the plan's namespace."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.")
    read_only: bool = Field(default=False, description="Mount it read-only.")


class VolumeSpec(Wire):
    """A volume to mount into the engine's container."""

    persistent_volume_claim: ClaimSpec = Field(description="The claim that holds the volume.")


class EngineSpec(Wire):
    """A vLLM server that the operator owns. The pod template is a pure function of this object."""

    keeps: ClassVar = (rules.CACHE_WRITABLE,)

    image: Text = Field(description="Container image with vLLM; pin it by digest.")
    model: Text = Field(description="Model as vLLM takes it: a path in the container or a name.")
    served_model_name: Text | None = Field(
        default=None, description="Name that clients ask for; the model's own where left out."
    )
    parallelism: ParallelismSpec = Field(
        default=ParallelismSpec(), description="GPUs per replica = tensor x pipeline x data."
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="Share of GPU memory for this engine; vLLM's default where left out."
    )
    max_model_len: Tokens | None = Field(default=None, description="Longest sequence, in tokens.")
    max_num_seqs: Tokens | None = Field(default=None, description="Most sequences in one batch.")
    max_num_batched_tokens: Tokens | None = Field(default=None, description="Most tokens in one batch.")
    quantization: Word | None = Field(default=None, description="Quantization method, for example fp8.")
    kv_cache_dtype: Word | None = Field(default=None, description="Data type of the KV cache.")
    dtype: Word | None = Field(default=None, description="Data type of weights and activations.")
    prefix_caching: bool | None = Field(
        default=None, description="Automatic prefix caching on or off; vLLM's default where left out."
    )
    extra_args: Annotated[list[Argument], Field(max_length=128)] = Field(
        default=[],
        description="vLLM arguments that have no field here. A flag that the API owns is refused.",
        json_schema_extra=ATOMIC,
    )
    accelerator: AcceleratorSpec = Field(default=AcceleratorSpec(), description="What a GPU is called here.")
    resources: dict[str, Any] = Field(
        default={},
        description="Container resources beside the accelerator, as in a Pod: requests and limits.",
        json_schema_extra=ANY_FIELDS,
    )
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=8000, description="Port of the HTTP server.")
    api_key_secret_ref: SecretKeySpec | None = Field(
        default=None, description="Key that clients must present; none where left out."
    )
    model_volume: VolumeSpec | None = Field(default=None, description="Volume that holds the model.")
    cache_volume: VolumeSpec | None = Field(default=None, description="Volume for vLLM's compile caches.")
    start_timeout: PositiveDuration = Field(
        default="30m", description="Budget of the startup probe, from container start to the first answer."
    )
    startup_check: Literal["Completion", "Health"] = Field(
        default="Completion", description="Completion: a replica is started once it answered one token."
    )
    drain_timeout: PositiveDuration = Field(
        default="5m", description="How long a leaving replica may finish its requests."
    )
    deletion_policy: Literal["Delete", "Retain"] = Field(
        default="Delete", description="Retain leaves the Deployment when the plan is deleted."
    )
    pod_template: dict[str, Any] = Field(
        default={},
        description="Merged into the pod template by key. May not set image, command, args, ports, probes or "
        "lifecycle of container engine, nor the grace period.",
        json_schema_extra=ANY_FIELDS,
    )


class TargetRefSpec(Wire):
    """A workload in the plan's namespace: anything with a scale subresource, or an autoscaler."""

    api_version: Annotated[str, Field(max_length=253, pattern=API_VERSION_PATTERN)] = Field(
        description="API version of the workload, for example apps/v1."
    )
    kind: Annotated[str, Field(max_length=63, pattern=KIND_PATTERN)] = Field(
        description="Kind of the workload; a HorizontalPodAutoscaler or ScaledObject has its minimum set instead."
    )
    name: ObjectName = Field(description="Name of the workload.")
