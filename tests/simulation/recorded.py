"""Tenants for tests of the simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servingplan.simulation.traces import Tenants
from servingplan.simulation.workload import Workload, workload

STEP_S = 600
STEPS_PER_DAY = 144


def tenants(rates: object, *, gaps: Sequence[int] = ()) -> Tenants:
    """Tenants of these rates, by [step, tenant]; `gaps`: the steps in which nothing was collected."""
    table = np.asarray(rates, float)
    counted = np.ones(table.shape, bool)
    counted[list(gaps)] = False
    names = tuple(f"t{i}" for i in range(table.shape[1]))
    return Tenants(names=names, rates=table, counted=counted, step_s=STEP_S)


def daily(days: int, *, quiet: float = 2.0, busy: float = 10.0) -> Tenants:
    """One tenant that is busy from 8 to 18 o'clock on each day."""
    day = np.full(STEPS_PER_DAY, quiet)
    day[48:108] = busy
    return tenants(np.tile(day, days)[:, None])


def load(some: Tenants, *, peak: float = 10.0, seeds: Sequence[int] = (1,), dispersion: float = 1e-6) -> Workload:
    """Their workload, by default without bursts."""
    return workload(some, peak=peak, seeds=seeds, dispersion=dispersion, days_off=())
