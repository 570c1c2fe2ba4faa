"""How far the mean of some scores may be from the truth.

In: scores between a lowest and a highest value. Out: their mean with one-sided 95 % bounds that hold for few items, and
for items of which none differs. Pure: the seed is fixed, so the same scores have the same bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
"""Of each one-sided bound."""

RESAMPLES = 20_000
"""The 5 % quantile of so many lies within 1.5 % of a standard deviation of the true one."""

_SEED = 0
_AT_ONCE = 2**22
"""Random numbers that are held at a time: 32 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A mean with its one-sided bounds."""

    lower: float
    mean: float
    upper: float


def mean_bounds(values: Sequence[float], *, lowest: float, highest: float) -> Bounds:
    """The mean of the values, each between `lowest` and `highest`, and how far it may be from the truth.

    Values are resampled by the Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981) with one more value, which is
    the lowest possible for the lower bound and the highest for the upper one (Gaffke, Mathematical Methods of
    Statistics 14, 2005). Of right and wrong alone it is Clopper's and Pearson's exact bound; of many values it is the
    normal one. Of no value all that is known is that the mean lies between the lowest and the highest.
    """
    if not values:
        return Bounds(lower=lowest, mean=(lowest + highest) / 2, upper=highest)
    known, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    random = np.random.default_rng(_SEED)
    sums, weights = _resampled(known, counts, random)
    one_more = random.standard_exponential(RESAMPLES)
    low = np.quantile((sums + lowest * one_more) / (weights + one_more), 1 - CONFIDENCE)
    high = np.quantile((sums + highest * one_more) / (weights + one_more), CONFIDENCE)
    return Bounds(lower=float(low), mean=float(known @ counts / counts.sum()), upper=float(high))


def _resampled(
    known: NDArray[np.float64], counts: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weighted sum of the values and the sum of the weights, by resample; a weight is Gamma(its count)."""
    rows = max(1, _AT_ONCE // len(known))
    parts = []
    for begin in range(0, RESAMPLES, rows):
        drawn = random.standard_gamma(counts, size=(min(rows, RESAMPLES - begin), len(known)))
        parts.append((drawn @ known, drawn.sum(axis=1)))
    sums, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sums, weights
