"""A node is lost at the worst minute: its replicas are gone, and others start in their place."""

from __future__ import annotations

from dataclasses import replace

from servingplan.planning.units import format_duration
from servingplan.simulation.pods import EVICTED_AFTER
from servingplan.simulation.scenarios.scene import Scene, Severity
from servingplan.simulation.scenarios.worst import some, when, worst
from servingplan.simulation.trace import SLICE
from servingplan.simulation.world import World

JUDGED_MIN = 60
"""An hour: what is lost has started anew, and what it left behind is served."""


def node_lost(world: World, severity: Severity) -> Scene:
    """As many replicas as one node holds are gone at once, and start anew when Kubernetes has given the node up."""
    at, count = worst(world).top, severity.node_replicas
    lost = world.lost.copy()
    lost[at : at + -(-EVICTED_AFTER // SLICE)] = count
    replicas = "1 replica" if count == 1 else f"{count} replicas"
    return Scene(
        key="node-lost",
        title="node lost",
        words=f"{replicas} gone at {when(world, at)}, replaced {format_duration(EVICTED_AFTER)} later; judged by the "
        "hour after it",
        world=replace(world, lost=lost),
        first=at,
        end=at + some(JUDGED_MIN),
    )
