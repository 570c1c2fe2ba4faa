"""Wire documents for tests: the worked example, so that a test shows only what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from servingplan.api.references import Kind, Reference, References, content
from servingplan.api.yaml_reader import read_yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    """The spec of the plan in a file of examples/, read as the command line reads it."""
    ((_, manifest),) = read_yaml((EXAMPLES / f"{name}.yaml").read_text())
    spec: dict[str, Any] = manifest["spec"]
    return spec


WORKED_EXAMPLE: Mapping[str, Any] = example("worked-example")
ENGINE: Mapping[str, Any] = WORKED_EXAMPLE["engine"]
(WORKING_DAY,) = WORKED_EXAMPLE["schedule"]["windows"]


def document(
    name: str = "support-chat",
    namespace: str = "llm",
    spec: Mapping[str, Any] | None = None,
    **spec_overrides: Any,
) -> dict[str, Any]:
    """A ServingPlan as JSON: the worked example, or `spec`, with top-level fields replaced; None removes one."""
    fields = {**deepcopy(dict(spec if spec is not None else WORKED_EXAMPLE)), **deepcopy(spec_overrides)}
    return {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "ServingPlan",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def targeting(kind: str = "Deployment", api_version: str = "apps/v1", name: str = "vllm") -> dict[str, Any]:
    """Overrides of `document` for a plan that scales an existing workload."""
    return {"engine": None, "targetRef": {"apiVersion": api_version, "kind": kind, "name": name}}


def scheduled(**changes: Any) -> dict[str, Any]:
    """Overrides of `document` that replace fields of the schedule; None removes one."""
    fields = {**deepcopy(dict(WORKED_EXAMPLE["schedule"])), **changes}
    return {"schedule": {key: value for key, value in fields.items() if value is not None}}


def config_maps(data: Mapping[str, Mapping[str, str] | None]) -> References:
    """What a plan refers to, where that is ConfigMaps alone: their data by name."""
    return {Reference(Kind.CONFIG_MAP, name): entries for name, entries in data.items()}


RESULT: Mapping[str, Any] = {
    "capacity": {
        "requestsPerSecond": 5.0,
        "failingRequestsPerSecond": 5.12,
        "perPoolSize": [{"replicas": 1, "requestsPerSecond": 5.0, "failingRequestsPerSecond": 5.12}],
    },
    "atCapacity": {
        "inFlightMean": 40.0,
        "unloadedTtftP95Seconds": 0.3,
        "inputTokens": 850.0,
        "outputTokens": 240.0,
        "prefixHitShare": 0.4,
    },
    "fingerprint": {"digest": "sha256:none"},
    "conditions": [{"type": "Complete", "status": "True", "reason": "Found", "message": "the ramp is done"}],
}
"""The status of a CapacityBenchmark that found 5/s."""


def benchmark(name: str = "l40s", namespace: str = "llm", **changes: Any) -> dict[str, Any]:
    """A CapacityBenchmark with the status `RESULT`; fields of it replaced, None removes one."""
    status = {**deepcopy(dict(RESULT)), **changes}
    return {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "CapacityBenchmark",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "planRef": {"name": "support-chat"},
            "prompts": {"configMap": {"name": "prompts", "key": "prompts.jsonl"}},
        },
        "status": {key: value for key, value in status.items() if value is not None},
    }


def measured_by(found: Mapping[str, Any] | None, name: str = "l40s") -> References:
    """What a plan refers to, where that is one CapacityBenchmark; None where it does not exist."""
    known = None if found is None else content(Kind.BENCHMARK, found)
    return {Reference(Kind.BENCHMARK, name): known}


def config_map(name: str, data: Mapping[str, str], namespace: str = "llm") -> dict[str, Any]:
    """A ConfigMap as JSON."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict(data),
    }


def an_evaluation(
    name: str = "fp8",
    namespace: str = "llm",
    *,
    verdict: str | None = None,
    variant: str = "",
    complete: tuple[str, str, str] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A ModelEvaluation as JSON, as its controller reports it. complete: status, reason and message of Complete."""
    given: dict[str, Any] = {**status}
    if verdict is not None:
        given["verdict"] = verdict
        complete = complete or ("True", verdict, "it is over")
    if variant:
        given["variant"] = {"digest": variant}
    if complete is not None:
        word, reason, message = complete
        given["conditions"] = [{"type": "Complete", "status": word, "reason": reason, "message": message}]
    return {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "ModelEvaluation",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
        **({"status": given} if given else {}),
    }
