"""The verbs that need no cluster, on files: their outputs as kept in golden/, and every kind of input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from cli.runs import ROOT, WORKED_EXAMPLE, process, same_as_golden
from servingplan.api.yaml_reader import read_yaml
from support.specs import config_map, document, scheduled

SCHEMA = json.loads((ROOT / "docs/reference/plan.schema.json").read_text())
TWO_WEEKS = ("--from", "2026-12-01")


def test_plan_as_json_is_the_contract(cli):
    result = cli("plan", WORKED_EXAMPLE, *TWO_WEEKS, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(found)
    assert found["gpuHours"] == {
        "required": 1032.0,
        "leading": 6.0,
        "trailing": 1.0,
        "planned": 1039.0,
        "flatPeak": 1680.0,
        "savedPercent": 38.2,
        "gpusPerReplica": 1,
    }
    same_as_golden("worked-example.json", result.stdout)


@pytest.mark.parametrize("width", ["80", "120"])
def test_plan_in_a_terminal_is_the_first_insight(width):
    done = process("plan", WORKED_EXAMPLE, *TWO_WEEKS, COLUMNS=width)
    assert done.returncode == 0, done.stderr
    same_as_golden(f"worked-example-{width}.txt", done.stdout)


def test_plan_against_another_shows_what_changes(cli, plan_file):
    later = {**document()["spec"]["schedule"]["windows"][0], "end": "22:00"}
    new = plan_file(**scheduled(windows=[later]))
    result = cli("plan", new, "--against", WORKED_EXAMPLE, *TWO_WEEKS)
    assert result.exit_code == 0, result.output
    same_as_golden("against.txt", result.stdout[result.stdout.index("Against") :])


def test_explain_at_the_start_of_the_lead(cli):
    result = cli("explain", WORKED_EXAMPLE, "--at", "2026-12-01T07:48")
    assert result.exit_code == 0
    same_as_golden("explain.txt", result.stdout)


def test_json_and_yaml_hold_the_same(cli):
    as_json = json.loads(cli("plan", WORKED_EXAMPLE, *TWO_WEEKS, "-o", "json").stdout)
    ((_, as_yaml),) = read_yaml(cli("plan", WORKED_EXAMPLE, *TWO_WEEKS, "-o", "yaml").stdout)
    assert as_yaml == as_json


def test_every_problem_of_every_plan_is_listed_with_its_file_and_line(cli, plan_file):
    bad = plan_file(
        document("first", **scheduled(timeZone="Europe/Atlantis")),
        document("second", reserve={"replicas": -1}, capacity={"requestsPerSecond": 0}),
        name="bad.yaml",
    )
    result = cli("validate", bad, "-o", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["plans"]
    assert [problem["path"] for problem in first["problems"]] == ["spec.schedule.timeZone"]
    assert {problem["path"] for problem in second["problems"]} >= {
        "spec.reserve.replicas",
        "spec.capacity.requestsPerSecond",
    }
    assert {problem["file"] for problem in second["problems"]} == {bad}
    assert (first["problems"][0]["line"], second["problems"][0]["line"]) == (1, 3)


@pytest.mark.parametrize("verb", ["plan", "explain", "render"])
def test_a_plan_with_problems_gives_them_as_data_and_as_sentences(cli, plan_file, verb):
    bad = plan_file(**scheduled(timeZone="Europe/Atlantis"))
    result = cli(verb, bad, "-o", "json")
    assert result.exit_code == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["path"] == "spec.schedule.timeZone"
    assert f"{bad}:1: spec.schedule.timeZone:" in result.stderr
    assert "1 problem" in result.stderr


def test_validate_says_the_same_as_plan(cli, plan_file):
    bad = plan_file(**scheduled(timeZone="Europe/Atlantis"))
    validated = json.loads(cli("validate", bad, "-o", "json").stdout)["plans"][0]["problems"]
    planned = json.loads(cli("plan", bad, "-o", "json").stdout)["problems"]
    assert validated == planned


def test_standard_input_and_directories_are_files_too(cli, plan_file):
    file = Path(plan_file())
    from_input = cli("validate", "-", input=file.read_text())
    assert from_input.exit_code == 0, from_input.output
    assert "llm/support-chat" in from_input.stdout
    assert "llm/support-chat" in cli("validate", str(file.parent)).stdout


def test_config_maps_beside_the_plan_are_read_and_missing_ones_are_problems(cli, plan_file):
    holidays = [{"name": "holidays", "configMap": {"name": "days"}, "treatAs": "Base"}]
    plan = document(**scheduled(calendars=holidays))
    whole = plan_file(plan, config_map("days", {"dates": "2026-12-02\n"}), name="whole.yaml")
    found = json.loads(cli("plan", whole, *TWO_WEEKS, "-o", "json").stdout)
    assert found["gpuHours"]["required"] == 1032 - 12 * 3
    missing = cli("plan", plan_file(plan, name="alone.yaml"))
    assert missing.exit_code == 1
    assert "ConfigMap 'days' does not exist" in missing.stderr


def test_several_plans_are_a_list_and_a_name_chooses_one(cli, plan_file):
    both = plan_file(document("one"), document("two"))
    assert [found["plan"]["name"] for found in json.loads(cli("plan", both, "-o", "json").stdout)] == ["one", "two"]
    assert json.loads(cli("plan", both, "--name", "two", "-o", "json").stdout)["plan"]["name"] == "two"
    picture = cli("plan", both, "-o", "html")
    assert picture.exit_code == 2
    assert "one, two" in picture.stderr


def test_render_prints_objects_that_kubectl_can_read(cli):
    result = cli("render", WORKED_EXAMPLE)
    assert result.exit_code == 0, result.output
    kinds = [value["kind"] for _, value in read_yaml(result.stdout)]
    assert kinds == ["Service", "PodDisruptionBudget", "Deployment"]
    listed = json.loads(cli("render", WORKED_EXAMPLE, "-o", "json").stdout)
    assert [item["kind"] for item in listed["items"]] == kinds


def test_render_of_a_plan_for_an_existing_workload_says_that_there_is_nothing(cli):
    result = cli("render", str(ROOT / "examples" / "target-ref.yaml"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing to render" in result.stderr


def test_crd_prints_the_files_that_are_in_the_repository(cli):
    printed = list(YAML(typ="safe").load_all(cli("crd").stdout))
    files = sorted((ROOT / "crds").iterdir())
    assert {found["metadata"]["name"]: found for found in printed} == {
        found["metadata"]["name"]: found for found in (YAML(typ="safe").load(file.read_text()) for file in files)
    }
    assert json.loads(cli("crd", "-o", "json").stdout)["items"] == printed


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_picture_is_written_to_standard_output(form):
    done = process("plan", WORKED_EXAMPLE, *TWO_WEEKS, "-o", form)
    assert done.returncode == 0, done.stderr
    assert "<svg" in done.stdout


def test_markdown_is_what_a_change_changes(cli, plan_file):
    window = {**document()["spec"]["schedule"]["windows"][0], "end": "21:00"}
    new = plan_file(**scheduled(windows=[window]))
    result = cli("plan", new, "--against", WORKED_EXAMPLE, *TWO_WEEKS, "--gpu-hour", "2", "-o", "markdown")
    assert result.exit_code == 0, result.output
    same_as_golden("against.md", result.stdout)
    alone = cli("plan", new, "-o", "markdown")
    assert (alone.exit_code, "--against OLD" in alone.stderr) == (2, True)


def test_costs_are_part_of_the_contract(cli):
    arguments = (*TWO_WEEKS, "--gpu-hour", "2", "--against", WORKED_EXAMPLE, "-o", "json")
    found = json.loads(cli("plan", WORKED_EXAMPLE, *arguments).stdout)
    Draft202012Validator(SCHEMA).validate(found)
    assert found["gpuHours"]["cost"] == {"perGpuHour": 2.0, "planned": 2078.0, "flatPeak": 3360.0, "saved": 1282.0}
    assert found["against"]["sentences"][0] == "What is required in these days stays the same."
