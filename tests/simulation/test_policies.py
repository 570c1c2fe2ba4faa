"""Policies: what each does on a day that one can follow, and that none looks ahead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servingplan.planning import foresight
from servingplan.planning.head_room import UNLEARNED
from servingplan.simulation import policies
from servingplan.simulation.fleet import Rules, Seen, run
from servingplan.simulation.history import cheapest_rooms, learn, profile, trust
from servingplan.simulation.reference import clairvoyant, fluid_bound
from servingplan.simulation.scorecard import Period, above_plan, scored
from servingplan.simulation.windows import running_sums
from servingplan.simulation.workload import DAY_S, SLICE_S
from simulation.recorded import daily, load, tenants

RULES = Rules(start_s=300)
PRICES = (3e5, 3e4, 1e3)
LAST = Period(first_day=3, end_day=4)

MADE = {
    "HPA": lambda some: policies.hpa_in_flight([0.7], [60]),
    "KEDA": lambda some: policies.keda_cron(some, [0.7], [1.0], start_s=300),
    "rate": lambda some: policies.rate_reactive(some, [1.3], [120]),
    "cron and rate": lambda some: policies.cron_rate(some, [1.3], [1.0], start_s=300),
    "schedule": lambda some: policies.schedule_alone(some, [1.3], start_s=300),
    "AIBrix": lambda some: policies.knative_like([0.7], [2.0]),
    "foresight": lambda some: policies.foresighted(learn(some, start_s=300, wait_limit_s=10, prices=[1e3])),
}


def seen(*, held: float = 1, queue: float = 0, busy: float = 0) -> Seen:
    return Seen(held=_one(held), queue=_one(queue), busy=_one(busy))


def _one(value: float):
    return np.array([[value]], np.float32)


def held_by(some, made):
    """Replicas held, by slice, when a policy runs."""
    wanted = []
    policy = made(some)

    def noted(i, what):
        wanted.append(policy(i, what))
        return wanted[-1]

    run(some, noted, [0.0], RULES)
    return np.stack(wanted)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_no_policy_knows_what_has_not_arrived_yet(made):
    some = load(daily(3), dispersion=3.0)
    cut = 2 * DAY_S // SLICE_S + 1300
    demand, rates = some.demand.copy(), some.rates.copy()
    demand[cut:] *= 3
    rates[-(-cut // some.slices_per_step) :] *= 3
    other = replace(some, demand=demand, sums=running_sums(demand), rates=rates)

    before, after = held_by(some, made), held_by(other, made)

    assert before[: cut + 1].tolist() == after[: cut + 1].tolist()
    knows_rates = made is not MADE["schedule"]
    assert (before[cut + 1 :].tolist() != after[cut + 1 :].tolist()) == knows_rates


def test_the_schedule_has_replicas_ready_when_the_rise_begins():
    ledger = run(load(daily(4)), MADE["schedule"](load(daily(4))), [0.0], RULES)

    assert scored(ledger, LAST).rising[0, 0] == pytest.approx(1)


def test_foresight_serves_a_daily_rise_that_a_reactive_policy_misses():
    some = load(daily(4), dispersion=3.0)
    found = {
        name: scored(run(some, MADE[name](some), [60.0], RULES), LAST).rising[0, 0] for name in ("foresight", "rate")
    }

    assert found["foresight"] > 0.97
    assert found["rate"] < 0.8


def test_an_hpa_leaves_replicas_alone_within_its_tolerance():
    hpa = policies.hpa_in_flight([0.5], [30])

    assert hpa(0, seen(held=4, busy=2.1)) == 4
    assert hpa(1, seen(held=4, busy=2.5)) == 5


def test_an_hpa_averages_over_its_window():
    hpa = policies.hpa_in_flight([1.0], [30, 60])
    fleet = [np.full((2, 1), busy, np.float32) for busy in (1.0, 5.0)]
    one, none = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    both = [hpa(i, Seen(held=one, queue=none, busy=busy)).ravel().tolist() for i, busy in enumerate(fleet)]

    assert both == [[1.0, 1.0], [5.0, 3.0]]


def test_in_panic_a_knative_like_policy_only_goes_up():
    policy = policies.knative_like([1.0], [2.0])
    wanted = [float(policy(i, seen(held=4, busy=busy))[0, 0]) for i, busy in enumerate([2.0, 20.0, 0.0, 0.0])]

    assert wanted[0] == 2
    assert wanted[1] == 11
    assert min(wanted[1:]) >= 4


def test_a_static_peak_is_that_of_the_days_before():
    some = load(tenants([[5.0]] * 144 + [[10.0]] * 144))

    assert policies.static_peak(some, [1.0], known_days=1)(9999, seen()) == 5


def test_a_profile_is_of_earlier_days_and_weighs_days_of_its_kind():
    some = load(tenants([[1.0]] * 144 + [[9.0]] * 144 + [[4.0]] * 144), peak=9)
    weekend = replace(some, days_off=np.array([False, True, False]))

    plain, kind = profile(some)[::144, 0], profile(weekend)[::144, 0]

    assert plain.tolist() == pytest.approx([0, 1, (0.9 * 1 + 9) / 1.9], rel=1e-5)
    assert kind[2] == pytest.approx((0.9 * 1 + 0.15 * 9) / 1.05, rel=1e-5)


def test_a_profile_is_used_as_far_as_it_told_the_days_before():
    rng = np.random.default_rng(3)
    noise = rng.gamma(1, 3, (4 * 144, 1))
    swaying = daily(4).rates * rng.gamma(2, 0.5, (4 * 144, 1))

    never, somewhat, always = (
        trust(some, profile(some))[2:, 0] for some in (load(tenants(noise)), load(tenants(swaying)), load(daily(4)))
    )

    assert always.tolist() == [1, 1]
    assert (somewhat > 0.5).all()
    assert (somewhat < 1).all()
    assert (never < 0.2).all()


def test_a_dearer_miss_holds_more_replicas():
    some = load(daily(4), dispersion=3.0)
    known = learn(some, start_s=300, wait_limit_s=10, prices=PRICES)

    hours = scored(run(some, policies.foresighted(known), [60.0] * 3, RULES), LAST).hours[:, 0]

    assert hours[0] > hours[1] > hours[2]


def test_head_room_is_bought_while_it_costs_less_than_what_it_saves():
    """Errors fall off exponentially with a mean of 1: what is left is what a spread costs, over the price of a miss."""
    errors = np.random.default_rng(4).exponential(1, (200_000, 1)).astype(np.float32)
    left = np.array([0.2, 0.02, 0.005])

    found = cheapest_rooms(errors, np.ones_like(errors), np.ones(1, np.float32), (24 / left).tolist())[:, 0]

    unseen = foresight.UNSEEN_SHARE * 2 / (1 + found) ** 3  # what no day has shown adds to what a spread saves
    assert np.exp(-found) + unseen == pytest.approx(left, rel=0.3)


def test_who_has_had_no_request_yet_is_served_from_the_first_hour_on():
    """Quiet for three days, then four replicas' worth: what was learned of nothing is no reason to serve less."""
    rates = np.zeros((4 * 144, 1))
    rates[-144:] = 4.0
    some = load(tenants(rates), peak=4)
    known = learn(some, start_s=300, wait_limit_s=10, prices=[1e3])

    ledger = run(some, policies.foresighted(known), [60.0], RULES)

    assert known.rising.head_room[3, 0, 0] == UNLEARNED
    assert ledger.good[73:, 0, 0].tolist() == pytest.approx(ledger.requests[73:, 0].tolist())


def test_clairvoyance_costs_no_more_than_any_policy_and_no_less_than_the_fluid_bound():
    some = load(daily(4), dispersion=3.0)
    reference, bound = clairvoyant(some, RULES, LAST, 0.995)[0], fluid_bound(some, LAST)[0]
    dear = policies.foresighted(learn(some, start_s=300, wait_limit_s=10, prices=[1e4]))
    score = scored(run(some, dear, [60.0], RULES), LAST)

    assert bound < reference < score.hours[0, 0]
    assert bound == pytest.approx(14 * 2 + 10 * 10, rel=1e-4)


def test_requests_above_the_profile_are_counted():
    some = load(tenants([[4.0]] * 144 + [[4.0]] * 72 + [[8.0]] * 72), peak=8)

    assert above_plan(some, Period(first_day=1, end_day=2))[0] == pytest.approx(4 / 12, rel=1e-3)
