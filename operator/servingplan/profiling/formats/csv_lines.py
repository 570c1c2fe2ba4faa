"""CSV with a header: gateways' exports, the Azure and BurstGPT traces, and whatever names its columns."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from servingplan.errors import InputError, Problem
from servingplan.profiling.formats import columns
from servingplan.profiling.formats.format import Context, Passed, Seen, passed
from servingplan.profiling.instants import StartMissing
from servingplan.profiling.request import Logged, Request

_DELIMITERS = ",;\t|"


def read(lines: Iterable[str], context: Context, seen: Seen) -> Iterator[Logged]:
    """Requests by the columns that the header names. Raises InputError where it names no time."""
    first, lines = peeked(lines)
    rows = csv.reader(lines, delimiter=delimiter(first))
    header = next(rows)
    try:
        parse = _parsing(header, context)
    except ValueError as error:
        raise InputError(Problem(path=f"{seen.file}:1", reason="UnknownColumns", message=str(error))) from error
    while True:
        try:
            cells = next(rows)
            seen.lines = rows.line_num
            if not cells:
                continue
            found = parse(cells)
        except StopIteration:
            return
        except StartMissing:
            raise
        except (ValueError, IndexError, csv.Error, OverflowError) as error:
            why = ValueError(f"has {len(cells)} columns, not {len(header)}") if isinstance(error, IndexError) else error
            seen.lines = rows.line_num
            seen.breaks(rows.line_num, why)
            continue
        if isinstance(found, Passed):
            seen.passed[found] += 1
        else:
            yield found


def peeked(lines: Iterable[str]) -> tuple[str, Iterable[str]]:
    """The first line that is not empty, and all lines from it on."""
    rest = iter(lines)
    first = next((line for line in rest if line.strip()), "")
    return first, itertools.chain([first.removeprefix("\ufeff")], rest)


def delimiter(header: str) -> str:
    """What separates the columns of a header; a comma where nothing does."""
    return max(_DELIMITERS, key=header.count)


def _parsing(header: Sequence[str], context: Context) -> Callable[[Sequence[str]], Logged | Passed]:
    names = [name.strip() for name in header]
    where = {meaning: names.index(name) for meaning, name in columns.found(names, context.columns).items()}
    at, tokens, instant = where["time"], columns.tokens, context.instants.of_text
    given, answered = where.get("input"), where.get("output")
    tenant, priority, blocks = where.get("tenant"), where.get("priority"), where.get("blocks")
    status, method, path = where.get("status"), where.get("method"), where.get("path")

    def parse(cells: Sequence[str]) -> Logged | Passed:
        if path is not None:
            why = passed(
                context,
                path=cells[path],
                status=None if status is None or not cells[status] else int(cells[status]),
                method="POST" if method is None else cells[method],
            )
            if why is not None:
                return why
        return Request(
            instant(cells[at]),
            None if given is None else tokens(cells[given]),
            None if answered is None else tokens(cells[answered]),
            "" if tenant is None else cells[tenant],
            "" if priority is None else cells[priority],
            () if blocks is None else cells[blocks].strip("[]").replace(",", " ").split(),
        )

    return parse
