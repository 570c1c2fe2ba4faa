"""The tree as a whole: what no single module can promise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from servingplan.planning.reasons import Reason
from servingplan.rendering.conditions import RULES

ROOT = Path(__file__).parents[1]
RUNBOOKS = ROOT / "docs" / "runbooks"
TEXT = {".py", ".md", ".yaml", ".yml", ".toml", ".json", ".tpl", ".txt", ".go", ".mod", ".cfg", ".csv", ".ics", ""}

MACHINE_PATHS = re.compile(r"(?<![\w.~$}/-])/(?:home|Users|root|work|tmp/[a-z0-9]+)/[\w.-]")
"""Absolute paths of one machine; the folder for temporary files alone is none."""

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return sorted(file for file in files if file.is_file())


FILES = tracked()
PAGES = [file for file in FILES if file.suffix == ".md"]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_the_source_root_does_not_shadow_the_standard_library():
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_layers_and_the_purity_of_the_core_hold():
    lint = Path(sys.executable).with_name("lint-imports")
    answer = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_unit_tests_have_names_of_their_own():
    """Their folders are no packages: of two modules of one name pytest collects the first."""
    names = [file.name for file in FILES if file.is_relative_to(ROOT / "tests") and file.name.startswith("test_")]
    assert {each: count for each, count in Counter(names).items() if count > 1} == {}


def test_no_file_names_a_path_of_one_machine():
    found = [
        f"{name(file)}:{number}: {line.strip()}"
        for file in FILES
        if file.suffix in TEXT and file != Path(__file__)
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1)
        if MACHINE_PATHS.search(line)
    ]

    assert not found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [found["target"] for found in LINK.finditer(prose) if "://" not in found["target"]]
    broken = [target for target in targets if not _exists(page, target)]

    assert not broken


def _exists(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or anchor in _anchors(file.read_text())


def _anchors(text: str) -> set[str]:
    """The anchors of headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---- reasons, conditions, runbooks ----


def test_every_reason_is_documented_once_and_no_other():
    listed = re.findall(r"^\| `(\w+)` \| .+ \|$", (ROOT / "docs/reference/reasons.md").read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(reason.value for reason in Reason)


def conditions() -> list[str]:
    """The types that the rules can give, by the name of each rule: ``ready_by_next_ramp``."""
    special = {"gpu_capacity_sufficient": "GPUCapacitySufficient"}
    return [special.get(rule.__name__) or rule.__name__.title().replace("_", "") for rule in RULES]


def test_every_condition_is_in_the_reference_with_its_runbook():
    page = (ROOT / "docs/reference/conditions.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\(\.\./runbooks/(\w+)\.md\)", page, re.MULTILINE)

    assert listed == [(condition, condition) for condition in conditions()]


@pytest.mark.parametrize("condition", conditions())
def test_a_runbook_says_what_to_look_at_and_what_to_do(condition):
    page = (RUNBOOKS / f"{condition}.md").read_text()

    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    assert headings == [condition, "Reasons", "What to look at", "What to do"]
    assert re.search(r"^    (kubectl|servingplan) ", page, re.MULTILINE)


@pytest.mark.parametrize("condition", conditions())
def test_a_runbook_names_only_reasons_that_exist(condition):
    page = (RUNBOOKS / f"{condition}.md").read_text()
    rows = re.findall(r"^\| (`.+`) \| .+ \|$", page, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row)}

    assert named
    assert named <= {reason.value for reason in Reason}


def test_every_alert_is_about_a_condition_or_the_operator_itself():
    alerts = (ROOT / "charts/servingplan/files/alerts.yaml").read_text()
    linked = set(re.findall(r"^  condition: (\w+)$", alerts, re.MULTILINE))

    assert linked == {*conditions(), "Operator"}


# ---- commands ----


def test_ci_runs_the_command_that_the_pages_tell_people_to_run():
    script = (ROOT / ".ci/run").read_text()

    assert re.search(r"^exec make test$", script, re.MULTILINE)
    assert "make test" in (ROOT / "CONTRIBUTING.md").read_text()
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_every_command_of_the_makefile_is_in_its_list():
    text = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert commands
    assert re.findall(r"^  make (\S+) ", listed, re.MULTILINE) == commands
