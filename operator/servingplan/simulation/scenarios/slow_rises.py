"""Replicas take twice as long to start, all the time."""

from __future__ import annotations

from dataclasses import replace

from servingplan.planning.units import format_duration
from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.trace import seconds
from servingplan.simulation.world import World

FACTOR = 2


def slow_rises(world: World, _: Severity) -> Scene:
    """The plan and everybody's settings stay as they are."""
    start_s = FACTOR * world.rules.start_s
    return Scene(
        key="slow-rises",
        title="slow rises",
        words=f"each start takes {format_duration(seconds(start_s))} rather than "
        f"{format_duration(seconds(world.rules.start_s))}",
        world=replace(world, rules=replace(world.rules, start_s=start_s)),
    )
