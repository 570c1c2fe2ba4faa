"""Prometheus is gone for an hour, from the beginning of the worst rise on."""

from __future__ import annotations

from dataclasses import replace

from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.scenarios.worst import some, when, worst
from servingplan.simulation.world import World

GONE_MIN = 60


def prometheus_gone(world: World, _: Severity) -> Scene:
    """Whoever asks it gets no answer: autoscalers leave replicas as they are, a cron goes on."""
    first = worst(world).begin
    end = first + some(GONE_MIN)
    silent = world.silent.copy()
    silent[first:end] = True
    return Scene(
        key="prometheus-gone",
        title="no metrics",
        words=f"for {GONE_MIN} minutes from {when(world, first)} on; judged by them",
        world=replace(world, silent=silent),
        first=first,
        end=end,
    )
