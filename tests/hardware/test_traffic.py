"""Token lengths, what is in flight, and what of the cache it takes."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.hardware.kv_cache import pool
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.traffic import blocks_p99, fits, lengths_blocks, occupancy
from support.models import CHAT_INPUT, CHAT_OUTPUT, engine, gib, model


def test_chat_at_five_a_second_holds_what_littles_and_campbells_laws_say():
    found = occupancy(5, 0.040, CHAT_INPUT, CHAT_OUTPUT)

    assert found.in_flight == pytest.approx(47, abs=0.1)
    assert found.tokens == pytest.approx(49_700, rel=0.002)
    assert found.deviation == pytest.approx(9_500, rel=0.005)
    assert found.p99 == pytest.approx(71_900, rel=0.001)


def test_campbells_law_is_what_a_simulation_of_arrivals_sees():
    rng, rate, tpot, horizon = random.Random(1), 5.0, 0.040, 20_000.0  # noqa: S311  a simulation
    arrivals: list[tuple[float, float, float]] = []
    time = 0.0
    while (time := time + rng.expovariate(rate)) < horizon:
        lengths = (rng.lognormvariate(math.log(x.median), x.sigma) for x in (CHAT_INPUT, CHAT_OUTPUT))
        arrivals.append((time, *lengths))
    samples = []
    instants = [100 + 7.0 * i for i in range(2800)]
    active: list[tuple[float, float, float]] = []
    upcoming = iter(arrivals)
    following = next(upcoming)
    for instant in instants:
        while following is not None and following[0] <= instant:
            active.append(following)
            following = next(upcoming, None)
        active = [(start, in_, out) for start, in_, out in active if start + out * tpot > instant]
        samples.append(sum(in_ + (instant - start) / tpot for start, in_, out in active))
    expected = occupancy(rate, tpot, CHAT_INPUT, CHAT_OUTPUT)

    assert statistics.mean(samples) == pytest.approx(expected.tokens, rel=0.03)
    assert statistics.pstdev(samples) == pytest.approx(expected.deviation, rel=0.06)


@pytest.mark.parametrize(
    ("quantiles", "median", "p95"),
    [
        ({"p50": 600, "p95": 2400}, 600, 2400),
        ({"p50": 180, "p95": 600, "p99": 900}, 180, 600),
        ({"p50": 100, "p99": 1000}, 100, 509.4),
        ({"p90": 500, "p99": 1000}, 213.7, 636.4),
        ({"p50": 100}, 100, 100),
    ],
    ids=["both", "p99 is not needed", "p50 and p99", "upper two", "fixed"],
)
def test_two_quantiles_make_a_lognormal(quantiles, median, p95):
    found = Lengths.from_quantiles(quantiles)

    assert (found.quantile(0.5), found.quantile(0.95)) == (
        pytest.approx(median, rel=1e-3),
        pytest.approx(p95, rel=1e-3),
    )


@pytest.mark.parametrize("quantiles", [{}, {"p50": 10, "p95": 5}])
def test_quantiles_that_say_nothing_are_refused(quantiles):
    with pytest.raises(ValueError, match=r"p50:600,p95:2400|less than p50"):
        Lengths.from_quantiles(quantiles)


def test_a_cache_holds_what_it_holds_and_no_more():
    held = occupancy(5, 0.040, CHAT_INPUT, CHAT_OUTPUT)
    enough, short = (pool([size], model("llama-3.1-8b"), Layout(), engine()) for size in (gib(9.3), gib(9.2)))

    # 71,883 tokens of 131,072 bytes are 95 % of 9.24 GiB.
    assert fits(enough, held, CHAT_INPUT, CHAT_OUTPUT)
    assert not fits(short, held, CHAT_INPUT, CHAT_OUTPUT)


def test_layers_with_a_window_need_less_than_layers_without():
    held = occupancy(5, 0.040, Lengths(median=20_000, sigma=0.2), CHAT_OUTPUT)
    found = pool([gib(60)], model("gemma-3-27b"), Layout(), engine(max_model_len=100_000))
    every_group_whole = held.p99 / 16 * len(found.groups)

    assert blocks_p99(found, held, Lengths(median=20_000, sigma=0.2), CHAT_OUTPUT) < every_group_whole / 3


def test_a_longer_request_takes_more_blocks():
    found = pool([gib(60)], model("gemma-3-27b"), Layout(), engine())

    assert lengths_blocks(found, CHAT_INPUT, CHAT_OUTPUT, 0.95) > lengths_blocks(found, CHAT_INPUT, CHAT_OUTPUT, 0.5)


@given(rate=st.floats(0, 1e6), more=st.floats(0, 1e6), tpot=st.floats(1e-4, 1))
def test_more_requests_never_hold_less(rate, more, tpot):
    less, full = (occupancy(value, tpot, CHAT_INPUT, CHAT_OUTPUT) for value in (rate, rate + more))

    assert full.in_flight >= less.in_flight
    assert full.p99 >= less.p99
