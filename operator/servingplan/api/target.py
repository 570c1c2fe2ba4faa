"""What runs, from the wire to values: an owned engine or a reference to a workload.

Place in the flow: part of ``resolve``. In: a wire model whose form is valid. Out: a `planning.target` value, or
`InputError` with every problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from servingplan.api.arguments import argument_problems
from servingplan.api.engine import EngineSpec, SecretKeySpec, TargetRefSpec, VolumeSpec
from servingplan.errors import InputError, Problem
from servingplan.planning.target import (
    DeletionPolicy,
    Engine,
    Parallelism,
    SecretKey,
    StartupCheck,
    TargetRef,
    Volume,
)
from servingplan.planning.units import exact, parse_duration

ENGINE_CONTAINER = "engine"
"""Name of the container that runs vLLM; the pod template may add to it."""

LABEL_DOMAIN = "servingplan.dev/"

OWNED_OF_CONTAINER: Mapping[str, str] = {
    "image": "state engine.image",
    "command": "the image's own entry point runs vLLM",
    "args": "state the fields of engine, or engine.extraArgs",
    "ports": "state engine.port",
    "startupProbe": "state engine.startupCheck and engine.startTimeout",
    "readinessProbe": "it is part of ready before the ramp",
    "livenessProbe": "it is part of ready before the ramp",
    "lifecycle": "the drain relies on it",
}
"""What a pod template may not set on container ``engine``, and what to do instead."""

WITHOUT_SCALE = frozenset(
    {
        ("", "Pod"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("servingplan.dev", "ServingPlan"),
    }
)
"""Kinds that have no scale subresource, as group and kind: known without asking a cluster."""


def target_ref(wire: TargetRefSpec, path: str) -> TargetRef:
    """The reference. Raises InputError for a kind that has no replicas."""
    reference = TargetRef(api_version=wire.api_version, kind=wire.kind, name=wire.name)
    if (reference.group, reference.kind) in WITHOUT_SCALE:
        raise InputError(
            Problem(
                path=f"{path}.kind",
                reason="NotScalable",
                message=f"a {wire.kind} has no replicas to set: name a Deployment, a StatefulSet, an autoscaler or "
                "another kind with a scale subresource",
            )
        )
    return reference


def engine(wire: EngineSpec, path: str) -> Engine:
    """The engine. Raises InputError where resources, arguments or pod template set what the API owns."""
    resources = f"{path}.resources"
    if problems := (*resource_problems(wire.resources, resources), *_stated_accelerators(wire, resources)):
        raise InputError(*problems)
    return Engine(
        image=wire.image,
        model=wire.model,
        served_model_name=wire.served_model_name or wire.model,
        parallelism=Parallelism(**wire.parallelism.model_dump()),
        gpu_memory_utilization=None if wire.gpu_memory_utilization is None else exact(wire.gpu_memory_utilization),
        max_model_len=wire.max_model_len,
        max_num_seqs=wire.max_num_seqs,
        max_num_batched_tokens=wire.max_num_batched_tokens,
        quantization=wire.quantization,
        kv_cache_dtype=wire.kv_cache_dtype,
        dtype=wire.dtype,
        prefix_caching=wire.prefix_caching,
        extra_args=extra_args(wire.extra_args, f"{path}.extraArgs"),
        accelerator_resource=wire.accelerator.resource,
        resources=wire.resources,
        port=wire.port,
        api_key=secret_key(wire.api_key_secret_ref),
        model_volume=_volume(wire.model_volume),
        cache_volume=_volume(wire.cache_volume),
        start_timeout=parse_duration(wire.start_timeout),
        startup_check=StartupCheck(wire.startup_check),
        drain_timeout=parse_duration(wire.drain_timeout),
        deletion_policy=DeletionPolicy(wire.deletion_policy),
        pod_template=pod_template(wire.pod_template, f"{path}.podTemplate"),
        stated=json.dumps(wire.model_dump(by_alias=True, exclude_defaults=True), sort_keys=True),
    )


def engine_read_back(stated: str) -> Engine | None:
    """The engine of `Engine.stated`; None where it is none, or none that may run any more."""
    try:
        return engine(EngineSpec.model_validate_json(stated), "spec.engine")
    except (ValidationError, InputError):
        return None


def extra_args(arguments: Sequence[str], path: str) -> tuple[str, ...]:
    """The arguments. Raises InputError for each that sets what the API owns."""
    if problems := tuple(argument_problems(arguments, path)):
        raise InputError(*problems)
    return tuple(arguments)


def pod_template(template: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The template. Raises InputError for each field that the API owns."""
    if problems := tuple(_template_problems(template, path)):
        raise InputError(*problems)
    return template


def secret_key(wire: SecretKeySpec | None) -> SecretKey | None:
    """One key of a Secret."""
    return None if wire is None else SecretKey(name=wire.name, key=wire.key)


def _volume(wire: VolumeSpec | None) -> Volume | None:
    if wire is None:
        return None
    claim = wire.persistent_volume_claim
    return Volume(claim_name=claim.claim_name, read_only=claim.read_only)


def resource_problems(resources: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """What is wrong with the form of a container's resources."""
    for section, amounts in resources.items():
        if section not in {"requests", "limits"}:
            message = "only requests and limits are known here"
            yield Problem(path=f"{path}.{section}", reason="UnknownField", message=message)
        elif not isinstance(amounts, Mapping):
            message = 'must be an object of resources and amounts, for example cpu: "4"'
            yield Problem(path=f"{path}.{section}", reason="WrongType", message=message)


def _stated_accelerators(wire: EngineSpec, path: str) -> Iterator[Problem]:
    resource = wire.accelerator.resource
    for section in ("requests", "limits"):
        amounts = wire.resources.get(section)
        if isinstance(amounts, Mapping) and resource in amounts:
            message = "accelerators follow from engine.parallelism: leave them out"
            yield Problem(path=f"{path}.{section}.{resource}", reason="OwnedByAPI", message=message)


def _template_problems(template: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for key in template:
        if key not in {"metadata", "spec"}:
            message = "a pod template has metadata and spec"
            yield Problem(path=f"{path}.{key}", reason="UnknownField", message=message)
    metadata, spec = template.get("metadata", {}), template.get("spec", {})
    for name, value in (("metadata", metadata), ("spec", spec)):
        if not isinstance(value, Mapping):
            yield Problem(path=f"{path}.{name}", reason="WrongType", message="must be an object with fields")
    if isinstance(metadata, Mapping):
        yield from _metadata_problems(metadata, f"{path}.metadata")
    if isinstance(spec, Mapping):
        yield from _pod_problems(spec, f"{path}.spec")


def _metadata_problems(metadata: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for section in ("labels", "annotations"):
        for key in metadata.get(section) or {}:
            if str(key).startswith(LABEL_DOMAIN):
                message = f"{LABEL_DOMAIN} belongs to the operator: use a name of your own"
                yield Problem(path=f"{path}.{section}.{key}", reason="OwnedByAPI", message=message)


def _pod_problems(spec: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if "terminationGracePeriodSeconds" in spec:
        message = "the grace period follows from the drain: state engine.drainTimeout"
        yield Problem(path=f"{path}.terminationGracePeriodSeconds", reason="OwnedByAPI", message=message)
    for section in ("containers", "initContainers", "volumes"):
        entries = spec.get(section, [])
        if not isinstance(entries, list):
            yield Problem(path=f"{path}.{section}", reason="WrongType", message="must be a list")
            continue
        for index, entry in enumerate(entries):
            yield from _entry_problems(entry, f"{path}.{section}[{index}]", section)


def _entry_problems(entry: Any, path: str, section: str) -> Iterator[Problem]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        message = "must be an object with a name: entries are merged by it"
        yield Problem(path=path, reason="NameMissing", message=message)
    elif section == "containers" and entry["name"] == ENGINE_CONTAINER:
        for field, instead in OWNED_OF_CONTAINER.items():
            if field in entry:
                message = f"container {ENGINE_CONTAINER} may not set it: {instead}"
                yield Problem(path=f"{path}.{field}", reason="OwnedByAPI", message=message)
