"""All scenarios, by the names of the command line, and the world as it was recorded."""

from __future__ import annotations

from collections.abc import Mapping

from servingplan.simulation.scenarios.burst import burst
from servingplan.simulation.scenarios.demand_up import demand_up
from servingplan.simulation.scenarios.node_lost import node_lost
from servingplan.simulation.scenarios.prometheus_gone import prometheus_gone
from servingplan.simulation.scenarios.scene import Scenario, Scene
from servingplan.simulation.scenarios.slow_rises import slow_rises
from servingplan.simulation.world import World

RECORDED = "recorded"

SCENARIOS: Mapping[str, Scenario] = {
    "node-lost": node_lost,
    "prometheus-gone": prometheus_gone,
    "slow-rises": slow_rises,
    "demand-up": demand_up,
    "burst": burst,
}


def as_recorded(world: World) -> Scene:
    """Nothing goes wrong beyond what the trace holds."""
    return Scene(key=RECORDED, title="as recorded", words="the trace alone", world=world)
