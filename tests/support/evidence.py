"""Wire documents of evidence kinds for tests, and one that breaks each of their rules."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from servingplan.api import evidence_rules as rules
from servingplan.api.referenced import RunnerDefaults
from servingplan.api.resolve_benchmark import resolve_benchmark
from servingplan.planning.benchmark import Benchmark
from support.specs import document
from support.violations import Violation

RUNNER = "registry.local/servingplan-runner:0.1.0"

_BENCHMARK = {
    "planRef": {"name": "support-chat"},
    "prompts": {"configMap": {"name": "prompts", "key": "prompts.jsonl"}},
}
_OF_A_SERVICE = {"planRef": None, "service": {"name": "vllm"}, "quietHoursOf": {"name": "support-chat"}}


def benchmark_document(name: str = "qwen3-l40s", namespace: str = "llm", **spec: Any) -> dict[str, Any]:
    """A CapacityBenchmark of the worked example's engine, with fields of the spec replaced; None removes one."""
    fields = {**deepcopy(_BENCHMARK), **deepcopy(spec)}
    return {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "CapacityBenchmark",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def service_benchmark(name: str = "qwen3-l40s", **spec: Any) -> dict[str, Any]:
    """One of what serves already."""
    return benchmark_document(name, **(_OF_A_SERVICE | spec))


def a_benchmark(*, plan: dict[str, Any] | None = None, **spec: Any) -> Benchmark:
    """A benchmark, resolved beside the worked example or another plan."""
    plans = {"support-chat": plan or document()}
    return resolve_benchmark(benchmark_document(**spec), plans, RunnerDefaults(image=RUNNER))


_CASES = (
    (
        "one-measured",
        benchmark_document(service={"name": "vllm"}, quietHoursOf={"name": "p"}),
        rules.ONE_MEASURED,
        "spec",
    ),
    ("nothing-measured", benchmark_document(planRef=None), rules.ONE_MEASURED, "spec"),
    ("service-when-quiet", service_benchmark(quietHoursOf=None), rules.SERVICE_WHEN_QUIET, "spec"),
    ("service-size", service_benchmark(poolSizes=[1, 8]), rules.SERVICE_SIZE, "spec.poolSizes"),
    ("one-file", benchmark_document(prompts={}), rules.ONE_FILE, "spec.prompts"),
    ("longest", benchmark_document(longest="25h"), rules.LONGEST_LIMIT, "spec.longest"),
    ("name", benchmark_document(name="a" * 41), rules.EVIDENCE_NAME, "metadata.name"),
)

VIOLATIONS = tuple(Violation(id=name, plan=plan, rule=rule, path=path) for name, plan, rule, path in _CASES)

# ---- evaluations ------------------------------------------------------------------------------------------

_EVALUATION = {
    "planRef": {"name": "support-chat"},
    "set": {"configMap": {"name": "questions", "key": "set.jsonl"}},
}


def evaluation_document(name: str = "fp8", namespace: str | None = "llm", **spec: Any) -> dict[str, Any]:
    """A ModelEvaluation of the worked example's plan, with fields of the spec replaced; None removes one."""
    fields = {**deepcopy(_EVALUATION), **deepcopy(spec)}
    return {
        "apiVersion": "servingplan.dev/v1alpha1",
        "kind": "ModelEvaluation",
        "metadata": {"name": name} | ({} if namespace is None else {"namespace": namespace}),
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def an_evaluation_report(verdict: str = "Passed", reason: str = "NotWorse", **changes: Any) -> str:
    """What the runner of a ModelEvaluation hands back, as ``servingplan evaluate --report`` writes it."""
    return json.dumps({
        "format": "servingplan.dev/evaluation-report/v1",
        "verdict": verdict,
        "reason": reason,
        "message": "the variant is not worse by more than the margin",
        "rule": {"minimumScore": 0.8, "margin": 0.02},
        "score": {"baseline": 0.91, "variant": 0.9, "variantUpperBound": 0.92},
        "difference": {"mean": -0.01, "lowerBound": -0.018, "discordant": 0.03, "items": 500, "needed": 470},
        "failures": {"baseline": 0, "variant": 2},
        "set": {"digest": "sha256:set", "items": 500},
        "baseline": {"url": "http://support-chat:8000", "model": "qwen3-14b", "vllm": "0.32.0"},
        "variant": {"url": "http://fp8-trial:8000", "model": "qwen3-14b", "vllm": "0.32.0"},
        "startedAt": "2026-12-01T07:00:00Z",
        "finishedAt": "2026-12-01T07:20:00Z",
        **changes,
    })  # fmt: skip


_SERVED = {"service": {"name": "vllm"}}
_EVALUATION_CASES = (
    ("plan-and-services", evaluation_document(baseline=_SERVED, variant=_SERVED), rules.ONE_COMPARISON, "spec"),
    ("nothing-compared", evaluation_document(planRef=None), rules.ONE_COMPARISON, "spec"),
    ("one-side", evaluation_document(planRef=None, variant=_SERVED), rules.BOTH_SIDES, "spec"),
    ("set-and-container", evaluation_document(container={"image": "asks:1"}), rules.ONE_QUESTIONER, "spec"),
    ("nobody-asks", evaluation_document(set=None), rules.ONE_QUESTIONER, "spec"),
)
EVALUATION_VIOLATIONS = tuple(
    Violation(id=name, plan=plan, rule=rule, path=path) for name, plan, rule, path in _EVALUATION_CASES
)
