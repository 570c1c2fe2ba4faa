"""One policy, followed over all slices of some lanes, and everything that it did written down.

In: lanes, a policy's fleet, what serves. Out: `Played`, by [slice, setting, lane]. `Scaled` is the fleet of policies
that want a number of replicas; the operator brings its own (`operating`), in which replicas start and are lost at the
same slices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

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


class Fleet(Protocol):
    """Replicas under a policy, by [setting, lane]."""

    def step(self, i: int, seen: Seen) -> tuple[Array, Array]:
        """Those that are held, and those that serve, in slice `i`. Called once for every slice, in order."""
        ...


class Scaled:
    """As many replicas as a policy wants, by the rules of `fleet`: what is wanted all through a start serves.

    What starts is cancelled first. Lost ones start anew once they are replaced. stabilization_s: what was wanted at
    most within it is held.
    """

    def __init__(self, lanes: Lanes, policy: Policy, *, settings: int = 1, stabilization_s: float = 0) -> None:
        shape = (settings, len(lanes))
        self._lanes, self._policy = lanes, policy
        self._down = SlidingExtreme(np.maximum, max(1, round(stabilization_s / SLICE_S)), shape, 0)
        # What is wanted at first is there: beyond the beginning lies no limit.
        self._up = SlidingExtreme(np.minimum, round(lanes.rules.start_s / SLICE_S) + 1, shape, np.inf)

    def step(self, i: int, seen: Seen) -> tuple[Array, Array]:
        """As `Fleet` says."""
        bounds = self._lanes.plan.bounds
        wanted = self._down.push(self._policy(i, seen))
        held = np.clip(wanted, bounds.minimum, bounds.maximum).astype(np.float32)
        return held, self._up.push(np.maximum(held - self._lanes.lost[i], 0))


def play(
    lanes: Lanes,
    fleet: Fleet,
    *,
    settings: int = 1,
    model: Model = Fluid,
    tell: Callable[[float], None] = lambda _: None,
) -> Played:
    """Follow a policy. tell: gets the share that is done, 0 to 1."""
    shape, servers = (settings, len(lanes)), model(lanes, settings)
    held, queue = np.full(shape, lanes.plan.bounds.minimum, np.float32), np.zeros(shape, np.float32)
    busy = queue
    played = Played(**{name: np.zeros((lanes.slices, *shape), np.float32) for name in ("held", "ready", "good")})
    for i in range(lanes.slices):
        held, ready = fleet.step(i, Seen(held=held, queue=queue, busy=busy))
        served = servers.serve(i, ready)
        queue, busy = served.queue, served.busy
        played.held[i], played.ready[i], played.good[i] = held, ready, served.good
        if i % TOLD_EVERY == 0:
            tell(i / lanes.slices)
    return played
