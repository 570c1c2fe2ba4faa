"""The lead that learns: what of declared, learned and maximum counts, and in which stage the time went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest

from servingplan.planning.lead import RISES_KEPT, Rises, RiseSample, RunningRise, Stages, effective_lead
from servingplan.planning.plan import Lead

MINUTE = timedelta(minutes=1)
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def a_lead(**changes):
    values = {"declared": 10 * MINUTE, "margin": Fraction(20, 100), "maximum": 30 * MINUTE}
    return Lead(**(values | changes))


def a_sample(minutes, *, day=1, scheduling=0, pulling=0):
    engine = (minutes - scheduling - pulling) * MINUTE
    stages = Stages(scheduling=scheduling * MINUTE, pulling=pulling * MINUTE, engine=engine)
    return RiseSample(decided=datetime(2026, 11, day, 7, tzinfo=UTC), stages=stages)


def took(*minutes):
    return Rises(samples=tuple(a_sample(each, day=day) for day, each in enumerate(minutes, start=1)))


def running(minutes, now=NOW):
    return RunningRise(decided=now - minutes * MINUTE, before=2, after=5)


@pytest.mark.parametrize(
    ("rises", "minutes"),
    [
        pytest.param((), 12, id="nothing learned: declared and margin"),
        pytest.param((4, 5), 12, id="quicker rises shorten nothing"),
        pytest.param((15,), 18, id="one slow rise counts at once"),
        pytest.param((*(9,) * 18, 15), 18, id="the slowest of nineteen"),
        pytest.param((15, *(9,) * 19), 12, id="a slow one is forgotten after nineteen others"),
        pytest.param((40,), 30, id="never longer than the maximum"),
    ],
)
def test_the_lead_is_the_larger_of_declared_and_learned_with_the_margin(rises, minutes) -> None:
    assert effective_lead(a_lead(), took(*rises), NOW).lead == minutes * MINUTE


def test_a_plan_that_does_not_learn_keeps_what_it_declares() -> None:
    found = effective_lead(a_lead(learn=False), took(25), NOW)
    assert (found.lead, found.learned, found.rises) == (12 * MINUTE, None, 0)


def test_a_cap_is_named_with_what_would_be_needed() -> None:
    capped = effective_lead(a_lead(), took(28), NOW)
    assert (capped.capped, capped.wanted) == (True, timedelta(minutes=33, seconds=36))
    assert capped.cap_message == (
        "rises take 28m, most of it in engine, which with its margin needs 33m36s; leadTime.max allows 30m. "
        "Find out what became slower, or raise leadTime.max"
    )
    assert not effective_lead(a_lead(), took(25), NOW).capped


def test_a_rise_that_is_still_running_counts_once_it_is_late() -> None:
    in_time = effective_lead(a_lead(), Rises(running=(running(9),)), NOW)
    late = effective_lead(a_lead(), Rises(running=(running(14),)), NOW)
    assert (in_time.lead, in_time.learned) == (12 * MINUTE, None)
    assert (late.lead, late.learned, late.rises) == (18 * MINUTE, 15 * MINUTE, 0)


def test_a_young_rise_does_not_hide_what_older_ones_took() -> None:
    known = took(15, *(9,) * (RISES_KEPT - 1))
    with_young = Rises(samples=known.samples, running=(running(1),))
    assert effective_lead(a_lead(), with_young, NOW).lead == 18 * MINUTE


def test_what_is_stuck_is_measured_without_the_age_of_what_is_stuck() -> None:
    found = effective_lead(a_lead(), Rises(samples=took(11).samples, running=(running(20),)), NOW)
    assert found.proven == timedelta(minutes=13, seconds=12)
    assert found.lead > found.proven


def test_the_lead_changes_only_at_the_instants_that_it_names() -> None:
    rises = Rises(samples=took(11).samples, running=(running(0),))
    at, seen = NOW, []
    for _ in range(40):
        found = effective_lead(a_lead(), rises, at)
        seen.append(found.lead)
        if found.again_at is None:
            break
        assert found.again_at > at
        assert effective_lead(a_lead(), rises, found.again_at - timedelta(microseconds=1)).lead == found.lead
        at = found.again_at
    assert seen[-1] == 30 * MINUTE
    assert all(later > earlier for earlier, later in pairwise(seen))


@pytest.mark.parametrize(
    ("samples", "stage"),
    [
        pytest.param([], None, id="nothing known"),
        pytest.param([a_sample(12, scheduling=1, pulling=2)], "engine", id="one rise: the longest stage"),
        pytest.param([a_sample(12, pulling=2), a_sample(18, pulling=8)], "pulling", id="two: the one that grew"),
        pytest.param(
            [a_sample(12), a_sample(13), a_sample(19, scheduling=7), a_sample(12)], "scheduling", id="not the longest"
        ),
    ],
)
def test_the_stage_that_grew_is_named(samples, stage) -> None:
    assert effective_lead(a_lead(), Rises(samples=tuple(samples)), NOW).slowest == stage
