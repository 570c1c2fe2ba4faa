"""Worlds for tests: the worked example, and days that the test draws by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from servingplan.planning.plan import Feedback, Plan, PrometheusSource
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.fleet import Policy, Rules
from servingplan.simulation.trace import Drawing, Trace, recorded
from servingplan.simulation.world import World, world
from support.plans import a_plan

TUESDAY = datetime(2026, 11, 30, 23, tzinfo=UTC)
"""Midnight in Berlin, before a working day."""

DRAWING = Drawing(seed=1, dispersion=1e-6)
PER_HOUR = 3600 // SLICE_S


def heard(plan: Plan | None = None) -> Plan:
    """A plan with feedback from a Prometheus."""
    return replace(plan or a_plan(), feedback=Feedback(source=PrometheusSource(name="default"), max_extra=3))


def evenly(*hours: float) -> Trace:
    """A trace of so many requests/s, hour by hour, each at its own time."""
    counts = np.repeat(np.array(hours) * SLICE_S, PER_HOUR)
    return recorded(counts, TUESDAY, SLICE_S, DRAWING)


def a_world(*hours: float, plan: Plan | None = None, start_s: float = 600, wait_limit_s: float = 2) -> World:
    """The plan's fleet, and what comes hour by hour."""
    return world(plan or a_plan(), evenly(*hours), Rules(start_s=start_s, wait_limit_s=wait_limit_s))


def wanting(*changes: tuple[int, float]) -> Policy:
    """A policy that wants so many from each slice on, in every setting and lane."""

    def wanted(i: int, seen: object) -> np.ndarray:
        held = seen.held  # type: ignore[attr-defined] # a policy takes what the fleet shows
        return np.full_like(held, [value for start, value in changes if i >= start][-1])

    return wanted


def before(one: World) -> int:
    """The slices before the first that counts."""
    return one.trace.index(one.trace.first)


def counted(values: np.ndarray, one: World) -> Sequence[float]:
    """The values from the first slice on that counts, of the first setting and lane."""
    return values[before(one) :, 0, 0].tolist()


def hour(number: float, one: World) -> int:
    """The slice in which an hour of the day begins."""
    return one.trace.index(TUESDAY + timedelta(hours=number))
