"""Replicas take twice as long to start, all the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from servingplan.planning.units import format_duration
from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.world import World

FACTOR = 2


def slow_rises(world: World, _: Severity) -> Scene:
    """The plan and everybody's settings stay as they are."""
    before = timedelta(seconds=world.rules.start_s)
    after = FACTOR * before
    return Scene(
        key="slow-rises",
        title="slow rises",
        words=f"each start takes {format_duration(after)} rather than {format_duration(before)}",
        world=replace(world, rules=replace(world.rules, start_s=after.total_seconds())),
    )
