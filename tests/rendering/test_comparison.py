import copy
from decimal import Decimal

import pytest

from servingplan.rendering.comparison import contained, quantity, template_hash
from support.served import served_deployment, served_pairs

PAIRS = [pytest.param(ours, live, id=title) for title, ours, live in served_pairs()]


def leaves(value, path=()):
    """The path of every value that is neither a mapping nor a list of mappings."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def at(value, path):
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize(("rendered", "live"), PAIRS)
def test_right_after_an_apply_nothing_is_to_do(rendered, live):
    assert contained(rendered, live)


@pytest.mark.parametrize(("rendered", "live"), PAIRS)
def test_any_other_value_asks_for_an_apply(rendered, live):
    missed = []
    for path in leaves(rendered):
        changed = copy.deepcopy(rendered)
        at(changed, path[:-1])[path[-1]] = "something else"
        if contained(changed, live):
            missed.append(path)
    assert missed == []


@pytest.mark.parametrize("name", ["worked-example", "full-engine"])
def test_whatever_somebody_takes_out_is_put_back(name):
    rendered, live = served_deployment(name)
    missed = []
    for path in leaves(rendered):
        less = copy.deepcopy(live)
        where, last = at_by_key(rendered, less, path)
        del where[last]
        if contained(rendered, less) and at(rendered, path) not in ({}, [], ""):
            missed.append(path)
    assert missed == []


def at_by_key(rendered, live, path):
    """The live parent of a rendered path; list items are found by name, or by place where they have none."""
    for step in path[:-1]:
        if isinstance(step, int) and "name" in rendered[step]:
            name = rendered[step]["name"]
            step_in_live = next(index for index, item in enumerate(live) if item["name"] == name)
            rendered, live = rendered[step], live[step_in_live]
        else:
            rendered, live = rendered[step], live[step]
    return live, path[-1]


@pytest.mark.parametrize(
    ("rendered", "live", "expected"),
    [
        pytest.param({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, True, id="equal quantities"),
        pytest.param({"limits": {"gpu": 2}}, {"limits": {"gpu": "2"}}, True, id="a number served as text"),
        pytest.param({"requests": {"memory": "1Gi"}}, {"requests": {"memory": "1G"}}, False, id="Gi is not G"),
        pytest.param({"limits": {"cpu": "x"}}, {"limits": {"cpu": "x"}}, True, id="no quantity, but equal"),
        pytest.param({"value": "1000m"}, {"value": "1"}, False, id="text elsewhere is text"),
        pytest.param({"labels": {"sizeLimit": "1k"}}, {"labels": {"sizeLimit": "1000"}}, False, id="a label is text"),
        pytest.param({"emptyDir": {"sizeLimit": "1Ki"}}, {"emptyDir": {"sizeLimit": "1024"}}, True, id="size limit"),
        pytest.param({"port": 80}, {"port": "80"}, False, id="a port by number is not one by name"),
        pytest.param({"on": True}, {"on": 1}, False, id="true is not one"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, True, id="what others added is theirs"),
        pytest.param({"a": {"b": 1}}, {"a": "text"}, False, id="a mapping is not a text"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, False, id="a list is not a mapping"),
        pytest.param({"readOnly": False}, {}, True, id="false is stored as nothing"),
        pytest.param({"enableServiceLinks": False}, {}, False, id="not set would mean true"),
        pytest.param({"maxUnavailable": 0}, {}, False, id="not set would mean a quarter"),
        pytest.param({"a": 1}, {}, False, id="a value is missing"),
        pytest.param({"args": ["a", "b"]}, {"args": ["b", "a"]}, False, id="arguments have an order"),
        pytest.param({"args": ["a"]}, {"args": ["a", "b"]}, False, id="arguments are all ours"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]},
            True,
            id="named items in any order, among others'",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            False,
            id="a named item differs",
        ),
        pytest.param({"env": [{"name": "A"}]}, {"env": [{"name": "B"}]}, False, id="a named item is missing"),
        pytest.param(
            {"sources": [{"a": 1}]}, {"sources": [{"a": 1, "mode": 420}]}, True, id="items without a name by place"
        ),
        pytest.param({"sources": [{"a": 1}]}, {"sources": [{"a": 1}, {}]}, False, id="one item too many"),
    ],
)
def test_containment(rendered, live, expected):
    assert contained(rendered, live) is expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", Decimal(1)),
        (2, Decimal(2)),
        (0.5, Decimal("0.5")),
        ("500m", Decimal("0.5")),
        ("100n", Decimal("1e-7")),
        ("1k", Decimal(1000)),
        ("1.5Gi", Decimal(1610612736)),
        ("2E", Decimal("2e18")),
        ("1e3", Decimal(1000)),
        ("-1Ki", Decimal(-1024)),
        ("", None),
        ("Gi", None),
        ("1Xi", None),
        ("1mm", None),
    ],
)
def test_a_quantity_as_a_number(text, number):
    assert quantity(text) == number


def test_a_template_that_means_the_same_has_the_same_hash():
    def deployment(template):
        return {"spec": {"template": template}}

    ours = deployment({"resources": {"limits": {"cpu": "2000m"}}, "stdin": False, "env": []})
    servers = deployment({"resources": {"limits": {"cpu": "2"}}})
    assert template_hash(ours) == template_hash(servers)
    assert template_hash(ours) != template_hash(deployment({"resources": {"limits": {"cpu": "3"}}}))
    assert template_hash(ours) != template_hash(deployment({"resources": {"limits": {"cpu": "2"}}, "stdin": True}))
