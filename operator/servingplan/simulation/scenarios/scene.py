"""A scene: a world in which something goes wrong, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Severity:
    """How bad it gets. node_replicas: replicas of the plan on the node that is lost."""

    node_replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What happens.

    key: for programs. words: what, and when. first, end: the slices by which it is judged, half-open; all of them where
    they are not said.
    """

    key: str
    title: str
    words: str
    world: World
    first: int = 0
    end: int | None = None

    @property
    def judged(self) -> NDArray[np.bool_]:
        """The slices that count: of the world, those of its own time."""
        own = np.zeros_like(self.world.judged)
        own[self.first : self.end] = True
        return self.world.judged & own


Scenario: TypeAlias = Callable[[World, Severity], Scene]
"""Makes a scene of an ordinary world."""
