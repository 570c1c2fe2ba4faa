"""One-sided bounds of a share, from blocks of requests.

In: how many requests each block sent and how many of them met a limit. Out: the share with its 95 % bounds. Requests
within a block wait for each other, so blocks are resampled rather than requests. Pure: the seed comes from outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
"""Of each one-sided bound."""

_Z = 1.6448536269514722
"""Standard deviations below which a normal variable lies with `CONFIDENCE`."""

RESAMPLES = 1000
"""The 5 % quantile of so many lies within one percentage point of the true one."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A share between 0 and 1 with its one-sided bounds."""

    lower: float
    share: float
    upper: float


def share_bounds(sent: Counts, met: Counts, *, seed: int) -> Bounds:
    """The share met / sent and how far it may be from the truth.

    sent, met: by block, at least one request in all. Each bound is the wider of two: the bootstrap over blocks, and
    Wilson's for independent requests, because resampling learns nothing from a few requests without a miss.
    """
    total, good = int(sent.sum()), int(met.sum())
    if total <= 0:
        raise ValueError("a share of no requests")
    low, high = bootstrap(sent, met, seed=seed)
    wilson_low, wilson_high = wilson(good, total)
    return Bounds(lower=min(low, wilson_low), share=good / total, upper=max(high, wilson_high))


def bootstrap(sent: Counts, met: Counts, *, seed: int) -> tuple[float, float]:
    """Both one-sided bounds by resampling whole blocks (Efron's percentile method for a ratio)."""
    blocks = len(sent)
    picks = np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
    requests, good = picks @ sent, picks @ met
    shares = good[requests > 0] / requests[requests > 0]
    low, high = np.quantile(shares, (1 - CONFIDENCE, CONFIDENCE))
    return float(low), float(high)


def wilson(met: int, sent: int) -> tuple[float, float]:
    """Both one-sided bounds of the share met / sent of independent requests.

    (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n); Wilson, JASA 22 (1927).
    """
    share, z2 = met / sent, _Z * _Z
    middle = share + z2 / (2 * sent)
    reach = _Z * math.sqrt(share * (1 - share) / sent + z2 / (4 * sent * sent))
    scale = 1 + z2 / sent
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)
