"""Feedback: what live observations add to the schedule. It can only raise.

In: an observation's signals, once there are sources for them. Out: `extra` replicas above what is due, never
negative. Without a source the extra is zero, and the trail says that feedback is off.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.planning.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A rise above what the schedule asks for now, with its reason. `extra` >= 0."""

    extra: int
    reason: Reason
    message: str

    def __post_init__(self) -> None:
        """Feedback that lowers does not exist."""
        if self.extra < 0:
            raise ValueError(f"feedback can only raise, not by {self.extra}")


NO_FEEDBACK = Adjustment(extra=0, reason=Reason.FEEDBACK_OFF, message="no live signals: the schedule alone")
