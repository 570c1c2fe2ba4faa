"""OpenTelemetry spans as OTLP JSON: an export a line, as the collector's file exporter writes, or one document.

vLLM's own span, and a server's by the semantic conventions for generative AI, are requests. Spans of clients describe
the same requests again, so they are read only where they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from servingplan.errors import InputError, Problem
from servingplan.profiling.formats.columns import tokens
from servingplan.profiling.formats.format import Context, Passed, Reader, Seen
from servingplan.profiling.request import Logged, Request

_SERVER, _CLIENT = "server", "client"
_KINDS: Mapping[Any, str] = {2: _SERVER, "SPAN_KIND_SERVER": _SERVER, 3: _CLIENT, "SPAN_KIND_CLIENT": _CLIENT}
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_TENANT = ("enduser.id", "user.id")
_VLLM = "llm_request"
_NANOSECONDS = 1e-9
_LONGEST_DOCUMENT = 256 * 1024 * 1024
"""Characters of a document that is not one a line; longer ones are to be exported by lines."""


def reading(kind: str) -> Reader:
    """A reader of spans of a kind: ``server`` or ``client``."""

    def read(lines: Iterable[str], _: Context, seen: Seen) -> Iterator[Logged]:
        for number, document in _documents(lines, seen):
            for span in _spans(document):
                try:
                    request = _request(span, kind)
                except (ValueError, KeyError, TypeError) as error:
                    seen.breaks(number, error)
                    continue
                if request is None:
                    seen.passed[Passed.OTHER_SPAN] += 1
                else:
                    yield request

    return read


def _documents(lines: Iterable[str], seen: Seen) -> Iterator[tuple[int, Any]]:
    rest = iter(lines)
    for number, line in enumerate(rest, start=1):
        seen.lines = number
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except ValueError as error:
            if number > 1:
                seen.breaks(number, error)
                continue
            yield 1, _whole(line, rest, seen)
            return


def _whole(first: str, rest: Iterator[str], seen: Seen) -> Any:
    """A document over several lines."""
    parts, length = [first], len(first)
    for line in rest:
        seen.lines += 1
        parts.append(line)
        length += len(line)
        if length > _LONGEST_DOCUMENT:
            raise _unusable(seen.file, "one document is longer than 256 MiB: export it by lines")
    try:
        return json.loads("".join(parts))
    except ValueError as error:
        raise _unusable(seen.file, f"it is no JSON: {error}") from error


def _unusable(file: str, message: str) -> InputError:
    return InputError(Problem(path=file, reason="InvalidSpans", message=message))


def _spans(document: Any) -> Iterator[Mapping[str, Any]]:
    exports = document if isinstance(document, list) else [document]
    for export in exports:
        for resource in _objects(export, "resourceSpans"):
            for scope in (*_objects(resource, "scopeSpans"), *_objects(resource, "instrumentationLibrarySpans")):
                yield from _objects(scope, "spans")


def _objects(parent: Any, name: str) -> list[Mapping[str, Any]]:
    found = parent.get(name) if isinstance(parent, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _request(span: Mapping[str, Any], kind: str) -> Request | None:
    attributes = {each["key"]: _value(each.get("value")) for each in _objects(span, "attributes")}
    given, answered = _first(attributes, _INPUT), _first(attributes, _OUTPUT)
    if (given is None and answered is None and span.get("name") != _VLLM) or _KINDS.get(span.get("kind")) != kind:
        return None
    return Request(
        int(span["startTimeUnixNano"]) * _NANOSECONDS,
        tokens(given),
        tokens(answered),
        _first(attributes, _TENANT) or "",
    )


def _value(wrapped: Any) -> Any:
    """``{"intValue": "600"}`` is ``"600"``."""
    return next(iter(wrapped.values()), None) if isinstance(wrapped, dict) else None


def _first(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)
