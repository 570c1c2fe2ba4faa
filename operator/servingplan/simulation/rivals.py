"""What else a user might run, and the plan itself: the policies that are compared, with their settings.

In: lanes, and what KEDA's cron would ask for. Out: `Entrant`s. All of them hold the plan's reserve on top of what they
want, inside the plan's bounds. One with a knob has a `usual` setting, and others to tune over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from servingplan.planning.demand import requirements
from servingplan.planning.plan import Plan
from servingplan.simulation import policies
from servingplan.simulation.fleet import Policy, Seen
from servingplan.simulation.operating import OperatedFleet
from servingplan.simulation.playing import Fleet, Scaled
from servingplan.simulation.policies import HPA_STABILIZATION_S, RATE_WINDOW_S
from servingplan.simulation.trace import SLICE
from servingplan.simulation.windows import Array, trailing_mean
from servingplan.simulation.workload import SLICE_S
from servingplan.simulation.world import Lanes

USUAL_TARGET = 0.7
"""Requests in flight per replica that an autoscaler aims at, of those at capacity: Knative's target utilisation."""

USUAL_MARGIN = 1.25
"""Measured capacity used to four fifths: what the target of 70 % is for a metric without queues."""

PANIC = 2.0
"""Knative's panic threshold: twice what is there."""

TARGETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
MARGINS = (1.0, 1.1, 1.25, 1.4, 1.6, 1.9, 2.3, 3.0, 4.0)
"""What targets and margins are tuned over."""

Make = Callable[[Lanes, Sequence[float]], Fleet]
"""A policy's fleet for some lanes, with its settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """The one thing that is tuned. words: how a setting is told."""

    usual: float
    tried: Sequence[float]
    words: Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A policy that is compared. key: for programs. words: what it does, for those without a knob or beside it."""

    key: str
    title: str
    words: str
    make: Make
    knob: Knob | None = None


_TARGET = Knob(
    usual=USUAL_TARGET, tried=TARGETS, words=lambda share: f"target {100 * share:.0f} % of in-flight at capacity"
)
_MARGIN = Knob(usual=USUAL_MARGIN, tried=MARGINS, words=lambda margin: f"{margin:g} x the rate of {RATE_WINDOW_S} s")

PLAN = "plan"


def entrants(plan: Plan, cron: Array) -> tuple[Entrant, ...]:
    """All of them, the plan first. cron: what KEDA's cron triggers for this plan ask for at each slice."""
    return (*_ours(plan), *_others(cron))


def _ours(plan: Plan) -> tuple[Entrant, ...]:
    if plan.feedback is None:
        return (Entrant(key=PLAN, title="this plan", words="schedule and lead; it has no feedback", make=_operator),)
    foresees = ", with foresight" if plan.foresight is not None else ""
    return (
        Entrant(key=PLAN, title="this plan", words=f"schedule, lead and feedback{foresees}", make=_operator),
        Entrant(key="schedule", title="schedule alone", words="the plan without its feedback", make=_schedule),
    )


def _others(cron: Array) -> tuple[Entrant, ...]:
    held = "cron of the plan"
    return (
        Entrant(key="static", title="static peak", words="the plan's largest level", make=_static),
        Entrant(key="hpa", title="HPA in-flight", words="", make=_autoscaled(_hpa), knob=_TARGET),
        Entrant(key="keda", title="KEDA cron + in-flight", words=held, make=_autoscaled(_hpa, cron=cron), knob=_TARGET),
        Entrant(key="rate", title="rate-reactive", words="", make=_autoscaled(_rate), knob=_MARGIN),
        Entrant(key="cron-rate", title="cron + rate", words=held, make=_autoscaled(_rate, cron=cron), knob=_MARGIN),
        Entrant(
            key="aibrix",
            title="AIBrix-like",
            words=f"panic at {PANIC:g} x",
            make=_autoscaled(_knative),
            knob=_TARGET,
        ),
    )


def _operator(lanes: Lanes, _: Sequence[float]) -> Fleet:
    return OperatedFleet(lanes, lanes.plan)


def _schedule(lanes: Lanes, _: Sequence[float]) -> Fleet:
    return OperatedFleet(lanes, replace(lanes.plan, feedback=None))


def _static(lanes: Lanes, _: Sequence[float]) -> Fleet:
    """A week at least is looked at: a short trace need not touch the peak."""
    end = lanes.start + max(lanes.slices * SLICE, timedelta(days=7))
    levels = requirements(lanes.plan, lanes.start, end).values
    most = np.full((1, len(lanes)), max(level.replicas for level in levels), np.float32)
    return Scaled(lanes, lambda _i, _seen: most)


def _autoscaled(make: Callable[[Lanes, Sequence[float]], Policy], *, cron: Array | None = None) -> Make:
    """The fleet of an autoscaler; with what a cron asks for, which holds the reserve already, as its minimum."""

    def fleet(lanes: Lanes, settings: Sequence[float]) -> Fleet:
        policy = make(lanes, settings)
        wanted = policy if cron is None else _at_least(cron, policy)
        return Scaled(lanes, wanted, settings=len(settings), stabilization_s=HPA_STABILIZATION_S)

    return fleet


def _hpa(lanes: Lanes, targets: Sequence[float]) -> Policy:
    return _by_prometheus(lanes, _with_reserve(lanes, policies.hpa_in_flight(targets, (SLICE_S,))))


def _rate(lanes: Lanes, margins: Sequence[float]) -> Policy:
    rate, margin = trailing_mean(lanes.sums, RATE_WINDOW_S // SLICE_S), np.array(margins, np.float32)[:, None]
    return _by_prometheus(lanes, lambda i, _seen: np.maximum(lanes.pool(rate[i] * margin), 1) + lanes.reserve[i])


def _knative(lanes: Lanes, targets: Sequence[float]) -> Policy:
    """It asks the pods themselves: no Prometheus is missing."""
    return _with_reserve(lanes, policies.knative_like(targets, [PANIC] * len(targets)))


def _with_reserve(lanes: Lanes, policy: Policy) -> Policy:
    """A policy that knows nothing of the reserve: it sees a fleet without it, and it comes on top."""

    def wanted(i: int, seen: Seen) -> Array:
        held = np.maximum(seen.held - lanes.reserve[i], 1)
        return np.asarray(np.maximum(policy(i, replace(seen, held=held)), 1) + lanes.reserve[i])

    return wanted


def _by_prometheus(lanes: Lanes, policy: Policy) -> Policy:
    """Without metrics an HPA leaves replicas as they are."""
    return lambda i, seen: np.where(lanes.silent[i], seen.held, policy(i, seen))


def _at_least(cron: Array, policy: Policy) -> Policy:
    return lambda i, seen: np.maximum(policy(i, seen), cron[i])
