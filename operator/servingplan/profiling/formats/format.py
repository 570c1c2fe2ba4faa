"""What a format is: a name, how it is recognised, and its reader; and what all readers share.

In: the lines of one file. Out: what was logged. What is wrong with a line goes to `Seen`, and never ends a reader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from servingplan.errors import InputError
from servingplan.profiling.instants import Instants, StartMissing
from servingplan.profiling.request import Logged

SHOWN_LINES = 5
"""Broken lines that are named; beyond, they are counted."""

_JUDGED_LINES = 1000
"""After so many lines a format that is plainly wrong ends."""


class Passed(StrEnum):
    """Why a line that is whole does not count."""

    OTHER_LINE = "lines of other kinds"
    OTHER_PATH = "requests that ask for no tokens"
    REFUSED = "requests refused with 4xx before an engine saw them"
    OTHER_SPAN = "spans that are no request to the server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A line that could not be read. line: from 1."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """One file as it was read. passed: lines that are whole and do not count, by why."""

    file: str
    format: str
    title: str
    lines: int
    requests: int
    broken: int
    examples: tuple[Broken, ...]
    passed: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Seen:
    """What a reader met in one file beside requests."""

    file: str
    lines: int = 0
    broken: int = 0
    examples: list[Broken] = field(default_factory=list)
    passed: Counter[Passed] = field(default_factory=Counter)

    def breaks(self, line: int, error: Exception) -> None:
        """A line that cannot be read, and why. Raises WrongFormat where most lines cannot."""
        self.broken += 1
        if len(self.examples) < SHOWN_LINES:
            self.examples.append(Broken(file=self.file, line=line, why=_why(error)))
        if line >= _JUDGED_LINES and self.broken > line / 2:
            raise WrongFormat


class WrongFormat(Exception):
    """Most of the first lines cannot be read: the rest, however long, would not be either."""


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How lines are to be read. columns: names stated for what a column means. year: of times that have none.

    paths: of requests that count, in access logs.
    """

    instants: Instants
    columns: Mapping[str, str]
    paths: re.Pattern[str]
    year: int | None


Reader = Callable[[Iterable[str], Context, Seen], Iterator[Logged]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format. recognises: whether these are its first lines (without empty ones). read: its reader."""

    name: str
    title: str
    recognises: Callable[[Sequence[str]], bool]
    read: Reader


def by_line(parsing: Callable[[Context], Callable[[str], Logged | Passed]]) -> Reader:
    """A reader of a format with one request a line. parsing: gives what reads one; it raises ValueError or KeyError."""

    def read(lines: Iterable[str], context: Context, seen: Seen) -> Iterator[Logged]:
        parse = parsing(context)
        for number, line in enumerate(lines, start=1):
            seen.lines = number
            if not line.strip():
                continue
            try:
                found = parse(line)
            except (StartMissing, InputError):
                raise
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                seen.breaks(number, error)
                continue
            if isinstance(found, Passed):
                seen.passed[found] += 1
            else:
                yield found

    return read


def passed(context: Context, *, path: str, status: int | None, method: str = "POST") -> Passed | None:
    """Why a request of an access log does not count; None where it does.

    Demand is what arrives, served or not: 408, 429, 499 (the client went away) and 5xx count.
    """
    if method != "POST" or not context.paths.search(path):
        return Passed.OTHER_PATH
    if status is not None and 400 <= status < 500 and status not in _ASKED_FOR_TOKENS:
        return Passed.REFUSED
    return None


_ASKED_FOR_TOKENS = frozenset({408, 429, 499})
