"""Recorded request rates of tenants, as the policies' benchmark compares them.

In: columns that were read. Out: `Tenants`. Rates inside a gap lie on a line between its ends, and nothing is scored
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from servingplan.errors import InputError, Problem
from servingplan.simulation.arrivals import DAY_S, SLICE_S


class UnreadableTrace(InputError):
    """A file of recorded rates that cannot be used; says which, where, and what is expected."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(Problem(path=str(path), reason="UnreadableTrace", message=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenants:
    """Tenants over the same time. rates: requests/s, counted: False inside gaps; both by [step, tenant]."""

    names: Sequence[str]
    rates: NDArray[np.float64]
    counted: NDArray[np.bool_]
    step_s: int

    def some(self, chosen: Sequence[int]) -> Tenants:
        """A selection of them, by position."""
        places = list(chosen)
        return Tenants(
            names=tuple(self.names[i] for i in places),
            rates=self.rates[:, places],
            counted=self.counted[:, places],
            step_s=self.step_s,
        )


def over_gaps(values: NDArray[np.float64], counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The values; inside a gap on a line between its ends, beyond all that was counted as the nearest one.

    counted: which values there are; one at least.
    """
    places = np.arange(len(values))
    return np.interp(places, places[counted], values[counted])


def tenants_of(
    path: Path,
    names: Sequence[str],
    *,
    seconds: NDArray[np.float64],
    rates: NDArray[np.float64],
    counted: NDArray[np.bool_],
) -> Tenants:
    """The checked content of one file: when steps begin, rates by [step, tenant], which steps were recorded.

    Raises UnreadableTrace, naming `path`.
    """
    if len(seconds) < 2:
        raise UnreadableTrace(path, "It needs at least two rows.")
    steps = np.diff(seconds)
    if not np.all(steps == steps[0]) or steps[0] <= 0 or steps[0] % SLICE_S or DAY_S % steps[0]:
        raise UnreadableTrace(path, f"t_s must go up in equal steps that are a multiple of {SLICE_S} and divide a day.")
    if not counted.any():
        raise UnreadableTrace(path, "It is one gap: nothing was collected.")
    return Tenants(
        names=tuple(names),
        rates=np.stack([over_gaps(column, counted) for column in rates.T], axis=1),
        counted=np.repeat(counted[:, None], rates.shape[1], axis=1),
        step_s=int(steps[0]),
    )
