"""Wire documents for tests: the worked example, so that a test shows only what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

ENGINE: Mapping[str, Any] = {
    "image": "registry.local/vllm/vllm-openai@sha256:" + "a" * 64,
    "model": "/models/qwen3-14b-fp8",
    "servedModelName": "qwen3-14b",
    "gpuMemoryUtilization": 0.92,
    "maxModelLen": 16384,
    "maxNumSeqs": 128,
    "quantization": "fp8",
}

WORKING_DAY: Mapping[str, Any] = {
    "name": "working-day",
    "days": ["Mon", "Tue", "Wed", "Thu", "Fri"],
    "start": "08:00",
    "end": "20:00",
    "requestsPerSecond": 18,
}

WORKED_EXAMPLE: Mapping[str, Any] = {
    "engine": ENGINE,
    "workload": {
        "tokens": {"input": {"p50": 600, "p95": 2400}, "output": {"p50": 180, "p95": 600, "p99": 900}},
        "objectives": {
            "ttft": {"p95": "1500ms"},
            "tpot": {"p95": "60ms"},
            "e2el": {"p95": "30s"},
            "goodputShare": 0.99,
        },
    },
    "capacity": {"requestsPerSecond": 5},
    "reserve": {"replicas": 1},
    "schedule": {
        "timeZone": "Europe/Berlin",
        "base": {"requestsPerSecond": 2},
        "windows": [WORKING_DAY],
    },
    "leadTime": {"declared": "10m", "margin": "20%"},
    "scaleDown": {"step": 1, "every": "2m"},
    "bounds": {"minReplicas": 1, "maxReplicas": 8},
}


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


def config_map(name: str, data: Mapping[str, str], namespace: str = "llm") -> dict[str, Any]:
    """A ConfigMap as JSON."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict(data),
    }
