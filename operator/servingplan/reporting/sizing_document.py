"""A sizing as JSON: the contract of ``size -o json``, which docs/reference/size-json.md describes field by field.

In: a `Study`. Out: plain JSON. The figures are those of every other form; GiB to a hundredth, rates to three digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from servingplan.hardware.accelerator import GIB, Accelerator
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.memory import Memory
from servingplan.hardware.model import Model
from servingplan.hardware.pages import cache_bytes
from servingplan.hardware.replicas import Need
from servingplan.hardware.roofline import ERROR_FACTOR, Estimate, Replica, Speed
from servingplan.hardware.study import MONTH_HOURS, Choice, Option, Study
from servingplan.hardware.traffic import Workload
from servingplan.hardware.weights import lower_bound, total_bytes
from servingplan.planning.plan import Objective
from servingplan.planning.units import format_duration

Document = dict[str, Any]


def study_document(found: Study) -> Document:
    """The whole study."""
    workload, best = found.asked.workload, found.best
    return {
        "workload": None if workload is None else _workload(workload),
        "failure": found.asked.failure.value,
        "options": [_option(option) for option in found.options],
        "best": None if best is None else {"model": best.model.name, "accelerator": best.accelerator.name},
        "because": found.because,
    }


def _workload(workload: Workload) -> Document:
    return {
        "requestsPerSecond": workload.rate,
        "input": _lengths(workload.input),
        "output": _lengths(workload.output),
        "objectives": {
            name: {"percentile": objective.percentile, "limitMs": _ms(objective)}
            for name, objective in workload.objectives.stated
        },
        "burst": {"multiple": workload.burst, "duration": format_duration(workload.burst_duration)},
    }


def _lengths(lengths: Lengths) -> Document:
    return {"p50": round(lengths.quantile(0.5)), "mean": round(lengths.mean), "p95": round(lengths.quantile(0.95))}


def _ms(objective: Objective) -> float:
    return objective.limit / timedelta(milliseconds=1)


def _option(option: Option) -> Document:
    return {
        "model": _model(option.model),
        "accelerator": _accelerator(option.accelerator),
        "passes": option.choice is not None,
        "whyNot": option.why_not,
        **({} if option.choice is None else _choice(option.choice)),
    }


def _model(model: Model) -> Document:
    return {
        "name": model.name,
        "architecture": model.architecture,
        "parametersBillion": round(model.parameters / 1e9, 3),
        "activeParametersBillion": round(model.active_parameters / 1e9, 3),
        "quantization": model.quantization,
        "weightsGiB": gib(total_bytes(model)),
        "weightsLowerBoundGiB": gib(lower_bound(model)),
        "weightsFrom": model.weight_source.value,
        "contextTokens": model.max_len,
    }


def _accelerator(accelerator: Accelerator) -> Document:
    return {
        "name": accelerator.name,
        "memoryGiB": round(accelerator.memory_gib, 2),
        "gpusPerNode": accelerator.gpus_per_node,
        "pricePerGpuHour": accelerator.price,
    }


def _choice(choice: Choice) -> Document:
    replica = choice.replica
    return {
        "layout": {
            "tensor": replica.layout.tensor,
            "pipeline": replica.layout.pipeline,
            "gpusPerReplica": replica.layout.gpus,
        },
        "engine": {
            "vllm": str(replica.engine.version),
            "maxModelLen": replica.engine.max_model_len,
            "maxNumSeqs": replica.engine.max_num_seqs,
            "maxNumBatchedTokens": replica.engine.max_num_batched_tokens,
            "gpuMemoryUtilization": replica.engine.utilization,
            "kvCacheDtype": replica.engine.cache_dtype,
        },
        "memory": _memory(replica.memory),
        "cache": _cache(replica),
        "advice": list(choice.advice),
        "estimate": None if choice.estimate is None else _estimate(choice.estimate),
        "capacity": None
        if choice.capacity is None
        else {
            "requestsPerSecond": figures(choice.capacity),
            "source": "measured" if choice.measured else "estimate",
        },
        "levels": [_need(need) for need in choice.needs],
        "replicas": {"required": choice.required, "spare": choice.spare, "total": choice.replicas},
        "gpus": choice.gpus,
        "monthlyCost": None if choice.monthly_cost is None else round(choice.monthly_cost, 2),
        "monthHours": MONTH_HOURS,
        "storage": {
            "modelGiB": gib(choice.storage.model),
            "modelsGiB": gib(choice.storage.models),
            "metricsGiB": gib(choice.storage.metrics),
        },
    }


def _memory(found: Memory) -> Document:
    return {
        "from": "log" if found.logged else "estimate",
        "allowedGiB": gib(found.allowed),
        "weightsGiB": gib(found.weights),
        "activationGiB": gib(found.margins.activation),
        "outsideTorchGiB": gib(found.margins.outside_torch),
        "graphsGiB": gib(found.margins.graphs),
        "cacheGiB": gib(found.cache),
        "errorGiB": gib(found.error),
        "logDisagreesPercent": None if found.disagreement is None else round(100 * found.disagreement, 3),
    }


def _cache(replica: Replica) -> Mapping[str, Any] | None:
    pool = replica.memory.pool
    if pool is None:
        return None
    return {
        "bytesPerTokenAndGpu": cache_bytes(replica.model, replica.layout, replica.engine),
        "tokens": pool.tokens,
        "concurrency": round(pool.concurrency, 2),
        "blocks": pool.blocks,
        "groups": len(pool.groups),
        "paddingPercent": round(100 * pool.wasted, 1),
    }


def _estimate(found: Estimate) -> Document:
    return {
        "requestsPerSecond": figures(found.capacity),
        "bound": found.bound.value,
        "errorFactor": ERROR_FACTOR,
        **_speed(found.at_capacity),
    }


def _speed(found: Speed) -> Document:
    return {
        "ttftP95Ms": finite(1000 * found.ttft),
        "tpotMs": finite(1000 * found.tpot),
        "inFlight": finite(found.held.in_flight),
        "tokens": {
            "mean": finite(found.held.tokens, 0),
            "deviation": finite(found.held.deviation, 0),
            "p99": finite(found.held.p99, 0),
        },
    }


def _need(need: Need) -> Document:
    return {
        "level": need.level.value,
        "requestsPerSecond": figures(need.rate),
        "replicas": need.replicas,
        "lost": need.lost,
        "perReplica": _speed(need.speed),
        "because": need.because,
    }


def gib(size: float) -> float:
    """GiB to a hundredth."""
    return round(size / GIB, 2)


def figures(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


def finite(value: float, digits: int = 1) -> float | None:
    """Rounded, or None where it is infinite: the replicas do not keep up."""
    if not math.isfinite(value):
        return None
    return round(value, digits) if digits else round(value)
