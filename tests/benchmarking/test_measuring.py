"""How long a probe has to be, from what a real engine's took."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

from servingplan.benchmarking.measuring import PROBE_REQUESTS, PROBE_S
from servingplan.benchmarking.validity import PROBES_OFF

RECORDED = Path(__file__).parents[1] / "data" / "vllm" / "probes-neighbours.txt"


def differing(seconds: float) -> float:
    """How often two probes differ by more than is allowed, each of at least so long.

    They take turns, one set of requests each, so that both see the same neighbours.
    """
    sets = [[float(value) for value in line.split()] for line in RECORDED.read_text().splitlines()]
    assert all(len(one) == PROBE_REQUESTS for one in sets)
    beyond, probes = [], ([], [])
    for turn, one in enumerate(sets):
        probes[turn % 2].extend(one)
        if turn % 2 and min(sum(probe) for probe in probes) >= 1000 * seconds:
            before, after = (median(probe) for probe in probes)
            beyond.append(abs(after / before - 1) > PROBES_OFF)
            probes = ([], [])
    return mean(beyond)


def test_two_probes_under_the_same_conditions_differ_where_they_are_short_and_not_where_they_last() -> None:
    assert differing(0.0) > 0.1
    assert differing(PROBE_S) == 0
