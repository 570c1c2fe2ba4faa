"""The wire models as one structural OpenAPI schema, and a walk over values beside their schema.

Place in the flow: in, the pydantic models; out, the schema as the API server wants it (no references, no unions,
no ``additionalProperties: false``), which ``crd`` prints and ``validation`` walks to apply the very same defaults,
list keys and rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from servingplan.api.v1alpha1 import ServingPlan
from servingplan.api.wire import Wire

Schema = dict[str, Any]

_DROPPED = frozenset({"title", "$defs", "additionalProperties"})
_LEADING = ("description", "type", "format", "default")
"""What a reader of the CRD looks for first."""


def plan_schema() -> Schema:
    """The schema of a whole ServingPlan."""
    return schema_of(ServingPlan)


@cache
def schema_of(model: type[Wire]) -> Schema:
    """The schema of a whole object; apiVersion, kind and metadata as the API server requires them."""
    generated = model.model_json_schema(by_alias=True)
    schema = _structural(generated, generated["$defs"])
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema["properties"],
    }
    return schema


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """One node without references and unions, its children likewise."""
    flat = _without_null(_dereferenced(node, definitions), definitions)
    schema = {key: value for key, value in flat.items() if key not in _DROPPED}
    if "properties" in schema:
        schema["properties"] = {name: _structural(child, definitions) for name, child in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = _structural(schema["items"], definitions)
    if "exclusiveMinimum" in schema:
        # OpenAPI 3.0 has a flag where JSON Schema has a number.
        schema["minimum"], schema["exclusiveMinimum"] = schema["exclusiveMinimum"], True
    return _ordered(_with_default(schema))


def _dereferenced(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    if reference is None:
        return dict(node)
    beside = {key: value for key, value in node.items() if key != "$ref"}
    return {**definitions[reference.rpartition("/")[2]], **beside}


def _without_null(node: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """``X | None`` is X in a structural schema: the API server removes nulls before it looks."""
    union = node.pop("anyOf", None)
    if union is None:
        return node
    (present,) = (choice for choice in union if choice.get("type") != "null")
    return {**_dereferenced(present, definitions), **node}


def _with_default(schema: Schema) -> Schema:
    """Static defaults only: an object's default is empty, its fields have their own."""
    default = schema.pop("default", None)
    if default is None or default == []:
        return schema
    if isinstance(default, dict):
        return {**schema, "default": {}} if "properties" in schema else schema
    return {**schema, "default": default}


def _ordered(schema: Schema) -> Schema:
    first = {key: schema[key] for key in _LEADING if key in schema}
    return {**first, **{key: schema[key] for key in sorted(schema) if key not in first}}


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value as the API server keeps it: nulls of fields removed, defaults set. The input stays as it is."""
    if isinstance(value, Mapping) and "properties" in schema:
        properties = schema["properties"]
        present = {key: child for key, child in value.items() if child is not None or key not in properties}
        for key, child in properties.items():
            if "default" in child:
                present.setdefault(key, child["default"])
        return {
            key: with_defaults(child, properties[key]) if key in properties else child for key, child in present.items()
        }
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(item, schema["items"]) for item in value]
    return value


def walk(value: Any, schema: Schema, path: str = "") -> Iterator[tuple[str, Any, Schema]]:
    """Every value that the schema describes, with its path (``spec.schedule.windows[2].start``), parents first."""
    yield path, value, schema
    if isinstance(value, Mapping):
        for key, child in schema.get("properties", {}).items():
            if key in value:
                yield from walk(value[key], child, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from walk(item, schema["items"], f"{path}[{index}]")
