"""Scenarios: what goes wrong, where it hurts most, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servingplan.simulation.scenarios.catalogue import SCENARIOS, as_recorded
from servingplan.simulation.scenarios.scene import Severity
from servingplan.simulation.scenarios.worst import worst
from simulation.played import PER_HOUR, a_world, hour

WORLD = a_world(2, 2, 10, 10, 2, 2, 18, 18, 2)
TOP = hour(6, WORLD)
MILD = Severity()


def changed(scene):
    """The slices in which something differs from the world as recorded."""
    world = scene.world
    differs = (world.trace.requests != WORLD.trace.requests) | (world.lost != WORLD.lost)
    return (differs | (world.silent != WORLD.silent)).nonzero()[0].tolist()


def test_the_worst_minute_is_the_top_of_the_busiest_rise():
    found = worst(a_world(2, 2, 10, 18, 18, 2))
    assert (found.begin, found.top) == (hour(3, WORLD), hour(3, WORLD))

    found = worst(WORLD)
    assert (found.begin, found.top) == (TOP, TOP)


def test_without_a_rise_the_busiest_minutes_are_the_worst():
    one = a_world(10, 10.5, 10)
    assert worst(one).top == hour(1, one)


def test_only_the_time_that_is_judged_is_looked_at():
    one = replace(WORLD, judged=WORLD.judged & (np.arange(len(WORLD.lost)) < hour(5, WORLD)))
    assert worst(one).top == hour(2, WORLD)


def test_a_lost_node_takes_its_replicas_until_kubernetes_replaces_them():
    scene = SCENARIOS["node-lost"](WORLD, Severity(node_replicas=2))

    assert changed(scene) == list(range(TOP, TOP + 12))
    assert scene.world.lost[TOP] == 2
    assert scene.words.startswith("2 replicas gone at Tue 1 Dec 06:00 CET, replaced 5m50s later")
    assert (scene.first, scene.end) == (TOP, TOP + PER_HOUR)


def test_metrics_are_gone_for_an_hour():
    scene = SCENARIOS["prometheus-gone"](WORLD, MILD)
    assert changed(scene) == list(range(TOP, TOP + PER_HOUR))


def test_starts_take_twice_as_long_and_nothing_else_changes():
    scene = SCENARIOS["slow-rises"](WORLD, MILD)

    assert scene.world.rules.start_s == 2 * WORLD.rules.start_s
    assert changed(scene) == []
    assert "20m rather than 10m" in scene.words


def test_demand_is_thirty_per_cent_up():
    scene = SCENARIOS["demand-up"](WORLD, MILD)
    assert scene.world.trace.requests == pytest.approx(1.3 * WORLD.trace.requests)
    assert "30 % more" in scene.words


def test_a_burst_says_how_large_it_is():
    scene = SCENARIOS["burst"](WORLD, MILD)

    assert changed(scene) == list(range(TOP, TOP + 10))
    assert scene.world.trace.requests[TOP] == 2 * WORLD.trace.requests[TOP]
    assert scene.words.startswith("2 x the requests for 5 minutes from Tue 1 Dec 06:00")


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_leaves_the_world_it_is_made_of_alone(scenario):
    kept = (WORLD.trace.requests.copy(), WORLD.lost.copy(), WORLD.silent.copy())
    scenario(WORLD, MILD)

    assert all((a == b).all() for a, b in zip(kept, (WORLD.trace.requests, WORLD.lost, WORLD.silent), strict=True))


@pytest.mark.parametrize(("key", "scenario"), SCENARIOS.items(), ids=SCENARIOS)
def test_a_scene_has_the_name_of_its_scenario_and_judges_only_what_counts(key, scenario):
    scene = scenario(WORLD, MILD)

    assert scene.key == key
    assert not (scene.judged & ~WORLD.judged).any()
    assert scene.judged.any()
    assert as_recorded(WORLD).judged.tolist() == WORLD.judged.tolist()
