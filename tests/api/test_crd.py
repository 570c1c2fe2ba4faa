"""The generated CRD: the file in crds/ is what the models say, and the schema is structural."""

from __future__ import annotations

from pathlib import Path

from servingplan.api.crd import crd_yaml, custom_resource_definition
from servingplan.api.schema import plan_schema

FILE = Path(__file__).parents[2] / "crds" / "servingplan.dev_servingplans.yaml"


def nodes(schema, path=""):
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


def test_the_file_is_what_the_models_say():
    assert FILE.read_text(encoding="utf-8") == crd_yaml(), "run: python -m servingplan.api.crd > crds/" + FILE.name


def test_every_list_and_every_text_has_a_limit():
    unlimited = [
        path
        for path, node in nodes(plan_schema())
        if (node.get("type") == "array" and "maxItems" not in node)
        or (node.get("type") == "string" and "maxLength" not in node and "enum" not in node)
    ]
    assert unlimited == [".apiVersion", ".kind"]


def test_every_list_says_how_it_is_merged():
    assert [path for path, node in nodes(plan_schema()) if node.get("type") == "array" and not merged(node)] == []


def merged(node):
    return node.get("x-kubernetes-list-type") in {"map", "set", "atomic"}


OPTIONAL = [".feedback", ".feedback.prometheus", ".feedback.scrape"]
"""That one of these is there is a choice: a default would make it."""


def test_every_object_with_defaults_inside_and_none_required_has_an_empty_default():
    missing = [
        path
        for path, node in nodes(plan_schema()["properties"]["spec"])
        if path
        and node.get("type") == "object"
        and any("default" in child for child in node.get("properties", {}).values())
        and not node.get("required")
        and node.get("default") != {}
    ]
    assert missing == OPTIONAL


def test_unknown_fields_are_kept_only_where_kubernetes_objects_are_merged():
    free = [path for path, node in nodes(plan_schema()) if node.get("x-kubernetes-preserve-unknown-fields")]
    assert free == [".spec.engine.resources", ".spec.engine.podTemplate"]


def test_every_field_is_described():
    nameless = {"", ".apiVersion", ".kind", ".metadata"}
    bare = [path for path, node in nodes(plan_schema()) if "description" not in node and not path.endswith("[]")]
    assert set(bare) <= nameless


def test_what_does_nothing_yet_is_not_in_the_schema():
    spec = plan_schema()["properties"]["spec"]["properties"]
    later = {"batch", "overflow", "acceptance", "maintenance", "sovereignty"}
    assert not later & set(spec)
    assert set(spec["capacity"]["properties"]) == {"requestsPerSecond", "perPoolSize"}
    assert set(spec["workload"]["properties"]) == {"tokens", "objectives"}
    assert set(spec["leadTime"]["properties"]) == {"declared", "margin", "learn", "max"}
    assert set(spec["scaleDown"]["properties"]) == {"step", "every", "stabilization"}
    assert spec["feedback"]["properties"]["raiseWhen"]["properties"]["inFlightPerReplica"]["type"] == "number"


def test_the_columns_show_what_runs_and_what_comes_next():
    columns = custom_resource_definition()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == [
        "Window",
        "Desired",
        "Ready replicas",
        "Next",
        "Ready",
        "Reason",
        "Age",
    ]
