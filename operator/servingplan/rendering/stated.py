"""Conditions as a status states them, read back: for the next decision, and for people.

In: plain JSON of a status. Out: one condition of it; a plan's as values, and whether somebody should look at them.
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


def condition_of(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """A condition of any object's status, as it stands there; empty where it has none."""
    return next((each for each in status.get("conditions", ()) if each.get("type") == type_), {})


def stated_conditions(status: Mapping[str, Any]) -> tuple[StatedCondition, ...]:
    """The conditions of a plan's status, in its order; none before the operator wrote any."""
    return tuple(
        StatedCondition(
            type=wire["type"], status=wire["status"], reason=wire.get("reason", ""), message=wire.get("message", "")
        )
        for wire in status.get("conditions", ())
    )
