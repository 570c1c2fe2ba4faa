"""The situation: everything that one reconcile found out, as the conditions read it.

In: made by ``controller.reconcile`` (and by builders in tests). Out: read by ``conditions`` and ``status``. Values
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from servingplan.errors import Problem
from servingplan.planning.decision import Decision
from servingplan.planning.excess import Change
from servingplan.planning.lead import Rises
from servingplan.planning.memory import missed
from servingplan.planning.observation import Observation, Ramp, Trouble
from servingplan.planning.ownership import Contest
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.rendering.variant import Variant


class Status(StrEnum):
    """A condition's status, as Kubernetes spells it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition, before it gets its transition time."""

    type: str
    status: Status
    reason: Reason
    message: str

    @property
    def said(self) -> Mapping[str, str]:
        """As the next look finds it in status."""
        return {"status": self.status.value, "reason": self.reason.value, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """GPUs of the plan's kind on nodes that are ready and schedulable. elastic: an autoscaler adds nodes."""

    allocatable: int
    elastic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Where the target's template stands. rolling: pods of an older template are still there.

    held: the running template is kept although this version of the operator renders another one.
    stalled: the words of the Deployment's own condition where it makes no progress, else None.
    """

    rolling: bool = False
    held: bool = False
    stalled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What one reconcile found out. `plan`, `decision` and `observation` are None as far as it did not come.

    observation: the target after this reconcile's writes; found: the replicas that it was set to before them.
    target_trouble: why the target is not ours to scale. apply_trouble: what the API server refused.
    autoscaler: the HPA or ScaledObject that scales the target already. peak: the most that is required in the
    coming week. rises: how long rises took. undrained: why a named target's replicas are removed without a drain.
    change: what would hold against the excess of arrivals. variant: the stated engine beside the one that runs, where
    it must be accepted; the plan is then the one that is acted on. currency: whether the capacity is that of what runs.
    begun: the ramp of the last status. previous: the conditions of the last status, by type.
    """

    generation: int
    now: datetime
    plan: Plan | None
    problems: Sequence[Problem] = ()
    decision: Decision | None = None
    observation: Observation | None = None
    found: int | None = None
    target_name: str = ""
    target_trouble: Trouble | None = None
    apply_trouble: Trouble | None = None
    autoscaler: str | None = None
    contest: Contest | None = None
    rises: Rises = field(default_factory=Rises)
    undrained: str | None = None
    change: Change | None = None
    variant: Variant | None = None
    currency: Condition | None = None
    rollout: Rollout = field(default_factory=Rollout)
    accelerators: Accelerators | None = None
    peak: int | None = None
    begun: Ramp | None = None
    previous: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def missed(self) -> Ramp | None:
        """The ramp that was missed, as `planning.memory.missed` tells."""
        if self.decision is None or self.observation is None:
            return None
        return missed(
            self.begun,
            was_ready=self.was("ReadyByNextRamp", Reason.RAMP_READY),
            ready=self.observation.ready,
            required=self.decision.required.replicas,
            now=self.now,
        )

    def was(self, condition: str, *reasons: Reason) -> bool:
        """True where the last status gave one of these reasons for a condition."""
        return self.previous.get(condition, {}).get("reason") in reasons
