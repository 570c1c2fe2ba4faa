"""Demand as policies and fleets see it: in replicas, by [slice, lane]; a lane is one tenant with one seed.

In: recorded rates of tenants, how many replicas the largest is to be, seeds. Out: a `Workload`. One replica's capacity
is the unit, so that a rate of 3 needs three of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servingplan.planning.past_days import NEED_WINDOWS_S
from servingplan.simulation.arrivals import DAY_S, SLICE_S, arrivals
from servingplan.simulation.traces import Tenants
from servingplan.simulation.windows import Array, Sums, running_sums

__all__ = ["DAY_S", "HOUR_S", "SLICE_S", "WEEK_HOURS", "Workload", "needed", "workload"]

HOUR_S = 3600
WEEK_HOURS = 7 * 24

RISE_SHARE = 1.25
RISE_REPLICAS = 0.5
RISE_BEFORE = 3
"""A rise is a step whose rate is a quarter, and half a replica, above the mean of the `RISE_BEFORE` steps before."""

RISE_S = 900
"""15 minutes from each step that rises are scored apart: that is where people look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Many lanes over the same time.

    demand: in replicas, by [slice, lane]. sums: of demand, by one slice more. counted: 1, and 0 inside gaps of the
    recording. rising: 1 in the first minutes of rises. rates: what was recorded, in replicas, by [step, lane].
    days_off: by day. tenants: each lane's tenant. step_s: seconds of a recorded step.
    """

    demand: Array
    sums: Sums
    counted: Array
    rising: Array
    rates: Array
    days_off: NDArray[np.bool_]
    tenants: NDArray[np.int64]
    step_s: int

    @property
    def slices_per_step(self) -> int:
        """Slices of time in a recorded step."""
        return self.step_s // SLICE_S

    def by_slice(self, by_step: Array) -> Array:
        """What holds for a recorded step, for each of its slices."""
        return np.repeat(by_step, self.slices_per_step, axis=0)


def workload(
    tenants: Tenants, *, peak: float, seeds: Sequence[int], dispersion: float, days_off: Sequence[int]
) -> Workload:
    """Tenants at one size: the largest recorded rate of each is what `peak` replicas serve.

    dispersion: variance over mean of the requests in a slice, inside a recorded step.
    """
    capacity = tenants.rates.max(axis=0) / peak
    counts = arrivals(tenants.rates, tenants.step_s, seeds=seeds, dispersion=dispersion)
    demand = (counts / (capacity[:, None] * SLICE_S)).astype(np.float32).reshape(len(counts), -1)
    rates = np.repeat(tenants.rates / capacity, len(seeds), axis=1).astype(np.float32)
    per_step = tenants.step_s // SLICE_S
    days = np.zeros(-(-len(demand) * SLICE_S // DAY_S), bool)
    days[[day for day in days_off if day < len(days)]] = True
    return Workload(
        demand=demand,
        sums=running_sums(demand),
        counted=np.repeat(np.repeat(tenants.counted, len(seeds), axis=1), per_step, axis=0).astype(np.float32),
        rising=first_minutes_of_rises(rates, per_step),
        rates=rates,
        days_off=days,
        tenants=np.repeat(np.arange(rates.shape[1] // len(seeds)), len(seeds)),
        step_s=tenants.step_s,
    )


def first_minutes_of_rises(rates: Array, slices_per_step: int) -> Array:
    """1 in the slices of the first minutes from each rise on. rates: in replicas, by [step, lane]."""
    slices = np.zeros((len(rates) * slices_per_step, rates.shape[1]), np.float32)
    slices[::slices_per_step] = rises(rates)
    sums = running_sums(slices)
    ends = np.arange(len(slices)) + 1
    starts = np.maximum(ends - RISE_S // SLICE_S, 0)
    return (sums[ends] - sums[starts] > 0).astype(np.float32)


def rises(rates: Array) -> NDArray[np.bool_]:
    """The steps with which a rise begins, of rates in replicas by [step, lane]."""
    sums = running_sums(rates)
    before = (sums[RISE_BEFORE:-1] - sums[: -RISE_BEFORE - 1]) / RISE_BEFORE
    found = np.zeros(rates.shape, bool)
    now = rates[RISE_BEFORE:]
    found[RISE_BEFORE:] = (now >= RISE_SHARE * before) & (now >= before + RISE_REPLICAS)
    return found


def needed(load: Workload, wait_limit_s: float, *, ahead: bool = False) -> Array:
    """The replicas that arrivals of the windows that end at each slice (with `ahead`: begin) need.

    The largest of arrivals(L) / (L + wait) over windows L: what arrives within L may be served until the last of it
    has waited its limit.
    """
    slices = len(load.demand)
    result = np.zeros_like(load.demand)
    for seconds in NEED_WINDOWS_S:
        window = min(seconds // SLICE_S, slices)
        worth = (load.sums[window:] - load.sums[:-window]) * (SLICE_S / (window * SLICE_S + wait_limit_s))
        place = slice(0, slices - window + 1) if ahead else slice(window - 1, None)
        np.maximum(result[place], worth, out=result[place], casting="same_kind")
    return result
