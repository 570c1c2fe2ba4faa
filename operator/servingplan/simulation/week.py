"""A recorded span of one workload, served by a fluid fleet: by replicas that are given, and by reactive autoscalers.

In: requests by step with gaps, what one replica serves, replicas as step functions, rules. Out: replica-hours and the
share that was served in time, over the steps that count. The same fleet, arrivals and rules for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.arrivals import DISPERSION
from servingplan.simulation.fleet import Ledger, Policy, Rules, Seen, run
from servingplan.simulation.policies import HPA_STABILIZATION_S, RATE_WINDOW_S, hpa_in_flight, rate_reactive
from servingplan.simulation.rivals import USUAL_MARGIN, USUAL_TARGET
from servingplan.simulation.traces import Tenants, over_gaps
from servingplan.simulation.windows import Array
from servingplan.simulation.workload import HOUR_S, SLICE_S, Workload, workload

SEEDS = (1, 2, 3)
"""Requests inside a step are drawn this often; what is told is the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What arrived: requests/s by step of `step_s` seconds, NaN in gaps, and which steps count.

    capacity: what one replica serves, requests/s.
    """

    rates: NDArray[np.float64]
    counted: NDArray[np.bool_]
    step_s: int
    capacity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """replica_hours: of all kinds, starting and draining too. attainment: of requests, None where there were none."""

    replica_hours: float
    attainment: float | None


def held(recorded: Recorded, replicas: Sequence[NDArray[np.float32]], rules: Rules) -> tuple[Outcome, ...]:
    """What came of replicas that were set, each by slice of `SLICE_S` from the start on."""
    load, before = _load(recorded)
    lines = np.stack(list(replicas))
    lines = np.concatenate([np.repeat(lines[:, :1], before, axis=1), lines], axis=1)[:, :, None]

    def policy(i: int, _seen: Seen) -> Array:
        wanted: Array = lines[:, i]
        return wanted

    return _outcomes(run(load, policy, [0] * len(lines), rules))


def reactive(recorded: Recorded, rules: Rules, *, most: int) -> tuple[Outcome, Outcome]:
    """An HPA on requests in flight, and replicas that follow the measured rate, both beside the reserve of the rules.

    With the settings that `simulate` gives them where nothing is tuned.
    most: replicas, the reserve included.
    """
    load, _ = _load(recorded)
    policies = (
        hpa_in_flight([USUAL_TARGET], [SLICE_S]),
        rate_reactive(load, [USUAL_MARGIN], [RATE_WINDOW_S]),
    )
    first, second = (
        _outcomes(run(load, _beside(policy, rules.reserve, most), [HPA_STABILIZATION_S], rules))[0]
        for policy in policies
    )
    return first, second


def _beside(policy: Policy, reserve: int, most: int) -> Policy:
    """A policy that does not count the reserve as its own, within a bound."""

    def wanted(i: int, seen: Seen) -> Array:
        own = policy(i, replace(seen, held=seen.held - np.float32(reserve)))
        return np.minimum(own, np.float32(most - reserve))

    return wanted


def _load(recorded: Recorded) -> tuple[Workload, int]:
    """The workload, an hour of its first step before it so that nothing begins cold, and that hour's slices."""
    steps = HOUR_S // recorded.step_s
    rates = over_gaps(recorded.rates, np.isfinite(recorded.rates))
    rates = np.concatenate([np.full(steps, rates[0]), rates])
    counted = np.concatenate([np.zeros(steps, bool), recorded.counted])
    tenants = Tenants(names=("recorded",), rates=rates[:, None], counted=counted[:, None], step_s=recorded.step_s)
    peak = float(rates.max()) / recorded.capacity
    return workload(tenants, peak=peak, seeds=SEEDS, dispersion=DISPERSION, days_off=()), HOUR_S // SLICE_S


def _outcomes(ledger: Ledger) -> tuple[Outcome, ...]:
    """The mean over seeds, by setting."""
    requests = float(ledger.requests.sum(dtype=np.float64))
    good = ledger.good.sum(axis=(0, 2), dtype=np.float64)
    kinds = (ledger.serving, ledger.reserve, ledger.starting, ledger.draining)
    hours = sum(kind.sum(axis=0, dtype=np.float64).mean(axis=1) for kind in kinds)
    return tuple(
        Outcome(replica_hours=float(spent), attainment=float(kept) / requests if requests else None)
        for spent, kept in zip(np.atleast_1d(hours), good, strict=True)
    )
