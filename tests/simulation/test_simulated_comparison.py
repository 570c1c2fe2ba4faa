"""The comparison: who is compared with what settings, and by which days."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from servingplan.simulation.comparison import compare
from servingplan.simulation.playing import play
from servingplan.simulation.rivals import PLAN, entrants
from servingplan.simulation.scenarios.catalogue import RECORDED, SCENARIOS
from servingplan.simulation.scenarios.scene import Severity
from servingplan.simulation.tuning import half_time, judged_from, tuned
from servingplan.simulation.world import Lanes
from simulation.played import TUESDAY, a_world, before, counted, heard, hour
from support.plans import a_plan

RISE = (2, 2, 18, 18, 2, 2)


def named(key, plan=None, cron=None, slices=0):
    found = {each.key: each for each in entrants(plan or a_plan(), np.zeros(slices) if cron is None else cron)}
    return found[key]


def held(key, one, setting, **kind):
    lanes = Lanes([one])
    entrant = named(key, one.plan, **kind)
    settings = () if setting is None else (setting,)
    return play(lanes, entrant.make(lanes, settings))


def compared(one, *scenarios):
    told = []
    cron = np.zeros(len(one.trace.requests), np.float32)
    found = compare(
        one,
        [SCENARIOS[name] for name in scenarios],
        Severity(),
        entrants(one.plan, cron),
        tell=lambda what, share: told.append((what, share)),
    )
    return found, told


def test_the_plan_comes_first_and_everybody_is_played_in_every_scene():
    found, told = compared(a_world(*RISE, plan=heard()), "node-lost", "slow-rises")

    assert found.plan.entrant.key == PLAN
    assert [result.entrant.key for result in found.results] == [
        "plan", "schedule", "static", "hpa", "keda", "rate", "cron-rate", "aibrix"
    ]  # fmt: skip
    for result in found.results:
        assert list(result.standings) == list(result.calm) == [RECORDED, "node-lost", "slow-rises"]
    assert {what for what, _ in told} >= {"this plan", "clairvoyant fleet"}
    assert all(0 <= share <= 1 for _, share in told)


def test_a_plan_without_feedback_is_not_compared_with_itself():
    assert [each.key for each in entrants(a_plan(), np.zeros(1))][:2] == ["plan", "static"]


def test_what_a_scene_does_is_seen_beside_the_same_time_as_recorded():
    found, _ = compared(a_world(*RISE, plan=a_plan(reserve=replace(a_plan().reserve, replicas=0))), "burst")

    assert found.plan.standings["burst"].attainment < found.plan.calm["burst"]
    assert found.above["burst"].share > found.above[RECORDED].share > 0


def test_an_autoscaler_holds_what_it_has_while_there_are_no_metrics():
    one = a_world(*RISE)
    silent = replace(one, silent=np.ones_like(one.silent))

    for key, setting in (("hpa", 0.7), ("rate", 1.25)):
        assert held(key, one, setting).held.max() > 2
        assert np.ptp(held(key, silent, setting).held[1:]) == 0
    assert held("aibrix", silent, 0.7).held.max() > 2


def test_a_cron_acts_whether_there_are_metrics_or_not():
    one = a_world(*RISE)
    silent = replace(one, silent=np.ones_like(one.silent))
    cron = np.full(len(one.silent), 6, np.float32)

    assert set(counted(held("keda", silent, 0.7, cron=cron).held, one)) == {6}
    assert min(counted(held("cron-rate", one, 1.25, cron=cron).held, one)) == 6


def test_everybody_holds_the_reserve_on_top():
    one = a_world(5, 5)
    assert set(counted(held("rate", one, 1.0).held, one)) == {2}
    assert set(counted(held("static", one, None).held, one)) == {5}


def test_a_trace_of_a_fortnight_is_cut_at_a_local_midnight_and_judged_by_its_second_half():
    one = a_world(*([2] * 8 + [18] * 12 + [2] * 4) * 14)
    half = half_time(one)

    assert half == TUESDAY + timedelta(days=7)
    assert judged_from(one, half).judged_from == half
    assert half_time(a_world(*[2] * 24)) is None


def test_the_cheapest_setting_that_attains_enough_is_taken_and_else_the_best():
    one = a_world(*RISE * 8)
    half = TUESDAY + timedelta(hours=24)
    entrant = named("rate", one.plan)

    settings = [tuned(entrant, one, half, wanted) for wanted in (0.0, 0.9, 1.0)]
    assert settings == sorted(settings)
    assert settings[0] == min(entrant.knob.tried)
    with pytest.raises(ValueError, match="nothing to tune"):
        tuned(named("static"), one, half, 0.9)


def test_a_fleet_that_knows_all_arrivals_lies_between_the_bound_and_everybody_who_attains_as_much():
    found, _ = compared(a_world(*RISE))
    static = next(result for result in found.results if result.entrant.key == "static")

    assert found.bound == pytest.approx(sum(RISE) / 5)
    assert found.bound < found.reference < static.recorded.hours - static.recorded.reserve
    assert found.world.trace.requests[before(found.world)] == 2 * 30
    assert hour(2, found.world) < len(found.world.lost)
