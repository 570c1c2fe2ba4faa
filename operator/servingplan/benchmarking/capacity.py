"""What ramps found, as a plan takes it.

In: ramps that found a capacity. Out: the wire form of `spec.capacity`, or a CapacityBenchmark that it refers to. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from servingplan.api.kinds import API_VERSION, CAPACITY_BENCHMARK
from servingplan.benchmarking.record import Kept, at_capacity
from servingplan.errors import UsageError
from servingplan.planning.units import format_duration

_DIGITS = 3
"""Significant digits: beyond, a ramp knows nothing."""


def capacity_block(ramps: Sequence[Kept]) -> dict[str, Any]:
    """One ramp: `requestsPerSecond`. Several: `perPoolSize`, one point a ramp. Rounded down, never up.

    Raises UsageError for ramps of different models or objectives, or two of the same pool size.
    """
    points = sorted((kept.asked.replicas, _a_replica(kept)) for kept in ramps)
    if len(points) == 1:
        return {"requestsPerSecond": points[0][1]}
    _comparable(ramps)
    return {"perPoolSize": [{"replicas": size, "requestsPerSecond": rate} for size, rate in points]}


def _comparable(ramps: Sequence[Kept]) -> None:
    if len({kept.asked.replicas for kept in ramps}) < len(ramps):
        raise UsageError("two files measured a pool of the same size: name one a size")
    for what, values in (
        ("models", {kept.fingerprint.model for kept in ramps}),
        ("prompts", {kept.fingerprint.dataset for kept in ramps}),
        ("objectives", {kept.asked.objectives for kept in ramps}),
    ):
        if len(values) > 1:
            raise UsageError(f"the files are of different {what}: their capacities do not belong together")


def _a_replica(kept: Kept) -> float:
    capacity = kept.finding.capacity
    if capacity is None:
        raise UsageError("a ramp that found no capacity has none to state")
    return _rounded(kept, capacity)


def _rounded(kept: Kept, of_pool: float) -> float:
    rate = Decimal(str(of_pool)) / kept.asked.replicas
    step = Decimal(1).scaleb(rate.adjusted() - _DIGITS + 1)
    return float(rate.quantize(step, rounding=ROUND_FLOOR))


def benchmark_document(ramps: Sequence[Kept], name: str) -> dict[str, Any]:
    """The ramps as a CapacityBenchmark that found them: for files beside a plan, and for GitOps of evidence.

    Raises UsageError as `capacity_block` does. What engine it was, a ramp does not know: the plan says Unknown of that.
    """
    ordered = sorted(ramps, key=lambda kept: kept.asked.replicas)
    if len(ordered) > 1:
        _comparable(ordered)
    sizes = [_pool_size(kept) for kept in ordered]
    smallest = ordered[0]
    figures = at_capacity(smallest) or {}
    return {
        "apiVersion": API_VERSION,
        "kind": CAPACITY_BENCHMARK.name,
        "metadata": {"name": name},
        "status": {
            "capacity": {**{key: value for key, value in sizes[0].items() if key != "replicas"}, "perPoolSize": sizes},
            "atCapacity": {
                **{key: value for key, value in figures.items() if value is not None},
                "prefixHitShare": smallest.asked.prefix_hit_share,
            },
            "fingerprint": _fingerprint(smallest),
            "startedAt": smallest.started,
            "conditions": [
                {
                    "type": "Complete",
                    "status": "True",
                    "reason": smallest.finding.outcome.value,
                    "message": "measured with servingplan bench run",
                    "lastTransitionTime": smallest.started,
                }
            ],
        },
    }


def _pool_size(kept: Kept) -> dict[str, Any]:
    failing = kept.finding.failing
    size: dict[str, Any] = {"replicas": kept.asked.replicas, "requestsPerSecond": _a_replica(kept)}
    return size if failing is None else {**size, "failingRequestsPerSecond": _rounded(kept, failing)}


def _fingerprint(kept: Kept) -> dict[str, Any]:
    known, objectives = kept.fingerprint, kept.asked.objectives
    stated: dict[str, Any] = {name: {one.percentile: format_duration(one.limit)} for name, one in objectives.stated}
    if objectives.goodput_share is not None:
        stated["goodputShare"] = float(objectives.goodput_share)
    found = {"model": known.model, "vllm": known.vllm, "dataset": known.dataset, "objectives": stated}
    return {key: value for key, value in found.items() if value}
