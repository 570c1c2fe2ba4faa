"""The capacity that counts, in status: what the next decision must remember of it, and the condition about it.

In: a plan, whose capacity is the one in use. Out: ``status.capacity``, and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from servingplan.planning.plan import Capacity, Plan, PoolCapacity
from servingplan.planning.sizing import in_use
from servingplan.planning.units import exact
from servingplan.rendering.currency import TYPE
from servingplan.rendering.situation import Condition, Situation
from servingplan.rendering.stated import condition_of

Json = dict[str, Any]


def capacity_current(s: Situation) -> Condition | None:
    """Whether the capacity is that of what runs; it was found before anything was decided with it."""
    return s.currency


def as_in_use(plan: Plan, status: Mapping[str, Any]) -> Plan:
    """The plan with the capacity that the operator acts with: no more than the last one while that is not current."""
    if plan.measured is None or condition_of(status, TYPE).get("status") != "False":
        return plan
    return replace(plan, capacity=in_use(plan.capacity, capacity_from_wire(status), current=False))


def capacity_to_wire(capacity: Capacity) -> Json:
    """``status.capacity``; sizes only where they matter."""
    points = [
        {"replicas": point.replicas, "requestsPerSecond": float(point.requests_per_second)} for point in capacity.points
    ]
    wire: Json = {"requestsPerSecond": points[0]["requestsPerSecond"], "source": capacity.source}
    if capacity.points[-1].replicas > 1:
        wire["perPoolSize"] = points
    if capacity.fingerprint:
        wire["fingerprint"] = capacity.fingerprint
    return wire


def capacity_from_wire(status: Mapping[str, Any]) -> Capacity | None:
    """The capacity that was used last; None where none was, or none that serves anything."""
    wire = status.get("capacity")
    if wire is None:
        return None
    sizes = wire.get("perPoolSize") or [{"replicas": 1, "requestsPerSecond": wire["requestsPerSecond"]}]
    points = tuple(
        PoolCapacity(replicas=size["replicas"], requests_per_second=exact(size["requestsPerSecond"])) for size in sizes
    )
    if any(point.requests_per_second <= 0 for point in points):
        return None
    return Capacity(points=points, source=wire["source"], fingerprint=wire.get("fingerprint", ""))
