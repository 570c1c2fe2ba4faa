"""Polling: as often as the plans' clock says, but never faster than servers answer."""

from __future__ import annotations

from fractions import Fraction

import pytest

from servingplan.controller.clock import AcceleratedClock, system_now
from servingplan.controller.polling import POLL_EVERY, SHORTEST_POLL_S, interval_s


@pytest.mark.parametrize(
    ("factor", "expected_s"),
    [
        pytest.param(1, POLL_EVERY.total_seconds(), id="real time"),
        pytest.param(10, 1.5, id="ten times as fast"),
        pytest.param(120, SHORTEST_POLL_S, id="faster than servers answer"),
    ],
)
def test_polls_follow_the_plans_clock(factor: int, expected_s: float) -> None:
    clock = AcceleratedClock(start=system_now(), since=system_now(), factor=Fraction(factor))
    assert interval_s(clock) == pytest.approx(expected_s, abs=0.05)
