"""Means and extremes over windows of time, for arrays whose first axis is time."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float32]
"""Of single precision: a fortnight of all tenants fits into memory, and a replica is a large unit."""

Sums: TypeAlias = NDArray[np.float64]


def running_sums(values: Array) -> Sums:
    """Sums of all values before each instant, one entry more than `values`."""
    sums = np.zeros((len(values) + 1, *values.shape[1:]))
    np.cumsum(values, axis=0, out=sums[1:])
    return sums


def trailing_mean(sums: Sums, window: int) -> Array:
    """The mean of the last `window` values strictly before each instant; of fewer at the beginning, 0 at the first."""
    ends = np.arange(len(sums) - 1)
    starts = np.maximum(ends - window, 0)
    counts = np.maximum(ends - starts, 1)[:, None]
    return ((sums[ends] - sums[starts]) / counts).astype(np.float32)


def coming_mean(sums: Sums, window: int) -> Array:
    """The mean of the `window` values from each instant on; the missing ones at the end count as 0."""
    starts = np.arange(len(sums) - 1)
    ends = np.minimum(starts + window, len(sums) - 1)
    return ((sums[ends] - sums[starts]) / window).astype(np.float32)


def coming_maximum(values: Array, window: int) -> Array:
    """The maximum of the `window` values from each instant on, by doubling: log2(window) passes."""
    result, covered = values.copy(), 1
    while covered < window:
        step = min(covered, window - covered)
        np.maximum(result[:-step], result[step:], out=result[:-step])
        covered += step
    return result


def later(values: Array, steps: int) -> Array:
    """The values `steps` instants later; the last one holds on."""
    return np.concatenate([values[steps:], np.repeat(values[-1:], min(steps, len(values)), axis=0)])[: len(values)]


class SlidingExtreme:
    """The largest or smallest of the last `window` arrays that were pushed, at a constant price per push.

    van Herk, Pattern Recognition Letters 13 (1992): within a block of `window` pushes the running extreme, of the
    block before it the extreme of what is still inside.
    """

    def __init__(self, function: np.ufunc, window: int, shape: tuple[int, ...], beyond: float) -> None:
        """function: np.maximum or np.minimum. beyond: what counts before the first push."""
        self._function, self._window = function, window
        self._block = np.full((window, *shape), beyond, dtype=np.float32)
        self._left = self._block.copy()
        self._running = self._block[0]
        self._position = 0

    def push(self, values: Array) -> Array:
        """Take the newest values, give the extreme of the window that ends with them."""
        position = self._position
        self._block[position] = values
        self._running = self._block[0].copy() if position == 0 else self._function(self._running, values)
        inside = position + 1 < self._window
        extreme: Array = self._function(self._running, self._left[position + 1]) if inside else self._running
        self._position = (position + 1) % self._window
        if self._position == 0:
            self._left = self._function.accumulate(self._block[::-1], axis=0)[::-1].copy()
        return extreme
