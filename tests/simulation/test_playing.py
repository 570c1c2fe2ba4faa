"""One policy on one fleet: starts, losses, bounds, pools, and what everything costs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from servingplan.planning.plan import Bounds, Capacity, PoolCapacity
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.fleet import Policy
from servingplan.simulation.playing import Played, Scaled, play
from servingplan.simulation.scenarios.catalogue import as_recorded
from servingplan.simulation.standing import excess, standing
from servingplan.simulation.world import Lanes, rules_of
from simulation.played import PER_HOUR, a_world, before, counted, evenly, hour, wanting
from support.plans import a_plan, a_workload, an_engine

START = 600 // SLICE_S


def scaled(lanes: Lanes, policy: Policy, **kind: float) -> Played:
    """Play a policy that wants numbers of replicas."""
    return play(lanes, Scaled(lanes, policy, **kind))


def test_what_is_wanted_at_first_is_there_and_what_is_wanted_later_takes_a_start():
    one = a_world(5, 5)
    lanes, at = Lanes([one]), before(one)
    played = scaled(lanes, wanting((0, 2), (at, 4)))

    assert played.ready[0, 0, 0] == 2
    assert counted(played.held, one)[:2] == [4, 4]
    assert counted(played.ready, one)[START - 1 : START + 1] == [2, 4]


def test_what_a_lost_node_takes_starts_anew():
    one = a_world(5, 5)
    at = before(one)
    lost = one.lost.copy()
    lost[at] = 1
    played = scaled(Lanes([replace(one, lost=lost)]), wanting((0, 3)))

    ready = counted(played.ready, one)
    assert (ready[0], ready[START], ready[START + 1]) == (2, 2, 3)
    assert set(counted(played.held, one)) == {3}


def test_bounds_hold_for_everybody():
    one = a_world(5, plan=a_plan(bounds=Bounds(minimum=2, maximum=4)))
    played = scaled(Lanes([one]), wanting((0, 1), (before(one), 99)))

    assert set(np.unique(played.held).tolist()) == {2, 4}


def test_a_fall_waits_for_the_stabilization():
    one = a_world(5)
    played = scaled(Lanes([one]), wanting((0, 3), (before(one), 1)), stabilization_s=300)

    held = counted(played.held, one)
    assert (held[300 // SLICE_S - 2], held[300 // SLICE_S - 1]) == (3, 1)


def test_a_pool_serves_what_its_size_is_worth():
    points = (
        PoolCapacity(replicas=1, requests_per_second=Decimal(4)),
        PoolCapacity(replicas=3, requests_per_second=Decimal(6)),
    )
    lanes = Lanes([a_world(10, plan=a_plan(capacity=Capacity(points=points)))])

    assert lanes.unit_rps == 6
    assert (lanes.worth[:4] * 6).tolist() == pytest.approx([0, 4, 10, 18])
    assert lanes.pool(np.array([0, 4 / 6, 4.1 / 6, 10 / 6], np.float32)).tolist() == [0, 1, 2, 2]
    good = [counted(scaled(lanes, wanting((0, n))).good, lanes.worlds[0])[-1] for n in (1, 2)]
    assert good == [0, 1]


def test_requests_wait_as_long_as_the_objective_allows_and_no_longer():
    one = a_world(5.5, plan=a_plan())
    lanes = Lanes([one])
    missed = standing(scaled(lanes, wanting((0, 1))), lanes, as_recorded(one))
    enough = standing(scaled(lanes, wanting((0, 2))), lanes, as_recorded(one))

    assert missed.attainment == pytest.approx(0, abs=0.01)
    assert missed.missed == pytest.approx(5.5 * 3600, rel=0.01)
    assert (enough.attainment, enough.missed) == (1, 0)


def test_gpu_hours_are_split_by_what_they_are_for():
    plan = a_plan(gpus_per_replica=2)
    one = a_world(5, 5, plan=plan)
    lanes, at = Lanes([one]), before(one)
    found = standing(scaled(lanes, wanting((0, 2), (at, 4), (at + PER_HOUR, 2))), lanes, as_recorded(one))

    assert found.reserve == pytest.approx(2 * 2)
    assert found.starting == pytest.approx(2 * 2 * 600 / 3600)
    assert found.serving + found.reserve == pytest.approx(2 * (2 * 2 + 2 * 3000 / 3600))
    assert found.draining == pytest.approx(2 * 2 * one.rules.drain_s / 3600)
    assert found.hours == pytest.approx(found.serving + found.reserve + found.starting + found.draining)


def test_the_week_is_the_plans_own_and_names_its_worst_hour():
    one = a_world(2, 9, 2)
    lanes = Lanes([one])
    found = standing(scaled(lanes, wanting((0, 1))), lanes, as_recorded(one))

    tuesday = 24
    assert np.isfinite(found.weekly).nonzero()[0].tolist() == [tuesday, tuesday + 1, tuesday + 2]
    assert found.worst_hour == tuesday + 1
    assert standing(scaled(lanes, wanting((0, 3))), lanes, as_recorded(one)).worst_hour is None


def test_requests_above_the_plan_are_those_beyond_its_rate_in_five_minutes():
    one = a_world(2, 2, 5)
    found = excess(as_recorded(one))

    assert found.requests == pytest.approx(3 * 3600)
    assert found.share == pytest.approx(3 / 9)
    assert found.most == (hour(2, one), pytest.approx(5), 2)
    assert excess(as_recorded(a_world(2, 1))).most is None


def test_start_wait_and_drain_are_those_of_the_plan():
    rules = rules_of(a_plan(), a_plan().lead.declared)
    slow = a_workload()
    quick = rules_of(a_plan(target=an_engine(drain_timeout=a_plan().scale_down.every / 12)), a_plan().lead.declared)

    assert rules.start_s == 600
    assert rules.wait_limit_s == slow.objectives.ttft.limit.total_seconds()
    assert rules.drain_s == slow.tokens.output[-1][1] * slow.objectives.tpot.limit.total_seconds()
    assert quick.drain_s == 10


def test_lanes_are_played_side_by_side_as_they_would_be_alone():
    one, other = a_world(4, 9), a_world(4, 4)
    together = scaled(Lanes([one, other]), wanting((0, 1)))

    for lane, each in enumerate((one, other)):
        assert (scaled(Lanes([each]), wanting((0, 1))).good[:, 0, 0] == together.lane(lane).good[:, 0, 0]).all()
    assert evenly(4, 9).requests.sum() > evenly(4, 4).requests.sum()
