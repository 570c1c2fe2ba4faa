"""Rates in steps rather than requests: ServeGen's clients, and tables of tenants in steps of ten minutes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator

from servingplan.errors import InputError, Problem
from servingplan.profiling.formats.csv_lines import peeked
from servingplan.profiling.formats.format import Context, Passed, Seen
from servingplan.profiling.request import Logged, Step

STEP_SECONDS = 600.0
"""Both formats have steps of ten minutes."""

RATE_SUFFIX = "_rps"
_TIME, _GAP = "t_s", "gap"


def servegen(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of a client of ServeGen: seconds from its start, requests/s, and how they vary within the step."""

    def parse(line: str) -> Logged | Passed:
        seconds, rate, _ = line.split(",", 2)
        return _step(context, float(seconds), float(rate))

    return parse


def tenants(lines: Iterable[str], context: Context, seen: Seen) -> Iterator[Logged]:
    """Columns that end in ``_rps``, added up, or the one that is stated; a step with ``gap`` 1 is missing."""
    _, lines = peeked(lines)
    rows = csv.DictReader(lines)
    chosen = [name for name in rows.fieldnames or () if name.endswith(RATE_SUFFIX)]
    if (stated := context.columns.get("rate")) is not None:
        if stated not in chosen:
            message = f"it has no column {stated!r}; there are: {', '.join(chosen)}"
            raise InputError(Problem(path=f"{seen.file}:1", reason="UnknownColumns", message=message))
        chosen = [stated]
    for row in rows:
        seen.lines = rows.line_num
        try:
            rate = None if row.get(_GAP) == "1" else sum(float(row[name]) for name in chosen)
            yield _step(context, float(row[_TIME]), rate)
        except (KeyError, TypeError) as error:
            seen.breaks(rows.line_num, ValueError(f"a column is missing ({error})"))
        except ValueError as error:
            seen.breaks(rows.line_num, error)


def _step(context: Context, seconds: float, rate: float | None) -> Step:
    if rate is not None and not 0 <= rate < float("inf"):
        raise ValueError(f"{rate} is no rate")
    return Step(context.instants.since_start(seconds), STEP_SECONDS, None if rate is None else rate * STEP_SECONDS)
