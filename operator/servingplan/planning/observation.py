"""What the cluster shows: the facts that decide, and nothing else of the objects.

In: made by ``controller.observe`` (and by builders in tests, and by the simulation). Out: read by the
decision and by the conditions. Instants are aware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from servingplan.planning.reasons import Reason


class Stage(StrEnum):
    """How far a replica has come, in this order."""

    SCHEDULING = "scheduling"
    PULLING = "pulling"
    ENGINE = "engine"
    READY = "ready"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What keeps a replica from coming up: a reason and the cluster's own words."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One pod of the target. `since`: when it was created. `node`: None while it is not scheduled."""

    name: str
    stage: Stage
    since: datetime
    node: str | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The target now. `current`: its ``spec.replicas`` (floor mode: the minimum); None where it does not exist.

    ready, available: as the target's own status counts them. maximum: an autoscaler's own upper bound in floor
    mode, else None. trouble: what refuses replicas before there is a pod (quota).
    """

    current: int | None
    ready: int = 0
    available: int = 0
    replicas: Sequence[Replica] = ()
    maximum: int | None = None
    trouble: Trouble | None = None

    def in_stage(self, stage: Stage) -> tuple[Replica, ...]:
        """The replicas in that stage, by name."""
        return tuple(sorted((r for r in self.replicas if r.stage is stage), key=lambda replica: replica.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A change of replicas that the operator made."""

    time: datetime
    before: int
    after: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A scheduled rise: `needed` replicas must be ready at `start`; they are asked for from `start_by` on."""

    start: datetime
    needed: int
    start_by: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a decision must remember, all of it kept in the plan's status.

    last_scale: where the fall stands. ramp: the rise that was last started, so that a shorter lead never
    lowers it again.
    """

    last_scale: Scale | None = None
    ramp: Ramp | None = None
