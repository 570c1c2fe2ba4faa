"""The operator on virtual time: it does what the schedule says, hears what engines would report, and only raises."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import numpy as np

from servingplan.planning.plan import Foresight, ScrapeSource
from servingplan.reporting.hours import course
from servingplan.simulation.operating import OperatedFleet
from servingplan.simulation.playing import Scaled, play
from servingplan.simulation.trace import SLICE
from servingplan.simulation.world import Lanes
from simulation.played import PER_HOUR, a_world, before, counted, heard, hour, wanting
from support.plans import a_plan

DAY = (2,) * 8 + (18,) * 12 + (2,) * 4
"""What the worked example plans for."""


def replicas(one, plan):
    lanes = Lanes([one])
    return play(lanes, OperatedFleet(lanes, plan)).held[:, 0, 0]


def test_without_feedback_it_holds_what_the_plan_asks_for_at_every_slice():
    one = a_world(*DAY)
    asked = course(a_plan(), one.trace.start, one.trace.end).asked_function
    found = replicas(one, a_plan())

    assert found.tolist() == [asked.at(one.trace.at(i)) for i in range(len(found))]


def test_as_planned_feedback_adds_nothing():
    one = a_world(*DAY, plan=heard())
    assert replicas(one, heard()).max() == 5


def test_what_arrives_above_the_plan_raises_and_comes_down_again():
    one = a_world(2, 9, 9, 2, 2, plan=heard())
    found = replicas(one, heard())
    alone = replicas(one, replace(heard(), feedback=None))

    assert (found >= alone).all()
    assert found[hour(2, one)] > alone[hour(2, one)]
    assert found[-1] == alone[-1]


def test_foresight_learns_from_the_traces_own_days_and_rises_before_they_do():
    plan = heard(a_plan(windows=()))
    foreseeing = replace(plan, feedback=replace(plan.feedback, foresight=Foresight(miss_price=Decimal(8))))
    day = (2,) * 8 + (12,) * 12 + (2,) * 4
    one = a_world(*day * 3, 2, 2, 2, 2, 2, 2, 2, 2, 12, plan=foreseeing)
    found = replicas(one, foreseeing)

    nine = [hour(24 * day + 8, one) for day in range(4)]
    assert found[nine[0]] == 2
    assert found[nine[3]] == 4
    assert replicas(one, plan)[nine[3]] == 2


def test_nothing_is_raised_while_nobody_is_heard():
    one = a_world(2, 9, 9, plan=heard())
    silent = replace(one, silent=np.ones_like(one.silent))

    assert replicas(silent, heard()).tolist() == replicas(silent, replace(heard(), feedback=None)).tolist()


def test_who_asks_the_pods_themselves_misses_no_prometheus():
    plan = replace(heard(), feedback=replace(heard().feedback, source=ScrapeSource(port="http", path="/metrics")))
    one = a_world(2, 9, 9, plan=plan)
    silent = replace(one, silent=np.ones_like(one.silent))

    assert replicas(silent, plan).tolist() == replicas(one, plan).tolist() != replicas(silent, heard()).tolist()


def test_starts_that_take_longer_than_declared_make_the_next_ones_earlier():
    one = a_world(*DAY, *DAY, start_s=1200)
    found = replicas(one, a_plan())

    def rises(day):
        midnight = hour(24 * day, one)
        return int(np.argmax(found[midnight:] > 2)) * SLICE

    assert rises(0) == timedelta(hours=7, minutes=48)
    assert rises(1) < timedelta(hours=7, minutes=40)


def test_a_lane_that_goes_its_own_way_later_is_played_as_if_it_were_alone():
    one = a_world(2, 2, 9, 2, 2, plan=heard())
    lost, requests = one.lost.copy(), one.trace.requests.copy()
    lost[hour(2.5, one) : hour(2.5, one) + 12] = 1
    requests[hour(3, one) :] *= 2
    worlds = [one, replace(one, lost=lost), replace(one, trace=replace(one.trace, requests=requests))]
    lanes = Lanes(worlds)
    together = play(lanes, OperatedFleet(lanes, heard()))

    for lane, each in enumerate(worlds):
        assert together.held[:, 0, lane].tolist() == replicas(each, heard()).tolist()


def test_what_a_lost_node_takes_is_no_reason_to_hold_fewer():
    one = a_world(2, 2, plan=heard())
    lost = one.lost.copy()
    lost[before(one) + PER_HOUR // 2 : before(one) + PER_HOUR // 2 + 12] = 1
    lanes = Lanes([replace(one, lost=lost)])
    played = play(lanes, OperatedFleet(lanes, heard()))

    as_others = play(lanes, Scaled(lanes, wanting((0, 2))))
    assert min(counted(played.held, one)) == 2
    assert counted(played.ready, one) == counted(as_others.ready, one)
    assert min(counted(played.ready, one)) == 1
