"""What Prometheus answers: an instant vector, read in small pieces, or one series over time.

In: the body of an answer. Out: its elements, or `NoReading` with a reason. A vector of thousands of pods has
megabytes; decoded at once it would hold the interpreter, so it is decoded window by window, each within a few
milliseconds. Runs in a thread of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from servingplan.clients.bounded import Answer
from servingplan.clients.engine_series import NoReading
from servingplan.planning.reasons import Reason

WINDOW_CHARACTERS = 64 * 1024
"""No element of a vector comes near this; one that is larger is not one of ours."""

ENVELOPE_CHARACTERS = 256 * 1024
"""Everything of an answer but its elements: status, warnings, statistics."""

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading an answer raises that is not what it should be."""

_RESULT = re.compile(r'"result"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_SHOWN_CHARACTERS = 300
_LATER = frozenset({"timeout", "canceled", "unavailable", "too_many_requests"})
"""Kinds of error that pass by themselves. The others (a query that is refused, an internal error) need a person."""

_HARMLESS = "PromQL info"
"""How versions before `infos` existed begin a warning that only advises on the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element of a vector. evaluated_s: the evaluation's time in Unix seconds, the same for all elements."""

    labels: Mapping[str, str]
    evaluated_s: float
    value: float


def read_vector(answer: Answer, *, what: str) -> Iterator[Element]:
    """The elements of an answer, one after the other, so that they need not all be held.

    Raises `NoReading`, at the end at the latest: refused, incomplete, or no vector. `infos` say nothing of it.
    """
    text = _text(answer, what)
    found = _RESULT.search(text)
    if answer.status != 200 or found is None or found.end() > ENVELOPE_CHARACTERS:
        raise _failed(text[:ENVELOPE_CHARACTERS], answer, what)
    try:
        end = yield from _elements(text, found.end())
        _check_envelope(json.loads(text[: found.end()] + text[end : end + ENVELOPE_CHARACTERS]), what)
    except _UNREADABLE as error:
        raise _cut_off("a vector", what, error) from error


def read_series(answer: Answer, *, what: str) -> list[tuple[float, float]]:
    """The values of the one series of a range query with their times in Unix seconds; none where there is no series.

    Raises `NoReading`: refused, incomplete, several series, or none at all of what a range query gives.
    """
    text = _text(answer, what)
    if answer.status != 200:
        raise _failed(text[:ENVELOPE_CHARACTERS], answer, what)
    try:
        envelope = json.loads(text)
        _check_envelope(envelope, what, kind="matrix")
        (series,) = envelope["data"]["result"] or ({"values": ()},)
        return [(float(at), float(value)) for at, value in series["values"]]
    except _UNREADABLE as error:
        raise _cut_off("a series", what, error) from error


def _text(answer: Answer, what: str) -> str:
    """The body of an answer. Raises `NoReading` where it is no JSON."""
    if answer.content_type != "application/json":
        raise _unlike_prometheus(answer, what)
    return answer.body.decode("utf-8", "replace")


def _elements(text: str, start: int) -> Generator[Element, None, int]:
    """All elements of the array that begins at `start`; returns where its closing bracket is."""
    while True:
        at = _between(text, start)
        if text.startswith("]", at):
            return at
        used = 0
        for raw, used in _decoded(text[at : at + WINDOW_CHARACTERS]):  # noqa: B007  how far it came is needed after it
            yield _element(raw)
        if not used:
            raise ValueError(f"no element of a vector at character {at}: {text[at : at + 40]!r}")
        start = at + used


def _decoded(window: str) -> Iterator[tuple[Any, int]]:
    """The elements that lie wholly in the window, with where each one ends."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(window) and window[at] != "]":
        try:
            element, end = decoder.raw_decode(window, at)
        except ValueError:
            return
        yield element, end
        at = _between(window, end)


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


def _element(raw: Any) -> Element:
    evaluated_s, value = raw["value"]
    labels = {str(label): str(text) for label, text in raw["metric"].items()}
    return Element(labels=labels, evaluated_s=float(evaluated_s), value=float(value))


def _check_envelope(envelope: Any, what: str, *, kind: str = "vector") -> None:
    if envelope["status"] != "success" or envelope["data"]["resultType"] != kind:
        raise ValueError(f"status {envelope['status']}, {envelope['data'].get('resultType')}")
    warnings = [str(text) for text in envelope.get("warnings") or () if not str(text).startswith(_HARMLESS)]
    if warnings:
        said = "; ".join(warnings)[:_SHOWN_CHARACTERS]
        raise NoReading(Reason.METRICS_INCOMPLETE, f"{what} warns that its answer is not complete: {said}")


def _failed(text: str, answer: Answer, what: str) -> NoReading:
    """An error as Prometheus reports one, or as a proxy before it does."""
    try:
        parsed = json.loads(text)
        kind, said = str(parsed.get("errorType", "")), str(parsed.get("error", ""))[:_SHOWN_CHARACTERS]
    except (ValueError, AttributeError, RecursionError):
        return _unlike_prometheus(answer, what)
    if not kind:
        return _unlike_prometheus(answer, what)
    message = f"{what} answered {answer.status}: {kind} {said}".rstrip()
    if kind in _LATER or (answer.status >= 500 or answer.status == 429):
        return NoReading(Reason.METRICS_UNREACHABLE, message)
    return NoReading(Reason.METRICS_REFUSED, message)


def _cut_off(kind: str, what: str, error: Exception) -> NoReading:
    message = f"{what} answered with {kind} that cannot be read ({error}); was it cut off?"
    return NoReading(Reason.METRICS_INVALID, message)


def _unlike_prometheus(answer: Answer, what: str) -> NoReading:
    """An answer that is no JSON, or another JSON. Its status decides what is to do."""
    message = f"{what} answered {answer.status} with {answer.content_type}: {answer.excerpt}"
    if answer.status >= 500 or answer.status == 429:
        return NoReading(Reason.METRICS_UNREACHABLE, message)
    if answer.status in (401, 403, 407):
        return NoReading(Reason.METRICS_REFUSED, f"{message}. Check the credentials that the source names")
    if answer.status >= 400:
        return NoReading(Reason.METRICS_REFUSED, f"{message}. Is the source's url the address of a Prometheus?")
    return NoReading(Reason.METRICS_INVALID, f"{message}. Is the source's url the address of a Prometheus?")
