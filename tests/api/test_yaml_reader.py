"""YAML as kubectl reads it: what kubectl 1.36 was seen to send. e2e/test_crd.py asks it again."""

from __future__ import annotations

import pytest

from servingplan.api.yaml_reader import Unreadable, read_yaml
from support.scalars import SCALARS


def read(text):
    return [value for _, value in read_yaml(text)]


@pytest.mark.parametrize(("written", "value"), SCALARS, ids=[written for written, _ in SCALARS])
def test_a_plain_scalar_has_the_type_that_kubectl_gives_it(written, value):
    (read_value,) = read(f"key: {written}")
    assert read_value == {"key": value}
    assert type(read_value["key"]) is type(value)


@pytest.mark.parametrize("written", ["on", "20:00", "010", "~", "1.5"])
def test_a_quoted_scalar_is_text(written):
    assert read(f"key: '{written}'") == read(f'key: "{written}"') == [{"key": written}]


def test_keys_are_text_as_in_json():
    assert read("{on: 1, 1: 2, 20:00: 3, 2026-01-01: 4}") == [{"true": 1, "1": 2, "20:00": 3, "2026-01-01": 4}]


def test_a_merge_key_brings_fields_that_later_ones_replace():
    assert read("a: &a {x: 1, w: 2}\nb: {<<: *a, w: 3}\nc: {w: 9, <<: *a}\nd: {<<: [*a, {x: 5, z: 6}]}") == [
        {"a": {"x": 1, "w": 2}, "b": {"x": 1, "w": 3}, "c": {"x": 1, "w": 2}, "d": {"x": 1, "w": 2, "z": 6}}
    ]


def test_documents_come_with_the_line_on_which_they_start():
    assert list(read_yaml("# first\na: 1\n---\n\nb: 2\n---\n")) == [(2, {"a": 1}), (5, {"b": 2})]


def test_json_is_yaml():
    assert read('{"a": [1, 2.5, true, null, "20:00"]}') == [{"a": [1, 2.5, True, None, "20:00"]}]


NESTED = "\n".join(
    [f"a0: &a0 [{','.join('x' * 9)}]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 8))]
)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        pytest.param("a: 1\nb: 2\na: 3", 3, "'a' is stated twice", id="a key twice"),
        pytest.param("a:\n  on: 1\n  yes: 2", 3, "'true' is stated twice", id="two spellings of one key"),
        pytest.param("a: [1\nb: 2", 2, "expected ',' or ']'", id="a list without its end"),
        pytest.param("a: 1\n\tb: 2", 2, "", id="a tab"),
        pytest.param("a: .inf", 1, "finite", id="infinity"),
        pytest.param("a: 1e999", 1, "too large", id="a number beyond all"),
        pytest.param("a: !ours 1", 1, "!ours", id="an unknown tag"),
        pytest.param("a: &a [*a]", 0, "nested too deeply", id="a list inside itself"),
        pytest.param("a: " + "[" * 5000, 0, "nested too deeply", id="depth"),
        pytest.param(NESTED, 1, "too many values", id="aliases of aliases"),
        pytest.param("? [a]\n: 1", 1, "single word", id="a list as key"),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text, line, says):
    with pytest.raises(Unreadable) as unreadable:
        read(text)
    assert unreadable.value.line == line
    assert says in str(unreadable.value)
