"""Memory: what a decision, and what was written for it, leave for the next one to know.

In: what was remembered before, the decision, the change of replicas that was made, and the rises. Out: the `History`
of the next decision. Pure: the operator keeps it in the plan's status, the simulation in virtual time.
"""

from __future__ import annotations

from datetime import datetime

from servingplan.planning.decision import Decision
from servingplan.planning.lead import Rises
from servingplan.planning.observation import History, Ramp, Scale

TAKEN_OVER = "taken over"
"""Why replicas are as many as were found."""

AGAIN_ALONE = "nobody else writes replicas any more"
"""Why replicas that others wrote are the plan's again."""


def scaled(*, before: int, write: int | None, because: str, now: datetime) -> Scale | None:
    """The change of replicas that a write makes; None where nothing is written, or what was there already."""
    return None if write is None or write == before else Scale(time=now, before=before, after=write, because=because)


def noted(
    last: Scale | None, made: Scale | None, *, current: int | None, ended: bool = False, now: datetime
) -> Scale | None:
    """What is the last change from now on: the one that was made, else the one known.

    Where none is known, or a contest over replicas has `ended`, it is as if what runs had been set now.
    """
    if made is not None or current is None or (last is not None and not ended):
        return made or last
    return Scale(time=now, before=current, after=current, because=AGAIN_ALONE if ended else TAKEN_OVER)


def missed(begun: Ramp | None, *, was_ready: bool, ready: int, required: int, now: datetime) -> Ramp | None:
    """The ramp that began before all its replicas were ready, while they are not and are still required.

    begun: the ramp that was remembered; was_ready: all its replicas were, by the last look. What was ready for a ramp
    and is lost later is no ramp that was missed.
    """
    if begun is None or begun.start > now or was_ready:
        return None
    return begun if ready < min(begun.needed, required) else None


def remembered(decision: Decision, *, missed: Ramp | None, last_scale: Scale | None, rises: Rises) -> History:
    """What the next decision must know. missed: by the function of that name; rises: by `planning.rises.advance`.

    A plan that is suspended starts no ramp.
    """
    return History(
        last_scale=last_scale,
        ramp=None if decision.suspended else missed or decision.ramp,
        raised=decision.adjustment.raised,
        excess=decision.adjustment.excess,
        rises=rises,
    )
