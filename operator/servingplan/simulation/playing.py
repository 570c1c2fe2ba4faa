"""One policy, followed over all slices of some lanes, and everything that it did written down.

In: lanes, a policy, what serves. Out: `Played`, by [slice, setting, lane]. Replicas start, are lost and leave here, by
the rules of `fleet`: what is wanted all through a start is ready, what starts is cancelled first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from servingplan.simulation.fleet import Policy, Seen
from servingplan.simulation.servers import Fluid, Model
from servingplan.simulation.windows import Array, SlidingExtreme
from servingplan.simulation.workload import SLICE_S
from servingplan.simulation.world import Lanes

TOLD_EVERY = 2880
"""Slices after which somebody who waits is told: a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """held: replicas that serve or start. ready: that serve. good: the share of what arrives that is good."""

    held: Array
    ready: Array
    good: Array

    def lane(self, lane: int) -> Played:
        """One lane alone."""
        held, ready, good = (values[:, :, lane : lane + 1].copy() for values in (self.held, self.ready, self.good))
        return Played(held=held, ready=ready, good=good)


def play(
    lanes: Lanes,
    policy: Policy,
    *,
    stabilization_s: float = 0,
    settings: int = 1,
    model: Model = Fluid,
    tell: Callable[[float], None] = lambda _: None,
) -> Played:
    """Follow a policy.

    stabilization_s: what was wanted at most within it is held. tell: gets the share that is done, 0 to 1.
    """
    shape = (settings, len(lanes))
    bounds, servers = lanes.plan.bounds, model(lanes, settings)
    down = SlidingExtreme(np.maximum, max(1, round(stabilization_s / SLICE_S)), shape, 0)
    # What is wanted at first is there: beyond the beginning lies no limit.
    up = SlidingExtreme(np.minimum, round(lanes.rules.start_s / SLICE_S) + 1, shape, np.inf)
    held, queue = np.full(shape, bounds.minimum, np.float32), np.zeros(shape, np.float32)
    busy = queue
    played = Played(**{name: np.zeros((lanes.slices, *shape), np.float32) for name in ("held", "ready", "good")})
    for i in range(lanes.slices):
        wanted = policy(i, Seen(held=held, queue=queue, busy=busy))
        held = np.clip(down.push(wanted), bounds.minimum, bounds.maximum).astype(np.float32)
        ready = up.push(np.maximum(held - lanes.lost[i], 0))
        served = servers.serve(i, ready)
        queue, busy = served.queue, served.busy
        played.held[i], played.ready[i], played.good[i] = held, ready, served.good
        if i % TOLD_EVERY == 0:
            tell(i / lanes.slices)
    return played
