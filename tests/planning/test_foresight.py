"""Foresight: one code for single numbers and for arrays, and never less where more arrives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.planning import foresight
from servingplan.planning.foresight import FLOATS, Profile, Rates

CASES = 10_000

rates = st.floats(min_value=0, max_value=200, allow_nan=False, allow_infinity=False)
"""In replicas."""


def sized(numbers, *, observed, expected, usual, rate, planned, ahead, room, most, held, queue):
    """Replicas from the rates of a moment: every function of the module, in the order a policy calls them."""
    level = foresight.level(numbers, observed=observed, expected=expected, usual=usual)
    forecast = foresight.foreseen(numbers, Rates(now=rate, level=level), Profile(now=planned, ahead=ahead))
    size = foresight.with_head_room(
        numbers, forecast, head_room=room, spread=forecast**foresight.SPREAD_POWER, most=most, now=rate
    )
    return foresight.replicas(numbers, raise_to=size, keep_to=size, held=held, backlog_s=queue)


def test_ten_thousand_random_cases_are_the_same_one_by_one_and_as_arrays():
    draw = np.random.default_rng(20260101)
    names = ("observed", "expected", "usual", "rate", "planned", "ahead", "most", "held")
    cases = {name: np.round(draw.gamma(0.7, 10, CASES), 3) for name in names}
    cases |= {"room": draw.normal(0.5, 1, CASES), "queue": draw.gamma(0.2, 300, CASES)}
    cases["held"] = np.ceil(cases["held"])

    together = sized(np, **cases)

    alone = [sized(FLOATS, **{name: float(values[i]) for name, values in cases.items()}) for i in range(CASES)]
    assert together.tolist() == alone


@given(observed=rates, rate=rates, more=rates, expected=rates, planned=rates, ahead=rates, most=rates, queue=rates)
def test_more_arrivals_never_give_fewer_replicas(observed, rate, more, expected, planned, ahead, most, queue):
    def at(observed: float, rate: float, queue: float, most: float) -> float:
        return sized(
            FLOATS, observed=observed, expected=expected, usual=1.0, rate=rate, planned=planned, ahead=ahead, room=0.7,
            most=most, held=3.0, queue=queue,
        )  # fmt: skip

    least = at(observed, rate, queue, most)

    assert at(observed + more, rate, queue, most) >= least
    assert at(observed, rate + more, queue, most) >= least
    assert at(observed, rate, queue + more, most) >= least
    assert at(observed, rate, queue, most + more) >= least


@pytest.mark.parametrize(
    ("raise_to", "keep_to", "held", "replicas"),
    [
        pytest.param(2.2, 5.0, 4.0, 4.0, id="what is held stays while it may be needed"),
        pytest.param(2.2, 5.0, 9.0, 5.0, id="and goes as far as it may not"),
        pytest.param(6.1, 5.0, 4.0, 7.0, id="what is needed after a start is asked for now"),
        pytest.param(2.2, 5.0, 1.0, 3.0, id="what would come too late is not asked for"),
    ],
)
def test_raising_and_keeping_look_at_their_own_horizon(raise_to, keep_to, held, replicas):
    found = foresight.replicas(FLOATS, raise_to=raise_to, keep_to=keep_to, held=held, backlog_s=0.0)

    assert found == replicas


def test_waiting_work_is_to_be_served_within_half_a_minute():
    assert foresight.replicas(FLOATS, raise_to=2.0, keep_to=2.0, held=2.0, backlog_s=45.0) == 4.0


@pytest.mark.parametrize(
    ("forecast", "room", "size"),
    [
        pytest.param(3.0, 2.0, 5.0, id="so many spreads"),
        pytest.param(3.0, 100.0, 14.0, id="up to a bit above the most that was ever needed"),
        pytest.param(20.0, 100.0, 50.0, id="or to a multiple of the forecast, where that is more"),
        pytest.param(3.0, -2.0, 2.5, id="never below what arrives now"),
    ],
)
def test_head_room_has_its_bounds(forecast, room, size):
    found = foresight.with_head_room(FLOATS, forecast, head_room=room, spread=1.0, most=10.0, now=2.5)

    assert found == pytest.approx(size)


def test_beyond_the_edge_as_much_head_room_halves_what_is_left_again_and_again():
    rooms = [2.0 + 0.5 * np.log(2) * k for k in range(4)]
    left = [foresight.tail(FLOATS, room=room, edge=2.0, excess=0.5) for room in rooms]

    assert left == pytest.approx([foresight.TAIL_SHARE / 2**k for k in range(4)])


def test_a_tail_without_errors_ends():
    assert foresight.tail(FLOATS, room=2.1, edge=2.0, excess=0.0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        pytest.param({"spread": 2.0}, 0.5 * foresight.HOURS, id="its replicas"),
        pytest.param({"share": 0.03}, 2.0, id="what it leaves"),
        pytest.param({"price": 200.0}, 100 * (0.01 + foresight.UNSEEN_SHARE / 1.5**2), id="a dearer miss"),
    ],
)
def test_a_loss_is_replicas_and_misses(change, more):
    usual = {"room": 0.5, "share": 0.01, "spread": 1.0, "price": 100.0}

    assert foresight.loss(FLOATS, **usual | change) - foresight.loss(FLOATS, **usual) == pytest.approx(more)
