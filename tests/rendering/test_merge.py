import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.rendering.merge import by_key, merged

SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.text("abc", max_size=3))
NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"value": SCALARS}),
    max_size=4,
    unique_by=lambda item: item["name"],
)
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from(["x", "y", "z"]), SCALARS, max_size=3),
    lambda inner: st.fixed_dictionaries({}, optional={"env": NAMED, "spec": inner, "args": st.lists(SCALARS)}),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}, id="mappings deep"),
        pytest.param({"args": [1, 2]}, {"args": [3]}, {"args": [3]}, id="a plain list is one value"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a default out"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}, id="a mapping replaces a scalar"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"env": [{"name": "C", "value": "3"}, {"name": "B", "value": "4"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "4"}, {"name": "C", "value": "3"}]},
            id="a named list by name, what is new at the end",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
            {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
            id="another source of a variable replaces ours",
        ),
        pytest.param(
            {"volumes": [{"name": "cache", "emptyDir": {}}]},
            {"volumes": [{"name": "cache", "hostPath": {"path": "/var/cache"}}]},
            {"volumes": [{"name": "cache", "hostPath": {"path": "/var/cache"}}]},
            id="another source of a volume replaces ours",
        ),
        pytest.param(
            {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}]},
            {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "64Gi"}}]},
            {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}]},
            id="the same source of a volume is refined",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "effect": "NoSchedule", "operator": "Exists"}]},
            {"tolerations": [{"operator": "Exists"}]},
            {"tolerations": [{"key": "gpu", "effect": "NoSchedule", "operator": "Exists"}, {"operator": "Exists"}]},
            id="a toleration of everything stands beside ours",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B"}, {"name": "B"}]},
            {"env": [{"name": "B"}, {"name": "B"}]},
            id="a name given twice is left for the server to refuse",
        ),
    ],
)
def test_laying_over(below, above, expected):
    assert merged(below, above) == expected


def test_ports_of_one_number_and_two_protocols_stay_apart():
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]
    keys = by_key("ports", ports)
    assert keys is not None
    assert set(keys) == {(53, None, "UDP"), (53, None, "TCP")}


@given(OBJECTS)
def test_nothing_laid_over_changes_nothing(value):
    assert merged(value, {}) == value


@given(OBJECTS)
def test_the_same_laid_over_changes_nothing(value):
    assert merged(value, value) == value


@given(OBJECTS, OBJECTS)
def test_laying_over_twice_is_laying_over_once(below, above):
    once = merged(below, above)
    assert merged(once, above) == once


@given(OBJECTS, OBJECTS)
def test_the_input_is_never_changed(below, above):
    before = copy.deepcopy((below, above))
    merged(below, above)
    assert (below, above) == before
