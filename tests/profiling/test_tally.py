"""Requests become counts by the minute, shares by name, and nothing that grows without bound."""

from __future__ import annotations

import numpy as np
import pytest

from servingplan.errors import InputError
from servingplan.profiling.request import Request, Step
from servingplan.profiling.tally import OTHERS, Tally


def tallied(*logged, deferrable=None):
    tally = Tally(deferrable)
    tally.add(logged)
    return tally.counted


def test_requests_are_counted_by_the_minute_in_any_order():
    counted = tallied(Request(190.0), Request(60.0), Request(119.9), Request(120.0))

    assert (counted.arrivals.start, counted.arrivals.step) == (60, 60)
    assert counted.arrivals.counts.tolist() == [2, 1, 1]
    assert counted.requests == 4


def test_lengths_are_of_the_requests_that_have_them():
    counted = tallied(Request(0, 10, 5), Request(1, 30, None), Request(2))

    assert (counted.input.count, counted.input.mean, counted.output.count) == (2, 20, 1)


def test_names_have_shares_of_the_requests_that_have_names():
    counted = tallied(*[Request(i, tenant="a" if i % 4 else "b") for i in range(8)], Request(9))

    assert [(each.name, each.share) for each in counted.tenants] == [("a", 0.75), ("b", 0.25)]


def test_a_name_for_each_request_is_no_flood():
    counted = tallied(*[Request(i, tenant=f"user-{i:06d}") for i in range(30_000)])

    assert counted.tenants[0].name == OTHERS
    assert counted.tenants[0].share == pytest.approx(2 / 3)


def test_what_can_wait_is_counted_and_in_no_rate():
    logged = [Request(0, tenant="nightly"), Request(1, priority="10"), Request(2, tenant="chat", priority="0")]
    counted = tallied(*logged, deferrable={"tenant": frozenset({"nightly"}), "priority": frozenset({"10"})})

    assert (counted.requests, counted.deferrable, counted.arrivals.counts.sum()) == (3, 2, 1)


def test_steps_of_several_files_are_added_and_gaps_stay_gaps():
    counted = tallied(Step(0, 600, 100), Step(600, 600, None), Step(1800, 600, 50), Step(0, 600, 20))

    np.testing.assert_array_equal(counted.arrivals.counts, [120, np.nan, np.nan, 50])


@pytest.mark.parametrize(
    ("logged", "why"),
    [
        ([], "no line is a request for tokens"),
        ([Request(0), Step(0, 600, 1)], "profile them apart"),
        ([Step(0, 600, 1), Step(0, 300, 1)], "profile them apart"),
        ([Request(0), Request(2e9)], "more than ten years apart"),
    ],
    ids=["nothing", "requests and rates", "two steps", "a wrong time"],
)
def test_what_makes_no_sense_together_is_refused(logged, why):
    with pytest.raises(InputError, match=why):
        tallied(*logged)
