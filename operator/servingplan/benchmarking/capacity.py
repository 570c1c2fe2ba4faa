"""The capacity block of a plan, from ramps.

In: ramps that found a capacity. Out: the wire form of `spec.capacity`. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from servingplan.benchmarking.record import Kept
from servingplan.errors import UsageError

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
    rate = Decimal(str(capacity)) / kept.asked.replicas
    step = Decimal(1).scaleb(rate.adjusted() - _DIGITS + 1)
    return float(rate.quantize(step, rounding=ROUND_FLOOR))
