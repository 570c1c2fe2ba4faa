"""Rates in steps rather than requests: ServeGen's clients, and tables of tenants in equal steps.

`RateTable` reads such a table for everybody: here as a log, and column by column for ``benchmarks/policy``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from servingplan.errors import InputError, Problem
from servingplan.profiling.formats.csv_lines import peeked
from servingplan.profiling.formats.format import Context, Passed, Seen
from servingplan.profiling.request import Logged, Step

STEP_SECONDS = 600.0
"""ServeGen's steps."""

RATE_SUFFIX = "_rps"
_TIME, _GAP = "t_s", "gap"


def servegen(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of a client of ServeGen: seconds from its start, requests/s, and how they vary within the step."""

    def parse(line: str) -> Logged | Passed:
        seconds, rate, _ = line.split(",", 2)
        return _step(context, float(seconds), STEP_SECONDS, _checked(rate))

    return parse


class RateRow(NamedTuple):
    """One step: when it begins, in seconds from the start; requests/s by column, None where nothing was recorded."""

    seconds: float
    rates: Sequence[float] | None


class RateTable:
    """A table with the columns ``t_s``, perhaps ``gap`` (1 while nothing was recorded), and rates in ``<name>_rps``.

    columns: the names of the rates. line: the one that was read last, from 1. Iterate once, over rows for `parsed`.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._rows = csv.DictReader(lines)
        self.columns = tuple(name for name in self._rows.fieldnames or () if name.endswith(RATE_SUFFIX))

    @property
    def line(self) -> int:
        """The line that was read last, from 1."""
        return self._rows.line_num

    def __iter__(self) -> Iterator[dict[str, str]]:
        """The rows as they are written."""
        return self._rows

    @staticmethod
    def parsed(row: dict[str, str], columns: Sequence[str]) -> RateRow:
        """A row with the rates of some columns. Raises ValueError for what is no number, or no rate."""
        try:
            seconds = float(row[_TIME])
            rates = None if row.get(_GAP) == "1" else [_checked(row[name]) for name in columns]
        except (KeyError, TypeError) as error:
            raise ValueError(f"a column is missing ({error})") from error
        return RateRow(seconds, rates)


def tenants(lines: Iterable[str], context: Context, seen: Seen) -> Iterator[Logged]:
    """The rates of all columns, added up, or of the one that is stated. A step is as long as the first one."""
    _, lines = peeked(lines)
    table = RateTable(lines)
    steps = _Steps(context)
    chosen = _chosen(table, context, seen)
    for row in table:
        seen.lines = table.line
        try:
            seconds, rates = table.parsed(row, chosen)
            yield from steps.after(seconds, None if rates is None else sum(rates))
        except ValueError as error:
            seen.breaks(table.line, error)
    yield from steps.last()


def _chosen(table: RateTable, context: Context, seen: Seen) -> Sequence[str]:
    stated = context.columns.get("rate")
    if stated is None:
        return table.columns
    if stated not in table.columns:
        message = f"it has no column {stated!r}; there are: {', '.join(table.columns)}"
        raise InputError(Problem(path=f"{seen.file}:1", reason="UnknownColumns", message=message))
    return [stated]


class _Steps:
    """Steps whose length is known only once the second one begins."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._length: float | None = None
        self._first: tuple[float, float | None] | None = None

    def after(self, seconds: float, rate: float | None) -> Iterator[Step]:
        """What is known with one more step. Raises ValueError where it does not follow those before it."""
        if self._length is not None:
            yield self._step(seconds, rate)
        elif self._first is None:
            self._first = (seconds, rate)
        elif seconds <= self._first[0]:
            raise ValueError(f"{_TIME} does not go up")
        else:
            self._length = seconds - self._first[0]
            yield self._step(*self._first)
            yield self._step(seconds, rate)

    def last(self) -> Iterator[Step]:
        """The only step, where there is no second one to tell its length."""
        if self._length is None and self._first is not None:
            self._length = STEP_SECONDS
            yield self._step(*self._first)

    def _step(self, seconds: float, rate: float | None) -> Step:
        return _step(self._context, seconds, self._length or STEP_SECONDS, rate)


def _checked(text: str) -> float:
    rate = float(text)
    if not 0 <= rate < float("inf"):
        raise ValueError(f"{rate} is no rate")
    return rate


def _step(context: Context, seconds: float, length: float, rate: float | None) -> Step:
    return Step(context.instants.since_start(seconds), length, None if rate is None else rate * length)
