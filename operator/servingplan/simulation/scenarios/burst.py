"""A burst on top of the worst minute."""

from __future__ import annotations

from dataclasses import replace

from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.scenarios.worst import some, when, worst
from servingplan.simulation.world import World

FACTOR = 2
BURST_MIN = 5
JUDGED_MIN = 30
"""The burst, and what it leaves behind."""


def burst(world: World, _: Severity) -> Scene:
    """Twice the requests for five minutes."""
    first, trace = worst(world).top, world.trace
    requests = trace.requests.copy()
    requests[first : first + some(BURST_MIN)] *= FACTOR
    return Scene(
        key="burst",
        title="burst",
        words=f"{FACTOR} x the requests for {BURST_MIN} minutes from {when(world, first)} on; "
        f"judged by the {JUDGED_MIN} minutes from then on",
        world=replace(world, trace=replace(trace, requests=requests)),
        first=first,
        end=first + some(JUDGED_MIN),
    )
