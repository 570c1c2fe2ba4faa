"""From asked-for replicas and feedback to desired replicas: the larger of both, inside every bound.

In: asked (the fold), due (what the schedule needs within one lead), the adjustment, bounds. Out: desired
replicas, and what was limited.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.planning.feedback import Adjustment
from servingplan.planning.plan import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A bound that changed the outcome: `wanted` replicas became `given`."""

    wanted: int
    given: int


def desired_replicas(*, asked: int, due: int, adjustment: Adjustment, bounds: Bounds, ceiling: int | None) -> int:
    """Desired = max(asked, due + extra), bounded. ceiling: an autoscaler's own maximum in floor mode.

    The bounds were already applied to asked and due; they are applied again because asked starts from what the
    cluster holds, which nobody bounds.
    """
    wanted = max(asked, due + adjustment.extra)
    bounded = max(bounds.minimum, min(wanted, bounds.maximum))
    return bounded if ceiling is None else max(1, min(bounded, ceiling))
