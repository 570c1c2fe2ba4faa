"""Conditions as a plan's status states them, read back for people: the command line and the demo show the same.

In: plain JSON of a status. Out: values, and whether somebody should look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GOOD_WHEN_FALSE = frozenset({"ScalingLimited", "Reconciling", "Stalled"})
"""Conditions that are good when False, as Kubernetes has them; all others are good when True."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedCondition:
    """One condition of a status. status: ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def good(self) -> bool:
        """Whether nobody needs to look at it."""
        return self.status == ("False" if self.type in GOOD_WHEN_FALSE else "True")


def stated_conditions(status: Mapping[str, Any]) -> tuple[StatedCondition, ...]:
    """The conditions of a plan's status, in its order; none before the operator wrote any."""
    return tuple(
        StatedCondition(
            type=wire["type"], status=wire["status"], reason=wire.get("reason", ""), message=wire.get("message", "")
        )
        for wire in status.get("conditions", ())
    )
