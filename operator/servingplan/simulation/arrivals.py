"""Requests inside a recorded step: drawn, because a rate over ten minutes does not say when they came.

In: rates by step and tenant, seeds. Out: requests by [slice, tenant, seed]. A slice's count is Gamma distributed with
the step's rate and a given dispersion, then all of a step are scaled so that its recorded total holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.windows import Array

SLICE_S = 30
"""The step of virtual time, and how often policies are asked: the polling interval of KEDA, two of an HPA."""

DAY_S = 24 * 3600

DISPERSION = 3.0
"""Variance over mean of requests in `SLICE_S`, inside ten minutes: 4.3 in Azure's conversations of 2023, 2.0 in
Mooncake's of 2024 (both within one hour)."""

_LEAST_SHAPE = 1e-3
"""So that a slice of a step without requests has a distribution."""


def arrivals(rates: NDArray[np.float64], step_s: int, *, seeds: Sequence[int], dispersion: float) -> Array:
    """Requests in each slice. rates: requests/s by [step, tenant]; step_s: a multiple of `SLICE_S`."""
    per_step = step_s // SLICE_S
    shape = np.maximum(rates * (SLICE_S / dispersion), _LEAST_SHAPE)
    result = np.empty((len(rates) * per_step, rates.shape[1], len(seeds)), np.float32)
    for k, seed in enumerate(seeds):
        drawn = np.random.default_rng(seed).standard_gamma(np.repeat(shape[:, None], per_step, axis=1))
        total = np.maximum(drawn.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        result[:, :, k] = (drawn / total * (rates * step_s)[:, None]).reshape(len(result), -1)
    return result
