"""What runs in the container: vLLM's arguments and environment, and the fingerprint of both.

In: an `Engine`. Out: plain lists for the pod template. Nothing in here may follow demand, objectives or time:
a change of any of it starts every replica anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from servingplan.planning.target import Engine
from servingplan.rendering.metadata import Manifest, stable_hash

ENGINE_CONTAINER = "engine"
"""The container that the operator fills; a plan's pod template may add others."""

CACHE_MOUNT = "/cache"
"""Where compile caches live in the container."""

API_KEY_VARIABLE = "VLLM_API_KEY"
"""The environment variable from which vLLM, and the startup probe, read the key."""

# Edges of vLLM's histograms. Attainment of an objective is bucket(le = limit) / count, exact only where the
# limit is an edge, so the limits that people state are edges, and where objectives lie no edge is more than
# twice the one before. The set is fixed: if it followed the objectives, an edit of one would restart every
# engine. vLLM's own edges see nothing of a queue below 0.3 s and jump from 1 s to 2.5 s in TTFT. Every edge
# is a time series per histogram and pod: these sets add about 500 to a pod.
HISTOGRAM_BUCKETS: dict[str, tuple[float, ...]] = {
    # TPOT and ITL, seconds: objectives lie between 10 ms (a fast coder) and 500 ms (a batch).
    "inter_token_latency": (
        0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.07, 0.075,
        0.08, 0.09, 0.1, 0.12, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0,
    ),
    # E2EL, queue, prefill and decode time, seconds: a queue counts from 10 ms on, an answer may take an hour.
    "request_latency": (
        0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0,
        4.0, 5.0, 6.0, 7.5, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 45.0, 60.0, 75.0, 90.0, 120.0, 180.0,
        240.0, 300.0, 450.0, 600.0, 900.0, 1800.0, 3600.0,
    ),
    # Prompt and output tokens. vLLM's own edges end at the model's length and so differ between models.
    "request_tokens": (
        1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
        12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072, 262144, 524288, 1048576,
    ),
    # TTFT, seconds: objectives lie between 100 ms (completion in an editor) and 30 s (long documents).
    "time_to_first_token": (
        0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.75,
        0.8, 0.9, 1.0, 1.2, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.5, 8.0, 10.0, 12.0, 15.0, 20.0,
        30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0,
    ),
}  # fmt: skip

_CACHES = {
    "DG_JIT_CACHE_DIR": "deep-gemm",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "VLLM_CACHE_ROOT": "vllm",
}
"""Every cache of compiled code that a start fills, and its directory."""

_DIGEST_DIGITS = 16

_NOTHING_STATED: tuple[Any, ...] = (None, (), [], {})
_NO_TEMPLATE = {"deletion_policy": None, "stated": None}
"""Fields of an engine that its pod template does not follow."""


def arguments(engine: Engine) -> list[str]:
    """The container's ``args``. The image's entry point is ``vllm serve``, so they begin with the model.

    Each flag is one ``--name=value``, so that a value may begin with a dash. The user's own come last.
    """
    flags = [_flag(name, value) for name, value in _settings(engine) if value is not None]
    return [engine.model, *flags, *engine.extra_args]


def environment(engine: Engine) -> list[Manifest]:
    """The container's ``env``, by name. The key comes from the Secret and is never in the manifest.

    No variable differs between pods: vLLM hashes most ``VLLM_*`` variables into its compile cache's key.
    """
    variables: dict[str, Manifest] = {
        name: {"value": f"{cache_directory(engine)}/{directory}"} for name, directory in _CACHES.items()
    }
    # vLLM gives its engine 600 s to come up; a plan that allows more must not be cut short by that.
    variables["VLLM_ENGINE_READY_TIMEOUT_S"] = {"value": str(math.ceil(engine.start_timeout.total_seconds()))}
    if engine.api_key is not None:
        key = {"name": engine.api_key.name, "key": engine.api_key.key}
        variables[API_KEY_VARIABLE] = {"valueFrom": {"secretKeyRef": key}}
    return [{"name": name} | variables[name] for name in sorted(variables)]


def cache_directory(engine: Engine) -> str:
    """``/cache/<image>/<accelerator>/<fingerprint>``: compiled code is only ever met by what compiled it."""
    accelerator = engine.accelerator_resource.replace("/", "_")
    return f"{CACHE_MOUNT}/{_image_directory(engine.image)}/{accelerator}/{fingerprint(engine)}"


def fingerprint(engine: Engine) -> str:
    """16 hex digits over what changes the program that runs, and so its compiled code, start and capacity.

    Not in it: the served name, port, key, probes, timeouts, volumes, resources and deletion policy. The pod
    template's spec is in it, since it chooses nodes and environment; its labels and annotations are not.
    """
    return _hash_of_stated(
        {
            "image": engine.image,
            "model": engine.model,
            "parallelism": engine.parallelism,
            "gpu_memory_utilization": engine.gpu_memory_utilization,
            "max_model_len": engine.max_model_len,
            "max_num_seqs": engine.max_num_seqs,
            "max_num_batched_tokens": engine.max_num_batched_tokens,
            "quantization": engine.quantization,
            "kv_cache_dtype": engine.kv_cache_dtype,
            "dtype": engine.dtype,
            "prefix_caching": engine.prefix_caching,
            "extra_args": tuple(engine.extra_args),
            "accelerator": engine.accelerator_resource,
            "pod": engine.pod_template.get("spec", {}),
        }
    )


def engine_hash(engine: Engine) -> str:
    """16 hex digits over what the pod template follows from: equal as long as the user changed none of it.

    A field that states nothing is left out, so that a field which a later operator adds changes no hash.
    """
    return _hash_of_stated({field.name: getattr(engine, field.name) for field in fields(engine)} | _NO_TEMPLATE)


def _hash_of_stated(values: Mapping[str, Any]) -> str:
    return stable_hash({name: value for name, value in values.items() if value not in _NOTHING_STATED})


def _settings(engine: Engine) -> Iterator[tuple[str, Any]]:
    """Flag and value in the order of the arguments; None where vLLM's default applies."""
    parallelism = engine.parallelism
    yield "served-model-name", engine.served_model_name
    yield "port", engine.port
    yield "tensor-parallel-size", _beyond_one(parallelism.tensor)
    yield "pipeline-parallel-size", _beyond_one(parallelism.pipeline)
    yield "data-parallel-size", _beyond_one(parallelism.data)
    yield "enable-expert-parallel", parallelism.expert or None
    yield "gpu-memory-utilization", _decimal(engine.gpu_memory_utilization)
    yield "max-model-len", engine.max_model_len
    yield "max-num-seqs", engine.max_num_seqs
    yield "max-num-batched-tokens", engine.max_num_batched_tokens
    yield "quantization", engine.quantization
    yield "kv-cache-dtype", engine.kv_cache_dtype
    yield "dtype", engine.dtype
    yield "enable-prefix-caching", engine.prefix_caching
    # At its default of 0, vLLM cuts every request off when a pod ends; at least one second lets them finish.
    yield "shutdown-timeout", max(1, math.ceil(engine.drain_timeout.total_seconds()))
    yield "custom-histogram-buckets", json.dumps(HISTOGRAM_BUCKETS, sort_keys=True, separators=(",", ":"))


def _flag(name: str, value: Any) -> str:
    if value is True:
        return f"--{name}"
    if value is False:
        return f"--no-{name}"
    return f"--{name}={value}"


def _beyond_one(count: int) -> int | None:
    return count if count > 1 else None


def _decimal(value: Any) -> str | None:
    return None if value is None else format(value.normalize(), "f")


def _image_directory(image: str) -> str:
    """The digest where the image has one. A tag may be moved: then only vLLM's own hash tells the code apart."""
    algorithm, _, digest = image.partition("@")[2].partition(":")
    return f"{algorithm}-{digest[:_DIGEST_DIGITS]}" if digest else f"reference-{stable_hash(image)}"
