"""Cost against attainment: what a policy costs at an attainment, between the settings that were run.

In: attainment and cost of settings. Out: a cost by interpolation, and how sure it is over tenants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 1000
"""The 5 % quantile of so many lies within one percentage point of the true one."""

CONFIDENCE = 0.95
"""Two-sided, of a bootstrap interval."""


def frontier(attainment: Floats, cost: Floats) -> NDArray[np.int64]:
    """The settings that no other one beats in both, in order of attainment."""
    order = np.lexsort((-attainment, cost))
    kept: list[int] = []
    for place in order:
        if not kept or attainment[place] > attainment[kept[-1]]:
            kept.append(int(place))
    return np.array(kept, np.int64)


def cost_at(attainment: Floats, cost: Floats, wanted: float) -> float:
    """The cost at the wanted attainment, on the line between the two settings around it; NaN where none reaches it.

    Where even the cheapest setting attains more, its cost.
    """
    if np.isnan(attainment).any():
        return float("nan")
    best = frontier(attainment, cost)
    if attainment[best[-1]] < wanted:
        return float("nan")
    return float(np.interp(wanted, attainment[best], cost[best]))


def interval(
    figure: Callable[[NDArray[np.int64]], float], units: int, *, seed: int, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """A bootstrap interval of a figure over so many units (tenants): Efron's percentile method.

    figure: from the units that were drawn, with repetition. Draws where it does not exist count as infinite.
    """
    draws = np.random.default_rng(seed).integers(units, size=(resamples, units))
    found = [figure(draw) for draw in draws]
    ranked = np.sort(np.nan_to_num(np.array(found), nan=np.inf))
    edge = (1 - CONFIDENCE) / 2
    low, high = ranked[int(edge * (resamples - 1))], ranked[int(np.ceil((1 - edge) * (resamples - 1)))]
    return float(low), float(high)


def mean_over(values: Floats, groups: Sequence[int] | NDArray[np.int64]) -> Floats:
    """The mean over lanes of each group (the seeds of a tenant), along the last axis; groups count up from 0."""
    member = np.asarray(groups) == np.arange(max(groups) + 1)[:, None]
    return np.stack([values[..., lanes].mean(axis=-1) for lanes in member], axis=-1)
