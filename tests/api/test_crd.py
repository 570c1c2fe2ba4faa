"""The generated definitions: the files in crds/ are what the models say, and every schema is structural."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingplan.api.crd import crd_yaml, custom_resource_definition, file_name
from servingplan.api.kinds import CAPACITY_BENCHMARK, KINDS, MODEL_EVALUATION, SERVING_PLAN
from servingplan.api.schema import plan_schema, schema_of

CRDS = Path(__file__).parents[2] / "crds"

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def nodes(schema, path=""):
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


@each_kind
def test_the_file_is_what_the_models_say(kind):
    assert (CRDS / file_name(kind)).read_text(encoding="utf-8") == crd_yaml(kind), "run `make crd`"


def test_every_file_is_of_a_kind():
    assert {file.name for file in CRDS.iterdir()} == {file_name(kind) for kind in KINDS}


@each_kind
def test_every_list_and_every_text_has_a_limit(kind):
    unlimited = [
        path
        for path, node in nodes(schema_of(kind.model))
        if (node.get("type") == "array" and "maxItems" not in node)
        or (node.get("type") == "string" and "maxLength" not in node and "enum" not in node)
    ]
    assert unlimited == [".apiVersion", ".kind"]


@each_kind
def test_every_list_says_how_it_is_merged(kind):
    unsaid = [path for path, node in nodes(schema_of(kind.model)) if node.get("type") == "array" and not merged(node)]
    assert unsaid == []


def merged(node):
    return node.get("x-kubernetes-list-type") in {"map", "set", "atomic"}


def test_no_category_takes_the_name_of_a_kind():
    names = [custom_resource_definition(kind)["spec"]["names"] for kind in KINDS]
    taken = {name for each in names for name in (each["plural"], each["singular"], *each["shortNames"])}
    assert not taken & {category for each in names for category in each["categories"]}


OPTIONAL = {"ServingPlan": [".feedback", ".feedback.prometheus", ".feedback.scrape", ".feedback.foresight"]}
"""That one of these is there is a choice: a default would make it."""


@each_kind
def test_every_object_with_defaults_inside_and_none_required_has_an_empty_default(kind):
    missing = [
        path
        for path, node in nodes(schema_of(kind.model)["properties"]["spec"])
        if path
        and node.get("type") == "object"
        and any("default" in child for child in node.get("properties", {}).values())
        and not node.get("required")
        and node.get("default") != {}
    ]
    assert missing == OPTIONAL.get(kind.name, [])


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (SERVING_PLAN, [".spec.engine.resources", ".spec.engine.podTemplate"]),
        (CAPACITY_BENCHMARK, [".spec.runner.resources"]),
        (MODEL_EVALUATION, [".spec.runner.resources"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_unknown_fields_are_kept_only_where_kubernetes_objects_are_merged(kind, where):
    free = [path for path, node in nodes(schema_of(kind.model)) if node.get("x-kubernetes-preserve-unknown-fields")]
    assert free == where


@each_kind
def test_every_field_is_described(kind):
    nameless = {"", ".apiVersion", ".kind", ".metadata"}
    schema = schema_of(kind.model)
    bare = [path for path, node in nodes(schema) if "description" not in node and not path.endswith("[]")]
    assert set(bare) <= nameless


def test_what_does_nothing_yet_is_not_in_the_schema():
    spec = plan_schema()["properties"]["spec"]["properties"]
    later = {"batch", "overflow", "maintenance", "sovereignty"}
    assert not later & set(spec)
    assert set(spec["capacity"]["properties"]) == {"requestsPerSecond", "perPoolSize", "benchmarkRef"}
    assert set(spec["workload"]["properties"]) == {"tokens", "objectives"}
    assert set(spec["leadTime"]["properties"]) == {"declared", "margin", "learn", "max"}
    assert set(spec["scaleDown"]["properties"]) == {"step", "every", "stabilization"}
    assert spec["feedback"]["properties"]["raiseWhen"]["properties"]["inFlightPerReplica"]["x-kubernetes-int-or-string"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (SERVING_PLAN, ["Window", "Desired", "Ready replicas", "Next", "Ready", "Reason", "Age"]),
        (CAPACITY_BENCHMARK, ["Capacity", "Up to", "Bound by", "Complete", "Reason", "Age"]),
        (MODEL_EVALUATION, ["Verdict", "Baseline", "Variant", "At worst", "Complete", "Reason", "Age"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_columns_show_what_matters_most_about_a_kind(kind, names):
    columns = custom_resource_definition(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == names
