"""From a document to all its problems of form: what the API server would refuse, in our words.

Place in the flow: before ``resolve``. In: an object of one of the kinds as plain JSON. Out: the document as the API
server would keep it, and its problems. Asks the models (types, limits, unknown fields), the list keys and ``rules``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from servingplan.api import evidence_rules, rules
from servingplan.api.kinds import API_VERSION, SERVING_PLAN, Kind
from servingplan.api.schema import Schema, schema_of, walk, with_defaults
from servingplan.api.wire import PATTERN_WORDS
from servingplan.errors import Problem

RULES = {**rules.RULES, **evidence_rules.RULES}


def as_kept(document: Mapping[str, Any], kind: Kind = SERVING_PLAN) -> dict[str, Any]:
    """The document as the API server would keep it: whole floats as integers, no nulls, defaults set, no status."""
    without_status = {key: value for key, value in document.items() if key != "status"}
    kept: dict[str, Any] = with_defaults(_whole_numbers(without_status), schema_of(kind.model))
    return kept


def _whole_numbers(value: Any) -> Any:
    """``3.0`` is ``3`` in JSON as kubectl sends it."""
    if isinstance(value, Mapping):
        return {str(key): _whole_numbers(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def form_problems(kept: Mapping[str, Any], kind: Kind = SERVING_PLAN) -> tuple[Problem, ...]:
    """Every problem of form of a document that `as_kept` made, in the order of the schema's fields."""
    found = [
        *_kind_problems(kept, kind),
        *_metadata_problems(kept, kind),
        *_model_problems(kept, kind),
        *_duplicates(kept, kind),
        *_broken_rules(kept, kind),
    ]
    return tuple(dict.fromkeys(found))


def _kind_problems(kept: Mapping[str, Any], kind: Kind) -> Iterator[Problem]:
    for field, expected in (("apiVersion", API_VERSION), ("kind", kind.name)):
        if kept.get(field) != expected:
            yield Problem(
                path=field,
                reason="WrongKind",
                message=f"is {kept.get(field)!r}; a {kind.name} has {field}: {expected}",
            )


def _metadata_problems(kept: Mapping[str, Any], kind: Kind) -> Iterator[Problem]:
    metadata = kept.get("metadata")
    if not isinstance(metadata, Mapping):
        yield Problem(
            path="metadata", reason="Required", message=f"is missing: give the {kind.noun} a name and a namespace"
        )
    elif not isinstance(metadata.get("name"), str):
        yield Problem(path="metadata.name", reason="Required", message=f"is missing: give the {kind.noun} a name")


def _model_problems(kept: Mapping[str, Any], kind: Kind) -> Iterator[Problem]:
    body = {key: value for key, value in kept.items() if key not in {"apiVersion", "kind", "metadata"}}
    try:
        kind.model.model_validate_json(json.dumps(body, default=str))
    except ValidationError as error:
        yield from (_worded(detail, kind) for detail in error.errors(include_url=False))


def _duplicates(kept: Mapping[str, Any], kind: Kind) -> Iterator[Problem]:
    for path, value, schema in walk(kept, schema_of(kind.model)):
        if isinstance(value, list):
            yield from _duplicates_in(value, schema, path)


def _duplicates_in(items: list[Any], schema: Schema, path: str) -> Iterator[Problem]:
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys and schema.get("x-kubernetes-list-type") != "set":
        return
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        key = item.get(keys[0]) if keys and isinstance(item, Mapping) else item
        if isinstance(key, str | int) and (before := first.setdefault(str(key), index)) != index:
            where, what = (f".{keys[0]}", f"the {keys[0]}") if keys else ("", "the value")
            yield Problem(
                path=f"{path}[{index}]{where}",
                reason="Duplicate",
                message=f"{what} {key!r} is already that of entry {before}: state each once",
            )


def _broken_rules(kept: Mapping[str, Any], kind: Kind) -> Iterator[Problem]:
    for path, value, schema in walk(kept, schema_of(kind.model)):
        for entry in schema.get("x-kubernetes-validations", ()):
            rule = RULES[entry["rule"]]
            try:
                holds = rule.holds is None or rule.holds(value)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
            if not holds:
                where = ".".join(part for part in (path, rule.at) if part)
                yield Problem(path=where, reason=rule.reason, message=rule.message)


# ---- pydantic's findings in our words ---------------------------------------------------------------------

_TYPE_WORDS = {
    "string_type": "text, in quotes where YAML would read something else",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object with fields",
    "model_type": "an object with fields",
    "model_attributes_type": "an object with fields",
}

_LIMIT_WORDS = {
    "greater_than_equal": ("OutOfRange", "must be at least {ge:g}"),
    "greater_than": ("OutOfRange", "must be above {gt:g}"),
    "less_than_equal": ("OutOfRange", "must be at most {le:g}"),
    "string_too_long": ("TooLong", "is too long: at most {max_length} characters"),
    "string_too_short": ("TooShort", "must not be empty"),
    "too_long": ("TooMany", "has too many entries: at most {max_length}"),
    "too_short": ("TooFew", "needs at least {min_length} entry"),
    "literal_error": ("NotSupported", "must be one of {expected}"),
}


def _worded(detail: ErrorDetails, kind: Kind) -> Problem:
    path, fault, given = _path(detail["loc"]), detail["type"], detail["input"]
    context: dict[str, Any] = detail.get("ctx", {})
    if fault == "missing":
        return Problem(path=path, reason="Required", message="is missing and has no default: state it")
    if fault == "extra_forbidden":
        return Problem(path=path, reason="UnknownField", message=_unknown_field(detail["loc"], kind))
    if fault in _TYPE_WORDS:
        message = f"must be {_TYPE_WORDS[fault]}, not {_shown(given)}"
        return Problem(path=path, reason="WrongType", message=message)
    if fault == "string_pattern_mismatch":
        words = PATTERN_WORDS[context["pattern"]]
        return Problem(path=path, reason="InvalidValue", message=f"is {_shown(given)}; write {words}")
    if fault in _LIMIT_WORDS:
        reason, words = _LIMIT_WORDS[fault]
        return Problem(path=path, reason=reason, message=f"{words.format(**context)}, not {_shown(given)}")
    return Problem(path=path, reason="InvalidValue", message=f"is not valid: {detail['msg']}")


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _unknown_field(location: tuple[int | str, ...], kind: Kind) -> str:
    """Names the nearest field, as the mistake is usually one of spelling."""
    schema = schema_of(kind.model)
    for part in location[:-1]:
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    known = sorted(schema.get("properties", {}))
    near = get_close_matches(str(location[-1]), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"remove it; fields here are {', '.join(known)}"
    return f"is not a field of the API: {hint}"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
