"""Feedback can only raise, and every bound holds, whatever is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning.feedback import NO_FEEDBACK, Adjustment
from servingplan.planning.plan import Bounds
from servingplan.planning.reasons import Reason
from servingplan.planning.stabilize import desired_replicas


def extra(n: int) -> Adjustment:
    return Adjustment(extra=n, reason=Reason.FEEDBACK_RAISES, message="arrivals above plan")


def test_feedback_that_lowers_does_not_exist() -> None:
    with pytest.raises(ValueError, match="only raise"):
        extra(-1)


def test_without_a_source_feedback_adds_nothing() -> None:
    assert (NO_FEEDBACK.extra, NO_FEEDBACK.reason) == (0, Reason.FEEDBACK_OFF)


DESIRED = {
    # asked, due, extra, minimum, maximum, ceiling
    "as asked": (5, 5, 0, 1, 8, None, 5),
    "extra goes on what is due": (2, 2, 3, 1, 8, None, 5),
    "extra is lost in a fall that is still higher": (5, 2, 2, 1, 8, None, 5),
    "extra above a fall": (5, 4, 3, 1, 8, None, 7),
    "never above the maximum": (7, 7, 3, 1, 8, None, 8),
    "what the cluster holds is bounded": (20, 2, 0, 1, 8, None, 8),
    "never below the minimum": (0, 0, 0, 2, 8, None, 2),
    "nothing may mean nothing": (0, 0, 0, 0, 8, None, 0),
    "never above an autoscaler's maximum": (5, 5, 0, 1, 8, 3, 3),
    "an autoscaler's maximum below our minimum": (5, 5, 0, 4, 8, 2, 2),
    "an autoscaler's minimum is at least one": (0, 0, 0, 0, 8, 3, 1),
}


@pytest.mark.parametrize("row", DESIRED.values(), ids=DESIRED)
def test_desired_is_the_larger_of_asked_and_due_with_extra_inside_every_bound(
    row: tuple[int, int, int, int, int, int | None, int],
) -> None:
    asked, due, more, minimum, maximum, ceiling, desired = row
    bounds = Bounds(minimum=minimum, maximum=maximum)
    assert desired_replicas(asked=asked, due=due, adjustment=extra(more), bounds=bounds, ceiling=ceiling) == desired


COUNT = st.integers(0, 50)


CEILING = st.none() | st.integers(1, 50)


@given(st.tuples(COUNT, COUNT), COUNT, st.tuples(COUNT, COUNT).filter(any), CEILING)
def test_feedback_never_lowers(
    schedule: tuple[int, int], more: int, limits: tuple[int, int], ceiling: int | None
) -> None:
    (asked, due), (low, span) = schedule, limits
    bounds = Bounds(minimum=low, maximum=low + span)
    without = desired_replicas(asked=asked, due=due, adjustment=NO_FEEDBACK, bounds=bounds, ceiling=ceiling)
    raised = desired_replicas(asked=asked, due=due, adjustment=extra(more), bounds=bounds, ceiling=ceiling)
    assert without <= raised <= bounds.maximum
