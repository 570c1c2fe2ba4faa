"""What serves the requests of a simulated fleet. The fluid model lives here; others take its place behind `Servers`.

In: how many replicas are ready in a slice. Out: what became of the requests that came in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from servingplan.simulation.fleet import Served, serve
from servingplan.simulation.windows import Array
from servingplan.simulation.world import Lanes


class Servers(Protocol):
    """The engines of all settings and lanes, with what waits in front of them."""

    def serve(self, i: int, ready: Array) -> Served:
        """Serve slice `i` with so many replicas, by [setting, lane]. Called once for every slice, in order."""
        ...


Model: TypeAlias = Callable[[Lanes, int], Servers]
"""Makes the servers of some lanes, for so many settings."""


class Fluid:
    """Requests flow like water, first come first served; a pool of replicas serves what its size is worth."""

    def __init__(self, lanes: Lanes, settings: int) -> None:
        self._lanes = lanes
        self._queue: Array = np.zeros((settings, len(lanes)), np.float32)
        self._even = bool((lanes.worth == np.arange(len(lanes.worth))).all())

    def serve(self, i: int, ready: Array) -> Served:
        """As `Servers` says."""
        worth = ready if self._even else self._lanes.worth[ready.astype(np.int64)]
        served = serve(self._queue, self._lanes.demand[i], worth, self._lanes.rules)
        self._queue = served.queue
        return served
