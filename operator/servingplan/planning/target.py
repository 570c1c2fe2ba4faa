"""What runs: an engine that the operator owns, or a workload that exists already.

Values only, validated by ``api.resolve``. ``rendering`` turns an `Engine` into objects; the pod template is a
pure function of it, so nothing in here may depend on demand, objectives or time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any


class StartupCheck(StrEnum):
    """What the startup probe of an owned engine asks for."""

    COMPLETION = "Completion"
    HEALTH = "Health"


class DeletionPolicy(StrEnum):
    """What becomes of an owned engine when its plan is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How one replica is spread over GPUs; ``gpus`` = tensor x pipeline x data."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def gpus(self) -> int:
        """GPUs per replica."""
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A persistent volume claim to mount."""

    claim_name: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKey:
    """One key of a Secret in the plan's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A vLLM server, as the API states it. None where vLLM's own default applies.

    start_timeout: the startup probe's budget. drain_timeout: rendered as ``--shutdown-timeout``.
    pod_template and resources: plain Kubernetes JSON. stated: ``spec.engine`` itself as JSON, without what is left at
    its default; kept beside what runs, so that it can be read back.
    """

    image: str
    model: str
    served_model_name: str
    parallelism: Parallelism
    gpu_memory_utilization: Decimal | None
    max_model_len: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    quantization: str | None
    kv_cache_dtype: str | None
    dtype: str | None
    prefix_caching: bool | None
    extra_args: Sequence[str]
    accelerator_resource: str
    resources: Mapping[str, Any]
    port: int
    api_key: SecretKey | None
    model_volume: Volume | None
    cache_volume: Volume | None
    start_timeout: timedelta
    startup_check: StartupCheck
    drain_timeout: timedelta
    deletion_policy: DeletionPolicy
    pod_template: Mapping[str, Any]
    stated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRef:
    """A workload that exists already, in the plan's namespace."""

    api_version: str
    kind: str
    name: str

    FLOOR_KINDS = frozenset({("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")})

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_floor(self) -> bool:
        """True where the plan sets an autoscaler's minimum instead of replicas."""
        return (self.group, self.kind) in self.FLOOR_KINDS

    def __str__(self) -> str:
        """``Deployment/vllm``, as kubectl writes it."""
        return f"{self.kind}/{self.name}"


Target = Engine | TargetRef
