"""How many replicas three levels need: the busiest ordinary time, a burst on top of it, and a failure within it.

In: a capacity per replica, a workload, a layout on an accelerator. Out: one `Need` a level, and the total that passes
all three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from servingplan.hardware.roofline import Replica, Speed, speed
from servingplan.hardware.traffic import Workload


class Level(StrEnum):
    """What the replicas must carry."""

    BASE = "base"
    BURST = "burst"
    FAILURE = "failure"


class Failure(StrEnum):
    """What may be gone while the base load goes on."""

    REPLICA = "replica"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One level. rate: requests/s over all replicas. replicas: that it needs, what may be gone included.

    lost: replicas that are gone. speed: of one of those that are left when all that were bought run; an estimate.
    because: what the number follows from.
    """

    level: Level
    rate: float
    replicas: int
    lost: int
    speed: Speed
    because: str


def needs(replica: Replica, workload: Workload, capacity: float, failure: Failure) -> tuple[Need, ...]:
    """The three levels, each with what it needs by itself. capacity: requests/s of one replica, more than 0."""
    base = replicas_for(workload.rate, capacity)
    burst, absorbed = _burst(replica, workload, capacity)
    lost = replicas_lost(replica, failure)
    bought = max(base, burst, base + lost)

    def need(level: Level, count: int, gone: int, because: str) -> Need:
        rate = workload.rate * (workload.burst if level is Level.BURST else 1)
        found = speed(replica, workload, rate / (bought - gone))
        return Need(level=level, rate=rate, replicas=count, lost=gone, speed=found, because=because)

    each = f"{capacity:.3g}/s a replica"
    return (
        need(Level.BASE, base, 0, f"{workload.rate:g}/s at {each}"),
        need(Level.BURST, burst, 0, f"{workload.burst:g} x {workload.rate:g}/s at {each}{absorbed}"),
        need(Level.FAILURE, base + lost, lost, f"base, and {_gone(replica, failure, lost)}"),
    )


def replicas_for(rate: float, capacity: float) -> int:
    """The smallest number whose capacity carries the rate, at least one."""
    return max(1, math.ceil(rate / capacity - 1e-9))


def _burst(replica: Replica, workload: Workload, capacity: float) -> tuple[int, str]:
    """Replicas for the burst, and what the queue takes of it.

    What is above n C for the burst's duration D waits (m rate - n C) D / (n C) at its end, which the TTFT limit less
    the unloaded TTFT allows: n C >= m rate D / (D + allowance).
    """
    peak = workload.rate * workload.burst
    allowance = _allowance(replica, workload)
    duration = workload.burst_duration / timedelta(seconds=1)
    needed = peak * duration / (duration + allowance)
    saved = replicas_for(peak, capacity) - replicas_for(needed, capacity)
    words = f", of which {saved} fewer because TTFT lets a burst of {duration:g} s wait {allowance:.2g} s"
    return replicas_for(needed, capacity), words if saved else ""


def _allowance(replica: Replica, workload: Workload) -> float:
    """Seconds that a request may wait before its TTFT objective breaks; 0 without one."""
    objective = workload.objectives.ttft
    if objective is None:
        return 0.0
    return max(0.0, objective.limit / timedelta(seconds=1) - speed(replica, workload, 0).ttft)


def replicas_lost(replica: Replica, failure: Failure) -> int:
    """Replicas that go with one failure: one, or all that a full node holds."""
    if failure is Failure.REPLICA:
        return 1
    return max(1, replica.accelerator.gpus_per_node // replica.layout.gpus)


def _gone(replica: Replica, failure: Failure, lost: int) -> str:
    if failure is Failure.REPLICA:
        return "one replica gone"
    gpus = replica.accelerator.gpus_per_node
    return f"a node of {gpus} GPUs gone with {lost} replica{'' if lost == 1 else 's'}"
