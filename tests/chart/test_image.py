"""The image cannot be built where there is no container engine: what it does is checked step by step instead."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.charts import ROOT, of_kind, render

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def stage(name: str) -> str:
    """The steps of a build stage."""
    found = re.search(rf"^FROM \S+ AS {name}$(.*?)(?=^FROM |\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def copied_from_context() -> list[str]:
    """What COPY takes out of the build context."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_the_dockerfile_copies_what_exists_and_is_not_ignored():
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert copied_from_context()
    for source in copied_from_context():
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, pattern) for pattern in let_in), source


def test_the_image_has_all_that_the_build_of_the_package_reads():
    file = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = file["project"]
    packages = file["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    read = {"pyproject.toml", project["readme"], *project["license-files"], *(path.split("/")[0] for path in packages)}

    assert read <= set(copied_from_context())


@pytest.mark.parametrize("name", ["operator", "runner"])
def test_the_images_and_the_chart_run_as_the_same_user_who_is_not_root(name):
    (user,) = re.findall(r"^USER (\d+):(\d+)$", stage(name), re.MULTILINE)
    (deployment,) = of_kind(render(), "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]

    assert user == (str(context["runAsUser"]), str(context["runAsGroup"]))
    assert user[0] != "0"


def test_the_runner_has_what_measuring_and_evaluating_need_beside_vllm_and_the_last_stage_is_the_operators():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r'pip install .*"\.\[(.+)\]"', stage("runner"))

    assert {"bench", "evaluate"} == set(installed.split(",")) & set(extras)
    assert re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE)[-1] == "operator"


@pytest.mark.slow
def test_what_the_image_installs_runs_the_operator_without_the_cluster_client(tmp_path: Path):
    (extra,) = re.findall(r'pip install .*"\.(\[.+\])"', stage("build"))
    (entrypoint,) = re.findall(r"^ENTRYPOINT \[(.+)\]$", stage("operator"), re.MULTILINE)
    program, *arguments = re.findall(r'"(\S+)"', entrypoint)
    environment = tmp_path / "venv"
    run([sys.executable, "-m", "venv", str(environment)])
    python = str(environment / "bin" / "python")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{ROOT}{extra}"])

    answer = run([str(environment / "bin" / program), *arguments, "--help"], cwd=tmp_path)
    found = run([python, "-c", "import kopf, importlib.util as u; print(u.find_spec('kubernetes'))"], cwd=tmp_path)

    assert "--installation" in answer
    assert found.strip() == "None"


def run(command: list[str], cwd: Path | None = None) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
