"""The Go that a build needs: found, or named in one sentence with the way out."""

from __future__ import annotations

import pytest

from servingplan.errors import InputError
from servingplan.localcluster.build import CONTROL_PLANE, KWOK, ensure_built
from servingplan.localcluster.toolchain import find_go, module_version, required_version

GO_MOD = "module example\n\ngo 1.26.0\n\nrequire (\n\texample.org/tool v1.2.3\n\texample.org/tool/v2 v2.0.0\n)\n"


@pytest.fixture
def module(tmp_path):
    (tmp_path / "go.mod").write_text(GO_MOD)
    return tmp_path


@pytest.fixture
def on_the_path(monkeypatch, tmp_path):
    """Puts a `go` that does what the given shell script says on the PATH, alone, and returns it."""

    def put(script):
        program = tmp_path / "bin" / "go"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        return program

    return put


def test_a_missing_go_is_one_sentence_with_the_version_and_the_way_out(monkeypatch, tmp_path, module):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(InputError) as raised:
        find_go(module)
    (problem,) = raised.value.problems
    assert problem.reason == "GoMissing"
    assert "Go 1.26.0 or newer" in problem.message
    assert "https://go.dev/dl/" in problem.message


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        pytest.param("echo go version go1.19.8 linux/amd64", "GoTooOld", "is Go 1.19.8", id="older minor version"),
        pytest.param(
            "echo go version go1.9 linux/amd64", "GoTooOld", "is Go 1.9", id="numbers, not text, are compared"
        ),
        pytest.param("echo go version go1.26rc1 linux/amd64", "GoTooOld", "is Go 1.26", id="not released yet"),
        pytest.param("echo no toolchain >&2; exit 1", "GoUnusable", "no toolchain", id="fails"),
        pytest.param("echo gibberish", "GoUnusable", "gibberish", id="says something else"),
    ],
)
def test_an_unusable_go_is_named_with_what_it_is(on_the_path, module, script, reason, said):
    program = on_the_path(script)
    with pytest.raises(InputError) as raised:
        find_go(module)
    (problem,) = raised.value.problems
    assert problem.reason == reason
    assert said in problem.message
    assert str(program) in problem.message


@pytest.mark.parametrize("version", ["1.26.0", "1.26.8", "1.27rc1", "1.100.1", "2.0"])
def test_the_wanted_version_and_all_later_ones_are_taken(on_the_path, module, version):
    program = on_the_path(f"echo go version go{version} linux/amd64")
    found = find_go(module)
    assert version.startswith(found.version)
    assert found.program == program


def test_a_build_without_go_leaves_nothing_behind_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    cache = tmp_path / "cache"
    with pytest.raises(InputError, match="GoMissing"):
        ensure_built(cache)
    assert [left.name for left in cache.iterdir() if left.is_dir()] == []


def test_versions_are_read_from_go_mod():
    assert required_version(GO_MOD) == "1.26.0"
    assert module_version(GO_MOD, "example.org/tool") == "v1.2.3"
    with pytest.raises(ValueError, match=r"example\.org/other"):
        module_version(GO_MOD, "example.org/other")


@pytest.mark.parametrize("recipe", [CONTROL_PLANE, KWOK], ids=lambda recipe: recipe.name)
def test_each_recipe_states_the_version_of_its_own_go_mod(recipe):
    stated = module_version((recipe.folder / "go.mod").read_text(), recipe.version_of)
    assert f"={stated}" in recipe.linker_flags
