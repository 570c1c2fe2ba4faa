"""What a contest shows: costs at equal attainment, with how sure they are over tenants.

In: the `Outcome` of a case and the tenants that are looked at. Out: figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.policy.contest import TARGET, Outcome, Standing
from benchmarks.policy.entrants import OURS
from numpy.typing import NDArray

from servingplan.simulation.curves import cost_at, frontier, interval

Places = NDArray[np.int64]

LEVELS = (0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5)
"""Attainments at which policies are compared where they cannot all reach the target, the highest that all reach."""

MISS_PRICES = np.geomspace(1e-2, 1e8, 200)
"""Replica-hours for all requests of a tenant: each gives the cheapest setting of each tenant, in hindsight."""

KEDA = "KEDA cron + in-flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its interval of 95 % over tenants; NaN where it was not reached."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy, on the scored days, with the settings that tuning left.

    best: the highest mean attainment of any setting. cost: over the clairvoyant fleet at the target. rising, worst:
    attainment in the first 15 minutes of rises, and of the worst tenant, at the target or at the best. hindsight: cost
    over the clairvoyant fleet with each tenant's own setting, chosen afterwards. ours_rising: of foresight for the
    same hours. worst_hour, split: the least attainment of any hour of the week, over
    tenants, and shares of hours, at the setting nearest to the target.
    """

    best: float
    cost: Figure
    rising: float
    worst: float
    worst_hour: float
    hindsight: Figure
    ours_rising: float
    split: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The cost of foresight over a baseline's, each tenant's setting in hindsight, at an attainment both reach."""

    name: str
    attainment: float
    ratio: Figure


def rows(outcome: Outcome, places: Places, *, seed: int) -> dict[str, Row]:
    """All policies on some tenants."""
    return {name: _row(outcome, standing, places, seed) for name, standing in outcome.standings.items()}


def tuned(standing: Standing, places: Places) -> NDArray[np.int64]:
    """The settings that no other one of the policy beat on the days to tune on, for these tenants together."""
    attainment = standing.tuning_attainment[:, places].mean(axis=1)
    return frontier(attainment, standing.tuning_hours[:, places].sum(axis=1))


def _row(outcome: Outcome, standing: Standing, places: Places, seed: int) -> Row:
    kept = tuned(standing, places)
    attainment, hours, reference = standing.attainment[kept], standing.hours[kept], outcome.reference

    def cost(some: Places) -> float:
        return cost_at(attainment[:, some].mean(axis=1), hours[:, some].sum(axis=1), TARGET) / reference[some].sum()

    means = attainment[:, places].mean(axis=1)
    nearest = int(np.argmin(np.abs(means - TARGET)))
    return Row(
        best=float(means.max()),
        cost=_figure(lambda draw: cost(places[draw]), len(places), seed),
        rising=_along(means, np.nanmean(standing.rising[kept][:, places], axis=1)),
        worst=_along(means, attainment[:, places].min(axis=1)),
        worst_hour=float(np.nanmin(np.nanmean(standing.weekly[:, kept[nearest]][:, places], axis=1))),
        hindsight=_hindsight(outcome, standing, places, seed),
        ours_rising=_ours_for(outcome, places, hours[nearest, places].sum()),
        split={name: float(share[kept][nearest]) for name, share in standing.split.items()},
    )


def _figure(figure: Callable[[Places], float], units: int, seed: int) -> Figure:
    low, high = interval(figure, units, seed=seed)
    return Figure(value=figure(np.arange(units)), low=low, high=high)


def _along(attainment: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Another figure where mean attainment is the target, on the line between settings; at the best if it is lower."""
    order = np.argsort(attainment)
    return float(np.interp(TARGET, attainment[order], other[order]))


def _ours_for(outcome: Outcome, places: Places, hours: float) -> float:
    """The attainment of foresight in the first minutes of rises for so many replica-hours."""
    ours = outcome.standings[OURS]
    kept = tuned(ours, places)
    spent = ours.hours[kept][:, places].sum(axis=1)
    rising = np.nanmean(ours.rising[kept][:, places], axis=1)
    order = np.argsort(spent)
    return float(np.interp(hours, spent[order], rising[order]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """Each tenant's own setting, by [price, tenant]."""

    attainment: NDArray[np.float64]
    hours: NDArray[np.float64]

    def cost(self, some: Places, wanted: float) -> float:
        """Replica-hours of these tenants together at a mean attainment."""
        return cost_at(self.attainment[:, some].mean(axis=1), self.hours[:, some].sum(axis=1), wanted)


def hindsight(standing: Standing) -> Hindsight:
    """The settings that cost + price x misses would have chosen for each tenant on the scored days themselves."""
    lanes = np.arange(standing.hours.shape[1])
    places = [np.argmin(standing.hours + price * (1 - standing.attainment), axis=0) for price in MISS_PRICES]
    return Hindsight(
        attainment=np.stack([standing.attainment[place, lanes] for place in places]),
        hours=np.stack([standing.hours[place, lanes] for place in places]),
    )


def _hindsight(outcome: Outcome, standing: Standing, places: Places, seed: int) -> Figure:
    best = hindsight(standing)

    def cost(draw: Places) -> float:
        return best.cost(places[draw], TARGET) / outcome.reference[places[draw]].sum()

    return _figure(cost, len(places), seed)


def against(outcome: Outcome, places: Places, names: Sequence[str], *, seed: int) -> list[Against]:
    """The cost of foresight over that of each baseline."""
    ours = hindsight(outcome.standings[OURS])
    found = []
    for name in names:
        theirs = hindsight(outcome.standings[name])
        level = next((a for a in LEVELS if _reach(ours, places, a) and _reach(theirs, places, a)), LEVELS[-1])

        def ratio(draw: Places, level: float = level, theirs: Hindsight = theirs) -> float:
            return ours.cost(places[draw], level) / theirs.cost(places[draw], level)

        found.append(Against(name=name, attainment=level, ratio=_figure(ratio, len(places), seed)))
    return found


def _reach(best: Hindsight, places: Places, level: float) -> bool:
    return bool(np.isfinite(best.cost(places, level)))


def baselines(outcome: Outcome) -> list[str]:
    """The names of all policies but ours."""
    return [name for name in outcome.standings if name != OURS]
