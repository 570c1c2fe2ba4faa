"""JSON lines: gateways' structured logs, and Mooncake traces. One object a line; nested names are joined by dots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from servingplan.profiling.formats import columns
from servingplan.profiling.formats.format import Context, Passed, passed
from servingplan.profiling.request import Logged, Request

_MILLISECONDS = 1e-3
_NESTED = frozenset({"usage"})
"""Objects in which names are looked for by themselves; others are named by --column a.b=..."""


def parsing(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line. Which name means what is found on the first line that is an object, and again for other names."""
    found_for: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
    instants, stated = context.instants, context.columns

    def parse(line: str) -> Logged | Passed:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise TypeError("it is no JSON object")
        names = tuple(entry)
        where = found_for.get(names)
        if where is None:
            found = columns.found(_names(entry, frozenset(stated.values())), stated)
            where = found_for[names] = {meaning: tuple(name.split(".")) for meaning, name in found.items()}
        if "path" in where and (why := _passed(entry, where, context)) is not None:
            return why
        at = _at(entry, where["time"])
        return Request(
            instants.of_number(at) if isinstance(at, int | float) else instants.of_text(str(at)),
            columns.tokens(_at(entry, where["input"])) if "input" in where else None,
            columns.tokens(_at(entry, where["output"])) if "output" in where else None,
            _text(entry, where, "tenant"),
            _text(entry, where, "priority"),
            (_at(entry, where["blocks"]) or ()) if "blocks" in where else (),
        )

    return parse


def mooncake(context: Context) -> Callable[[str], Logged | Passed]:
    """Reads a line of a Mooncake trace: milliseconds from its start, lengths, hashes of blocks."""

    def parse(line: str) -> Logged | Passed:
        entry = json.loads(line)
        return Request(
            context.instants.since_start(float(entry["timestamp"]) * _MILLISECONDS),
            columns.tokens(entry["input_length"]),
            columns.tokens(entry.get("output_length")),
            "",
            "",
            entry.get("hash_ids") or (),
        )

    return parse


def _names(entry: Mapping[str, Any], stated: frozenset[str]) -> Iterator[str]:
    for name, value in entry.items():
        if name in _NESTED and isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name
    for name in stated:
        if "." in name and _at(entry, tuple(name.split("."))) is not None:
            yield name


def _at(entry: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if not isinstance(entry, dict):
            return None
        entry = entry.get(name)
    return entry


def _text(entry: Mapping[str, Any], where: Mapping[str, tuple[str, ...]], meaning: str) -> str:
    value = _at(entry, where[meaning]) if meaning in where else None
    return "" if value is None else str(value)


def _passed(entry: Mapping[str, Any], where: Mapping[str, tuple[str, ...]], context: Context) -> Passed | None:
    status = _text(entry, where, "status")
    return passed(
        context,
        path=_text(entry, where, "path"),
        status=int(status) if status else None,
        method=_text(entry, where, "method") or "POST",
    )
