"""Recorded request rates of tenants, read from a folder.

In: `*.csv` or `*.csv.gz`, read as ``servingplan profile`` reads such tables. Out: `Tenants`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from servingplan.profiling.formats.rates import RATE_SUFFIX, RateTable
from servingplan.simulation.traces import Tenants, UnreadableTrace, tenants_of


def read_tenants(folder: Path) -> Tenants:
    """All tenants of a folder, files in order of their names; those without any request are left out.

    A tenant is named by its file (up to `_tenants`) and its column. Raises UnreadableTrace.
    """
    parts = [part for path in sorted(folder.glob("*.csv*")) if (part := _read(path)) is not None]
    if not parts:
        raise UnreadableTrace(folder, f"No CSV file here has the columns t_s, gap and <tenant>{RATE_SUFFIX}.")
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
    """One file; None where it has no column with rates, as logs of requests."""
    line = 1
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            table = RateTable(lines)
            if not table.columns:
                return None
            rows = []
            for row in table:
                line = table.line
                rows.append(table.parsed(row, table.columns))
    except (OSError, EOFError) as wrong:
        raise UnreadableTrace(path, f"It cannot be read: {wrong}.") from wrong
    except ValueError as wrong:
        raise UnreadableTrace(path, f"Line {line}: {wrong}.") from wrong
    prefix = path.name.split(".")[0].split("_tenants")[0]
    names = [f"{prefix}/{column.removesuffix(RATE_SUFFIX)}" for column in table.columns]
    nothing = [0.0] * len(names)
    return tenants_of(
        path,
        names,
        seconds=np.array([row.seconds for row in rows]),
        rates=np.array([nothing if row.rates is None else row.rates for row in rows]).reshape(-1, len(names)),
        counted=np.array([row.rates is not None for row in rows], bool),
    )
