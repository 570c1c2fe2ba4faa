"""What the cluster shows: the facts that decide, and nothing else of the objects.

In: made by ``controller.observe`` (and by builders in tests, and by the simulation). Out: read by the
decision and by the conditions. Instants are aware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from servingplan.planning.lead import Rises
from servingplan.planning.learned import Learned, NotLearned
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard


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


LOST = frozenset({Reason.NODE_NOT_READY, Reason.NOT_READY_ANY_MORE})
"""Troubles of a replica that was verified once: whatever it waits for, it is no start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestones:
    """When a replica had a node, when its containers ran, when it was verified; at the latest, None where not yet."""

    scheduled: datetime | None = None
    started: datetime | None = None
    ready: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    """A replica that takes no new requests. `since` when; released: it is idle and marked to be removed first."""

    since: datetime
    released: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One pod of the target. `since`: when it was created. `node`: None while it is not scheduled.

    draining: None where it serves.
    """

    name: str
    stage: Stage
    since: datetime
    node: str | None = None
    trouble: Trouble | None = None
    milestones: Milestones = field(default_factory=Milestones)
    draining: Draining | None = None

    @property
    def progress(self) -> tuple[int, datetime, str]:
        """Sorts replicas by how far they have come, the furthest behind first."""
        return list(Stage).index(self.stage), self.since, self.name

    @property
    def starting(self) -> bool:
        """True from its creation until it is verified."""
        lost = self.trouble is not None and self.trouble.reason in LOST
        return self.stage in (Stage.SCHEDULING, Stage.PULLING, Stage.ENGINE) and not lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The target now. `current`: its ``spec.replicas`` (floor mode: the minimum); None where it does not exist.

    ready, available: as the target's own status counts them. maximum: an autoscaler's own upper bound in floor
    mode, else None. trouble: what refuses replicas before there is a pod (quota). heard: what the engines say; None
    where nobody asked them. learned: what their past taught; not_learned: why there is nothing, or nothing new, of it.
    """

    current: int | None
    ready: int = 0
    available: int = 0
    replicas: Sequence[Replica] = ()
    maximum: int | None = None
    trouble: Trouble | None = None
    heard: Heard | None = None
    learned: Learned | None = None
    not_learned: NotLearned | None = None

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
class Raised:
    """What feedback raised and still holds: `extra` above what was due, `replicas` in total, since when.

    wanted_at: when evidence last asked for it, rounded up, so that it rarely changes; it may lie a little ahead.
    """

    extra: int
    replicas: int
    since: datetime
    wanted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Arrivals above the plan: the most in requests/s, rounded up, since when, and what was planned by which `source`.

    seen_at: when that was last so, rounded up like `Raised.wanted_at`.
    """

    since: datetime
    seen_at: datetime
    rate: Decimal
    planned: Decimal
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a decision must remember, all of it kept in the plan's status.

    last_scale: where the fall stands. ramp: the rise that was last started, so that a shorter lead never
    lowers it again. raised, excess: what feedback raised, and why. rises: how long rises took.
    """

    last_scale: Scale | None = None
    ramp: Ramp | None = None
    raised: Raised | None = None
    excess: Excess | None = None
    rises: Rises = field(default_factory=Rises)
