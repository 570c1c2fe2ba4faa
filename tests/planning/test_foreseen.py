"""Foresight in the decision: the policy's own numbers, only raises, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.planning import foresight
from servingplan.planning.decision import Decision, decide
from servingplan.planning.evidence import Verdict
from servingplan.planning.foreseen import SIGNAL, terms
from servingplan.planning.foresight import Profile, Rates
from servingplan.planning.learned import BEYOND, SLICE, SLOTS, HeadRoom, Learned
from servingplan.planning.observation import History, Raised
from servingplan.planning.plan import Plan, PoolCapacity
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Signals
from support.foresight import MONDAY, SHORT_SIGHTED, UNIT, a_learned, a_learner, office_day
from support.signals import an_observation, some_signals, steady

CASES = 10_000

MIDNIGHT = datetime.combine(MONDAY, datetime.min.time(), tzinfo=UTC)

EIGHT = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""A Monday; the usual day rises from half a replica's worth to six."""


def heard(at: datetime, replicas: float = 0.5, **changes: object) -> Signals:
    """Pods that serve so many replicas' worth of arrivals, now and for hours."""
    rate, minute = replicas * UNIT, int(at.timestamp()) // 60
    signals = some_signals(
        at,
        arrivals_2m=steady(rate),
        arrivals_10m=steady(rate),
        arrivals_now=rate,
        minutes=dict.fromkeys(range(minute - 180, minute), rate * 60),
    )
    return replace(signals, **changes)


def decided(
    at: datetime,
    *,
    learned: Learned | None = None,
    current: int = 2,
    history: History | None = None,
    plan: Plan | None = None,
    replicas: float = 0.5,
    **changes: object,
) -> Decision:
    """What is decided of a quiet night's arrivals, where nothing else is said."""
    observation = replace(an_observation(current), heard=heard(at, replicas, **changes), learned=learned)
    return decide(plan or a_learner(), observation, history or History(), at)


def holding(extra: int, total: int, at: datetime) -> History:
    return History(raised=Raised(extra=extra, replicas=total, since=at, wanted_at=at))


def verdict(decision: Decision) -> Verdict:
    (found,) = (each for each in decision.adjustment.verdicts if each.signal == SIGNAL)
    return found


# ---- the policy's own numbers ----


def random_learned(draw: np.random.Generator) -> Learned:
    return a_learned(
        draw.gamma(0.7, 10, SLOTS),
        off=tuple(draw.gamma(0.7, 10, SLOTS)),
        start=SLICE * int(draw.integers(0, 240)),
        trust=float(draw.choice([0.0, 0.4, 1.0, 1.0, 1.0])),
        rising=HeadRoom(room=draw.normal(0.5, 1), by_hour=tuple(draw.uniform(0.4, 2.5, 24))),
        lasting=HeadRoom(room=draw.normal(0.8, 1), by_hour=tuple(draw.uniform(0.4, 2.5, 24))),
        most=draw.gamma(0.7, 10),
    )


def random_signals(draw: np.random.Generator) -> Signals:
    at = MIDNIGHT + SLICE * int(draw.integers(20, 2 * 2880))
    last = int(at.timestamp()) // 60
    minutes = {minute: draw.gamma(0.7, 10) * 60 * UNIT for minute in range(last - int(draw.integers(0, 6)), last)}
    return heard(at, draw.gamma(0.7, 10), minutes=minutes, waiting=steady(draw.gamma(0.2, 300)))


NAMES = ("observed", "expected", "usual", "now", "known", "ahead", "then", "queue", "most")


def as_columns(learned: Learned, s: Signals) -> tuple[float, ...]:
    """A case as the benchmark has it: the usual day by slice, and the slice that it is now."""
    planned = np.repeat(np.tile(learned.working, 4), 20)
    used = planned * learned.trust
    i, start, beyond = (s.at - MIDNIGHT) // SLICE, learned.start // SLICE, BEYOND // SLICE
    places = [(datetime.fromtimestamp(minute * 60, UTC) - MIDNIGHT) // SLICE for minute in s.minutes]
    return (
        np.mean(list(s.minutes.values())) / 60 / UNIT if places else 0.0,
        planned[places].mean() if places else 0.0,
        planned[:2880].mean() if places else 0.0,
        s.arrivals_now / UNIT,
        used[i],
        used[i : i + start + beyond + 1].max(),
        used[i + start + 1 : i + start + beyond + 2].max(),
        s.waiting.least / UNIT,
        learned.most,
    )


def test_ten_thousand_random_cases_are_those_of_the_numeric_policy():
    draw, plan = np.random.default_rng(20261130), a_learner()
    cases = [(random_learned(draw), random_signals(draw)) for _ in range(CASES)]

    found = [
        terms(plan, s, learned, now=s.arrivals_now, rising=learned.rising, lasting=learned.lasting)
        for learned, s in cases
    ]

    seen = dict(zip(NAMES, np.array([as_columns(*case) for case in cases]).T, strict=True))
    today = foresight.level(np, observed=seen["observed"], expected=seen["expected"], usual=seen["usual"])
    rates = Rates(now=seen["now"], level=np.where(seen["usual"] > 0, today, 1.0))

    def sized(most_planned: np.ndarray, room: str) -> np.ndarray:
        rooms = [(getattr(learned, room), s.at.hour) for learned, s in cases]
        forecast = foresight.foreseen(np, rates, Profile(now=seen["known"], ahead=most_planned))
        return foresight.with_head_room(
            np,
            forecast,
            head_room=np.array([each.room for each, _ in rooms]),
            spread=forecast**foresight.SPREAD_POWER * np.array([each.by_hour[hour] for each, hour in rooms]),
            most=seen["most"],
            now=seen["now"],
        )

    for held, mine in ((0.0, [each.raise_to for each in found]), (np.inf, [each.keep_to for each in found])):
        theirs = foresight.replicas(
            np,
            raise_to=sized(seen["then"], "rising"),
            keep_to=sized(seen["ahead"], "lasting"),
            held=np.full(CASES, held),
            backlog_s=seen["queue"],
        )
        assert mine == theirs.astype(int).tolist()


# ---- what it does ----


def test_it_raises_a_start_before_a_rise_that_the_past_alone_knows():
    learned = a_learned(office_day())
    early = decided(EIGHT - timedelta(minutes=12), learned=learned)
    due = decided(EIGHT - timedelta(minutes=10), learned=learned)

    assert (early.desired, early.adjustment.extra) == (2, 0)
    # Half of max(6, 0.5) and half of 6 + 0.6 (0.5 - 0.5), and 0.1: seven, and one in reserve.
    assert (due.desired, due.adjustment.extra) == (8, 6)
    assert due.adjustment.reason is Reason.FEEDBACK_RAISES
    assert due.because == "feedback: foresight"


def test_a_peak_that_ends_before_a_replica_would_start_is_kept_for_and_not_raised_for():
    at = EIGHT - timedelta(minutes=5)
    usual = tuple(6.0 if slot == 48 else 0.5 for slot in range(SLOTS))
    learned, before = a_learned(usual, start=timedelta(minutes=20)), at - timedelta(hours=1)

    keeping = decided(at, learned=learned, current=8, history=holding(6, 8, before))
    raising = decided(at, learned=learned)
    after = decided(at + timedelta(minutes=20), learned=learned, current=8, history=holding(6, 8, before))

    assert (keeping.adjustment.extra, keeping.adjustment.reason) == (6, Reason.FEEDBACK_RAISES)
    assert raising.adjustment.extra == 0
    assert after.adjustment.extra == 0


def test_a_busier_day_than_usual_is_foreseen_busier():
    usual = a_learned(office_day())
    at = EIGHT + timedelta(hours=2)

    calm, busy = (decided(at, learned=usual, replicas=each).adjustment.extra for each in (6.0, 9.0))

    assert busy > calm


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"learned": None}, Reason.NOT_KNOWN, id="nothing is learned yet"),
        pytest.param({"learned": a_learned(office_day(), rising=None, lasting=None, days=0.4)}, Reason.HISTORY_SHORT,
                     id="the past is short"),
        pytest.param({"learned": a_learned(office_day()), "arrivals_now": None}, Reason.NOT_KNOWN,
                     id="not heard for two minutes"),
    ],
)  # fmt: skip
def test_where_the_past_says_nothing_it_acts_as_without(changes, reason):
    at = EIGHT - timedelta(minutes=10)
    found = decided(at, **changes)
    without = decided(at, plan=a_learner(feedback=SHORT_SIGHTED))

    assert verdict(found).reason is reason
    assert (found.desired, found.adjustment.extra, found.adjustment.reason) == (
        without.desired,
        without.adjustment.extra,
        without.adjustment.reason,
    )


LONG_AGO = EIGHT - timedelta(hours=5)


@pytest.mark.parametrize(
    ("learned", "extra"),
    [
        pytest.param(None, 3, id="nothing falls until it is learned who asked for it"),
        pytest.param(a_learned((0.5,) * SLOTS), 0, id="then it goes"),
        pytest.param(a_learned((0.5,) * SLOTS, rising=None, lasting=None), 0, id="and where the past is too short too"),
    ],
)
def test_after_a_restart_what_was_raised_stays_until_the_past_is_learned_again(learned, extra):
    found = decided(EIGHT, learned=learned, current=5, history=holding(3, 5, LONG_AGO))

    assert found.adjustment.extra == extra


def test_without_the_field_what_was_raised_goes_after_the_stabilization():
    plan = a_learner(feedback=SHORT_SIGHTED)
    found = decided(EIGHT, plan=plan, current=5, history=holding(3, 5, LONG_AGO))

    assert found.adjustment.extra == 0


def test_max_extra_limits_it_and_is_named():
    feedback = replace(a_learner().feedback, max_extra=2)
    found = decided(EIGHT - timedelta(minutes=10), learned=a_learned(office_day()), plan=a_learner(feedback=feedback))

    assert (found.adjustment.extra, found.desired) == (2, 4)
    assert found.adjustment.message.endswith("2 more, 6 wanted: feedback.maxExtra limits it")


def test_in_larger_pools_each_replica_counts_for_more():
    at, learned = EIGHT - timedelta(minutes=10), a_learned(office_day())
    points = tuple(PoolCapacity(replicas=n, requests_per_second=Decimal(rate)) for n, rate in ((1, 5), (6, 6)))
    plan = a_learner(capacity=replace(a_learner().capacity, points=points))

    # Seven of the smallest pool serve 35/s: six of a pool of six do, with 36/s.
    assert verdict(decided(at, learned=learned)).wants == 8
    assert verdict(decided(at, learned=learned, plan=plan)).wants == 7


def test_the_trail_has_one_step_with_every_term():
    found = decided(EIGHT - timedelta(minutes=10), learned=a_learned(office_day()), waiting=steady(75))
    steps = {step.name: step for step in found.trail}

    assert len(found.trail) <= 12
    assert (steps["foresight"].value, steps["foresight"].reason) == ("raise", Reason.FORESEEN)
    assert steps["foresight"].message == (
        "usual 0.5 now, 6 in 10m, busier by 1; 0.5 arrive; 6.1 foreseen, 0 of head room, 0.5 for what waits, 1 in "
        "reserve: 8 replicas"
    )


def test_without_a_usual_day_it_says_so():
    found = decided(EIGHT, learned=a_learned(office_day(), trust=0.0))

    assert verdict(found).message.startswith("no usual day is used; 0.5 arrive; ")


# ---- properties ----

usual_days = st.lists(st.floats(0, 8), min_size=SLOTS // 24, max_size=SLOTS // 24).map(lambda few: a_learned(few * 24))
rooms = st.floats(-1, 2).map(lambda room: HeadRoom(room=room, by_hour=(1.0,) * 24))
loads = st.floats(0, 10)
moments = st.integers(0, 7 * 2880).map(lambda i: MIDNIGHT + i * SLICE)


@given(usual_days, rooms, rooms, loads, moments, st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_it_only_raises_and_within_the_bounds(learned, rising, lasting, load, at, held):
    learned = replace(learned, rising=rising, lasting=lasting)
    history = holding(held, 2 + held, at) if held else History()
    with_it = decided(at, learned=learned, replicas=load, current=2 + held, history=history)
    without = decided(at, plan=a_learner(feedback=SHORT_SIGHTED), replicas=load, current=2 + held, history=history)

    assert with_it.desired >= without.desired
    assert 0 <= with_it.adjustment.extra <= 10
    assert with_it.next_change_at > at
    assert len(with_it.trail) <= 12


@given(usual_days, rooms, loads, loads, moments)
@settings(max_examples=100, deadline=None)
def test_more_arrivals_never_give_fewer_replicas(learned, room, load, more, at):
    learned = replace(learned, rising=room, lasting=room)

    assert (
        decided(at, learned=learned, replicas=load + more).desired
        >= decided(at, learned=learned, replicas=load).desired
    )


@given(usual_days, loads, moments, st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_time_alone_changes_nothing_of_it(learned, load, at, seconds):
    """What was heard is judged as of when it was heard: another look at it says the same."""
    observation = replace(an_observation(2), heard=heard(at, load), learned=learned)
    now, later = (decide(a_learner(), observation, History(), at + timedelta(seconds=each)) for each in (0, seconds))

    assert verdict(now) == verdict(later)
    assert now == decide(a_learner(), observation, History(), at)
