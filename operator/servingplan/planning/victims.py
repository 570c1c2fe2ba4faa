"""Victims: which replicas leave on a fall, and which come back first on a raise.

In: the observation, how many are to stay, and what each replica has in flight. Out: the replicas that leave, in their
order. What Kubernetes removes first whatever one says (a replica that is not ready) leaves first; of those that serve,
the one that drains already, then the least busy one. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from servingplan.planning.observation import Observation, Replica, Stage

REMOVED_FIRST = (Stage.SCHEDULING, Stage.PULLING, Stage.ENGINE, Stage.READY)
"""The order of a ReplicaSet: without a node, pending, not ready, ready. A deletion cost decides only among equals in
this, so no choice of ours can spare a replica of an earlier stage for one of a later."""


def leaving(observation: Observation, stay: int, in_flight: Mapping[str, float]) -> tuple[Replica, ...]:
    """The replicas that leave where `stay` of those that run now are to remain, in the order in which they leave.

    in_flight: requests running and waiting by replica; one that is not in it counts as the busiest. Replicas that are
    terminating have left already. Never more than the fall itself, while a rolling update has some to spare.
    """
    active = [each for each in observation.replicas if each.stage is not Stage.TERMINATING]
    present = len(active) if observation.current is None else min(observation.current, len(active))
    on_node = Counter(each.node for each in active)

    def order(replica: Replica) -> tuple[int, bool, float, float, int, float, str]:
        draining, ready = replica.draining, replica.milestones.ready
        return (
            REMOVED_FIRST.index(replica.stage),
            draining is None,
            0.0 if draining is None else draining.since.timestamp(),
            in_flight.get(replica.name, math.inf),
            -on_node[replica.node],
            -(ready or replica.since).timestamp(),
            replica.name,
        )

    return tuple(sorted(active, key=order)[: max(0, present - max(stay, 0))])


def returning(observation: Observation, leaving: tuple[Replica, ...] = ()) -> tuple[Replica, ...]:
    """The replicas that drain and are not to leave: they serve again before any new one could. By name."""
    names = {each.name for each in leaving}
    back = [each for each in observation.replicas if each.draining is not None and each.name not in names]
    return tuple(sorted((each for each in back if each.stage is not Stage.TERMINATING), key=lambda each: each.name))
