"""More comes than ever before, all the time."""

from __future__ import annotations

from dataclasses import replace

from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.world import World

FACTOR = 1.3


def demand_up(world: World, _: Severity) -> Scene:
    """Every slice has 30 % more requests; the plan stays as it is."""
    trace = world.trace
    return Scene(
        key="demand-up",
        title="demand up",
        words=f"{100 * (FACTOR - 1):.0f} % more requests, all the time",
        world=replace(world, trace=replace(trace, requests=FACTOR * trace.requests)),
    )
