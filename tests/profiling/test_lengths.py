"""Lengths and warm prefixes: counted in bounded memory."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from servingplan.profiling.lengths import LengthCounts
from servingplan.profiling.prefixes import REMEMBERED_BLOCKS, Prefixes

LENGTHS = st.lists(st.integers(min_value=0, max_value=4_000_000), min_size=1, max_size=200)


@given(LENGTHS)
def test_quantiles_are_those_of_the_sorted_lengths_to_a_fiftieth_of_a_per_cent(lengths):
    counts = LengthCounts()
    counts.add(lengths[:7])
    counts.add(lengths[7:])
    found = counts.lengths
    ordered = sorted(lengths)

    for quantile in (50, 90, 95, 99):
        exact = ordered[math.ceil(len(ordered) * quantile / 100) - 1]
        shown = getattr(found, f"p{quantile}")
        assert shown <= exact <= shown * 1.0002
        assert shown == exact or exact >= 1 << 14
    assert found.count == len(lengths)
    assert math.isclose(found.mean, sum(lengths) / len(lengths))
    assert found.longest == ordered[-1]


def test_nothing_counted_is_no_distribution():
    assert LengthCounts().lengths is None


def test_however_many_lengths_there_are_few_are_kept():
    counts = LengthCounts()
    counts.add(range(3, 3_000_000, 3))

    assert len(counts._counts) < 80_000


def test_a_prompt_is_warm_up_to_the_first_block_that_was_not_seen():
    prefixes = Prefixes()
    prefixes.add(0, 400, ["a", "b", "c", "d"])
    prefixes.add(10, 400, ["a", "b", "x", "d"])

    assert prefixes.share == 200 / 800


def test_a_block_is_forgotten_after_two_hours_without_use():
    prefixes = Prefixes()
    for at in (0, 3700, 11_000):
        prefixes.add(at, 100, ["a"])

    assert prefixes.share == 1 / 3


def test_blocks_are_forgotten_rather_than_kept_without_bound():
    prefixes = Prefixes()
    for first in range(0, 3 * REMEMBERED_BLOCKS, 1000):
        prefixes.add(0, 1000, range(first, first + 1000))

    assert len(prefixes._young) + len(prefixes._old) <= 2 * (REMEMBERED_BLOCKS + 1000)
