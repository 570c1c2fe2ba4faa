"""What decides whether a build is taken from the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from servingplan.localcluster import build
from servingplan.localcluster.build import CONTROL_PLANE, KWOK, cache_folder, digest, ensure_built


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """A copy of the Go sources, which the recipes read from now on."""
    copy = tmp_path / "sources"
    for recipe in (CONTROL_PLANE, KWOK):
        shutil.copytree(recipe.folder, copy / recipe.name)
    monkeypatch.setattr(build, "SOURCES", copy)
    return copy


@pytest.mark.parametrize("file", ["main.go", "pki.go", "go.mod", "go.sum"])
def test_a_change_in_any_source_asks_for_a_new_build(sources, file):
    before = digest(CONTROL_PLANE)
    with (sources / "controlplane" / file).open("a") as changed:
        changed.write("\n// changed\n")
    assert digest(CONTROL_PLANE) != before


def test_the_same_sources_elsewhere_have_the_same_key(sources):
    assert digest(CONTROL_PLANE) == _digest_of_the_originals()


def test_a_change_of_one_program_does_not_rebuild_the_other(sources):
    before = digest(KWOK)
    (sources / "controlplane" / "main.go").write_text("package main\n")
    assert digest(KWOK) == before


def test_files_that_go_does_not_read_do_not_matter(sources):
    before = digest(CONTROL_PLANE)
    (sources / "controlplane" / "notes.txt").write_text("anything")
    assert digest(CONTROL_PLANE) == before


def test_finished_builds_are_used_without_go(monkeypatch, tmp_path):
    cache = tmp_path / "cache"
    for recipe in (CONTROL_PLANE, KWOK):
        (cache / f"{recipe.name}-{digest(recipe)}").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    programs = ensure_built(cache)
    assert programs.controlplane.parent.name == f"controlplane-{digest(CONTROL_PLANE)}"
    assert programs.kubectl.parent == programs.controlplane.parent
    assert programs.stage_crd.parent == programs.kwok.parent


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        pytest.param("/var/cache/someone", "/var/cache/someone/servingplan/localcluster", id="absolute"),
        pytest.param("relative", "HOME/.cache/servingplan/localcluster", id="a relative path counts as not set"),
        pytest.param("", "HOME/.cache/servingplan/localcluster", id="empty"),
    ],
)
def test_the_cache_lies_where_the_xdg_rules_say(monkeypatch, tmp_path, configured, expected):
    monkeypatch.setenv("XDG_CACHE_HOME", configured)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == Path(expected.replace("HOME", str(tmp_path)))


def _digest_of_the_originals():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "SOURCES", Path(build.__file__).parent)
        return digest(CONTROL_PLANE)
