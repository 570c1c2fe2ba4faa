"""One case of the benchmark, a start time and a peak: all policies on the same requests, and what they are measured by.

In: tenants and a case. Out: the `Standing` of every policy, by [setting, tenant] (the mean of its seeds), on the days
to tune on and on those to score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.policy.entrants import BASELINES, OURS, foresight, static_peak
from numpy.typing import NDArray

from servingplan.simulation.curves import mean_over
from servingplan.simulation.fleet import Ledger, Rules
from servingplan.simulation.reference import clairvoyant, fluid_bound
from servingplan.simulation.scorecard import Period, above_plan, by_hour_of_week, scored
from servingplan.simulation.traces import Tenants
from servingplan.simulation.workload import DAY_S, Workload, workload

Floats = NDArray[np.float64]

TARGET = 0.995
"""Mean attainment at which costs are compared, and each lane's at which the clairvoyant fleet is sized."""

LEARNT_DAYS = 3
"""Days before them only teach: a profile of two days is none. Tuning looks at the rest up to the scored days."""

CORRELATION, MEAN_RATE = 0.5, 0.3
"""A schedule-friendly tenant: correlation with itself a day later, and requests/s, before the scored days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is compared under. start_s: from the decision to the first request. peak: replicas for the largest rate."""

    start_s: int
    peak: int
    seeds: Sequence[int]
    dispersion: float
    days_off: Sequence[int]
    scored: Period


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy on the scored days, by [setting, tenant]; `tuning` on the days before. Hours are replica-hours.

    split: serving, reserve, starting and draining as shares of all hours, by setting. weekly: attainment by hour of
    the week, setting and tenant, NaN where no request came.
    """

    attainment: Floats
    hours: Floats
    rising: Floats
    tuning_attainment: Floats
    tuning_hours: Floats
    split: Mapping[str, Floats]
    weekly: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All of a case. By tenant: clairvoyant and fluid replica-hours, and the share of requests above the profile."""

    case: Case
    names: Sequence[str]
    friendly: NDArray[np.bool_]
    reference: Floats
    bound: Floats
    above: Floats
    standings: Mapping[str, Standing]


def with_requests(tenants: Tenants, period: Period) -> Tenants:
    """Those that have requests on the scored days: attainment of none is nothing."""
    steps = slice(period.first_day * DAY_S // tenants.step_s, period.end_day * DAY_S // tenants.step_s)
    asked = (tenants.rates[steps] * tenants.counted[steps]).sum(axis=0) > 0
    return tenants.some(np.flatnonzero(asked).tolist())


def friendly(tenants: Tenants, period: Period) -> NDArray[np.bool_]:
    """Which tenants a schedule may help, judged by the days before the scored ones alone. Gaps are left out."""
    known, per_day = period.first_day * DAY_S // tenants.step_s, DAY_S // tenants.step_s
    rates, counted = tenants.rates[:known], tenants.counted[:known]
    both = counted[:-per_day] & counted[per_day:]
    found = []
    for i in range(rates.shape[1]):
        first, second = rates[:-per_day, i][both[:, i]], rates[per_day:, i][both[:, i]]
        varies = first.std() > 0 and second.std() > 0
        found.append(varies and np.corrcoef(first, second)[0, 1] >= CORRELATION and rates[:, i].mean() >= MEAN_RATE)
    return np.array(found, bool)


def hold(tenants: Tenants, case: Case, *, tell: Callable[[str], None]) -> Outcome:
    """Run every policy. tell: called with what was done, for people who wait."""
    load = workload(tenants, peak=case.peak, seeds=case.seeds, dispersion=case.dispersion, days_off=case.days_off)
    rules = Rules(start_s=case.start_s)
    reference = clairvoyant(load, rules, case.scored, TARGET)
    standings = {}
    tell("clairvoyant")
    standings["static peak"] = _standing(static_peak(load, rules, case.scored.first_day), load, case)
    for name, entrant in (*BASELINES.items(), (OURS, foresight)):
        standings[name] = _standing(entrant(load, rules), load, case)
        tell(name)
    return Outcome(
        case=case,
        names=tenants.names,
        friendly=friendly(tenants, case.scored),
        reference=mean_over(reference, load.tenants),
        bound=mean_over(fluid_bound(load, case.scored), load.tenants),
        above=mean_over(above_plan(load, case.scored), load.tenants),
        standings=standings,
    )


def _standing(ledger: Ledger, load: Workload, case: Case) -> Standing:
    score = scored(ledger, case.scored)
    before = scored(ledger, Period(first_day=LEARNT_DAYS, end_day=case.scored.first_day))
    hours = score.hours.sum(axis=1)
    parts = {name: getattr(score, name) for name in ("serving", "reserve", "starting", "draining")}
    return Standing(
        attainment=mean_over(score.attainment, load.tenants),
        hours=mean_over(score.hours, load.tenants),
        rising=mean_over(score.rising, load.tenants),
        tuning_attainment=mean_over(np.nan_to_num(before.attainment, nan=1.0), load.tenants),
        tuning_hours=mean_over(before.hours, load.tenants),
        split={name: part.sum(axis=1) / hours for name, part in parts.items()},
        weekly=mean_over(by_hour_of_week(ledger, case.scored), load.tenants),
    )
