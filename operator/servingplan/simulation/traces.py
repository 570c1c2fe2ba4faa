"""Recorded request rates of tenants, read from a folder.

In: `*.csv` or `*.csv.gz` with the columns `t_s`, `gap` (1 while nothing was collected) and one `<tenant>_rps` each, in
equal steps. Out: `Tenants`. Rates inside a gap lie on a line between its ends, and nothing is scored there.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from servingplan.errors import InputError, Problem
from servingplan.simulation.arrivals import DAY_S, SLICE_S

SUFFIX = "_rps"


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


def read_tenants(folder: Path) -> Tenants:
    """All tenants of a folder, files in order of their names; those without any request are left out.

    A tenant is named by its file (up to `_tenants`) and its column. Raises UnreadableTrace.
    """
    parts = [part for path in sorted(folder.glob("*.csv*")) if (part := _read(path)) is not None]
    if not parts:
        raise UnreadableTrace(folder, f"No CSV file here has the columns t_s, gap and <tenant>{SUFFIX}.")
    if len({(part.step_s, len(part.rates)) for part in parts}) > 1:
        raise UnreadableTrace(folder, "Its files differ in their steps; tenants are compared over the same time.")
    rates = np.concatenate([part.rates for part in parts], axis=1)
    tenants = Tenants(
        names=tuple(name for part in parts for name in part.names),
        rates=rates,
        counted=np.concatenate([part.counted for part in parts], axis=1),
        step_s=parts[0].step_s,
    )
    return tenants.some(np.flatnonzero(rates.max(axis=0) > 0).tolist())


def _read(path: Path) -> Tenants | None:
    """One file; None where its first columns are others, as those of request logs."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows = csv.reader(lines)
            header = next(rows, [])
            if header[:2] != ["t_s", "gap"]:
                return None
            values = np.array(list(rows), dtype=float)
    except (OSError, ValueError, EOFError) as wrong:
        raise UnreadableTrace(path, f"It cannot be read: {wrong}.") from wrong
    if values.ndim != 2 or len(values) < 2 or len(header) < 3:
        raise UnreadableTrace(path, "It needs a column for a tenant and at least two rows.")
    return _tenants(path, header[2:], values)


def _tenants(path: Path, columns: Sequence[str], values: NDArray[np.float64]) -> Tenants:
    """The checked content of one file."""
    steps = np.diff(values[:, 0])
    if not np.all(steps == steps[0]) or steps[0] <= 0 or steps[0] % SLICE_S or DAY_S % steps[0]:
        raise UnreadableTrace(path, f"t_s must go up in equal steps that are a multiple of {SLICE_S} and divide a day.")
    rates, counted = values[:, 2:], values[:, 1] == 0
    if not np.isfinite(rates).all() or (rates < 0).any():
        raise UnreadableTrace(path, "It has a rate that is negative or no number.")
    if not counted.any():
        raise UnreadableTrace(path, "It is one gap: nothing was collected.")
    times = np.arange(len(values))
    filled = np.stack([np.interp(times, times[counted], column[counted]) for column in rates.T], axis=1)
    prefix = path.name.split(".")[0].split("_tenants")[0]
    return Tenants(
        names=tuple(f"{prefix}/{column.removesuffix(SUFFIX)}" for column in columns),
        rates=filled,
        counted=np.repeat(counted[:, None], rates.shape[1], axis=1),
        step_s=int(steps[0]),
    )
