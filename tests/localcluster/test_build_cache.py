"""What decides whether a build is taken from the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from servingplan.errors import InputError
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


# A `go` that takes a moment to "build", tells each build in a file, and knows one module.
FAKE_GO = """#!/bin/sh
case "$1" in
  version) echo "go version go1.99.0 linux/amd64" ;;
  list) echo "MODULE" ;;
  build)
    echo "go: downloading example.org/tool v1.0.0" >&2
    echo "$PWD" >> BUILDS
    while [ "$1" != "-o" ]; do shift; done
    sleep 0.2
    echo built > "$2"
    EXIT ;;
esac
"""

ENSURE = """
import pathlib, sys
from servingplan.localcluster.build import ensure_built
ensure_built(pathlib.Path(sys.argv[1]))
"""


@pytest.fixture
def fake_go(monkeypatch, tmp_path):
    """Puts the fake `go` on the PATH and returns the file that tells its builds."""
    crd = tmp_path / "module" / build.STAGE_CRD
    crd.parent.mkdir(parents=True)
    crd.write_text("kind: CustomResourceDefinition\n")

    def put(end="exit 0"):
        program = tmp_path / "bin" / "go"
        program.parent.mkdir()
        script = FAKE_GO.replace("MODULE", str(tmp_path / "module")).replace("BUILDS", str(tmp_path / "builds"))
        program.write_text(script.replace("EXIT", end))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return tmp_path / "builds"

    return put


def test_a_build_is_kept_whole_with_its_links_and_shipped_files(fake_go, tmp_path, capsys):
    builds = fake_go()
    programs = ensure_built(tmp_path / "cache")
    assert programs.controlplane.read_text() == programs.kubectl.read_text() == "built\n"
    assert programs.stage_crd.read_text() == "kind: CustomResourceDefinition\n"
    assert len(builds.read_text().splitlines()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Building etcd, the Kubernetes control plane and kubectl" in told.err

    ensure_built(tmp_path / "cache")
    assert len(builds.read_text().splitlines()) == 2
    assert capsys.readouterr().err == ""


def test_two_builders_at_once_build_once(fake_go, tmp_path):
    builds = fake_go()
    started = [subprocess.Popen([sys.executable, "-c", ENSURE, str(tmp_path / "cache")]) for _ in range(2)]
    assert [builder.wait(60) for builder in started] == [0, 0]
    assert len(builds.read_text().splitlines()) == 2


def test_a_failed_build_says_what_go_said_and_leaves_nothing(fake_go, tmp_path):
    fake_go(end='echo "main.go:7:2: undefined: nothing" >&2; exit 1')
    with pytest.raises(InputError, match="undefined: nothing") as raised:
        ensure_built(tmp_path / "cache")
    assert raised.value.problems[0].reason == "BuildFailed"
    assert [left for left in (tmp_path / "cache").iterdir() if left.is_dir()] == []


def test_what_a_killed_build_left_is_removed_by_the_next(fake_go, tmp_path):
    fake_go()
    left = tmp_path / "cache" / ".controlplane-abcdef"
    left.mkdir(parents=True)
    ensure_built(tmp_path / "cache")
    assert not left.exists()
