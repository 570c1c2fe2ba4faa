"""Who competes, and with which settings: everybody has `SETTINGS` of them.

In: a workload and the rules of a case. Out: a ledger with one entry per setting. The platform's autoscalers keep their
stabilization; the others are tried with the platform's five minutes and with one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from servingplan.simulation import policies
from servingplan.simulation.fleet import Ledger, Rules, run
from servingplan.simulation.history import learn
from servingplan.simulation.policies import HPA_STABILIZATION_S
from servingplan.simulation.workload import Workload

SETTINGS = 24

STABILIZATIONS_S = (60.0, HPA_STABILIZATION_S)
"""What policies that bring an autoscaler of their own are tuned over."""

OUR_STABILIZATION_S = 60.0

OURS = "foresight"

LEAST_PRICE, MOST_PRICE = 20, 200_000
"""Replica-hours that it is worth not to miss all requests of a day."""

PROFILED = 16
"""How many of our settings use the profile; the others leave it out, and lie twice as far apart."""

Entrant: TypeAlias = Callable[[Workload, Rules], Ledger]


def static_peak(load: Workload, rules: Rules, known_days: int) -> Ledger:
    """As many replicas at all times as shares of the first days' largest rate need."""
    shares = np.geomspace(0.4, 4, SETTINGS).tolist()
    return run(load, policies.static_peak(load, shares, known_days=known_days), [0.0] * SETTINGS, rules)


def hpa(load: Workload, rules: Rules) -> Ledger:
    """8 targets, and the metric as it is, or averaged over one or three minutes."""
    targets = np.linspace(0.9, 0.1, 8).tolist()
    return run(load, policies.hpa_in_flight(targets, (30, 60, 180)), [HPA_STABILIZATION_S] * SETTINGS, rules)


def keda(load: Workload, rules: Rules) -> Ledger:
    """4 targets, 6 sizes of the cron."""
    targets, crons = _columns((0.9, 0.7, 0.5, 0.3), (0.7, 1.0, 1.3, 1.7, 2.2, 3.0))
    policy = policies.keda_cron(load, targets, crons, start_s=rules.start_s)
    return run(load, policy, [HPA_STABILIZATION_S] * SETTINGS, rules)


def rate_reactive(load: Workload, rules: Rules) -> Ledger:
    """6 margins, two and five minutes of arrivals, both stabilizations."""
    stabilizations, windows, margins = _columns(STABILIZATIONS_S, (120, 300), (1.05, 1.2, 1.5, 2.0, 3.0, 5.0))
    return run(load, policies.rate_reactive(load, margins, [int(s) for s in windows]), stabilizations, rules)


def cron_rate(load: Workload, rules: Rules) -> Ledger:
    """4 margins, 3 sizes of the cron, both stabilizations."""
    stabilizations, margins, crons = _columns(STABILIZATIONS_S, (1.05, 1.3, 1.7, 2.5), (0.7, 1.0, 1.4))
    return run(load, policies.cron_rate(load, margins, crons, start_s=rules.start_s), stabilizations, rules)


def schedule_alone(load: Workload, rules: Rules) -> Ledger:
    """24 margins on the learned profile."""
    margins = np.geomspace(0.7, 8, SETTINGS).tolist()
    return run(load, policies.schedule_alone(load, margins, start_s=rules.start_s), [0.0] * SETTINGS, rules)


def knative_like(load: Workload, rules: Rules) -> Ledger:
    """8 targets, 3 thresholds of panic."""
    targets, panics = _columns(np.linspace(0.9, 0.1, 8).tolist(), (1.3, 1.6, 2.0))
    return run(load, policies.knative_like(targets, panics), [HPA_STABILIZATION_S] * SETTINGS, rules)


def foresight(load: Workload, rules: Rules) -> Ledger:
    """16 prices of a miss, and 8 without the profile."""
    known = [
        learn(
            load,
            start_s=rules.start_s,
            wait_limit_s=rules.wait_limit_s,
            prices=np.geomspace(LEAST_PRICE, MOST_PRICE, settings).tolist(),
            profiled=profiled,
        )
        for settings, profiled in ((PROFILED, True), (SETTINGS - PROFILED, False))
    ]
    return run(load, policies.foresighted(*known), [OUR_STABILIZATION_S] * SETTINGS, rules)


BASELINES: Mapping[str, Entrant] = {
    "HPA in-flight": hpa,
    "KEDA cron + in-flight": keda,
    "rate-reactive": rate_reactive,
    "cron + rate": cron_rate,
    "schedule alone": schedule_alone,
    "AIBrix-like": knative_like,
}


def _columns(*values: Sequence[float]) -> list[list[float]]:
    """Every combination of the values, the last ones changing fastest, as one column for each."""
    return [list(column) for column in zip(*product(*values), strict=True)]
