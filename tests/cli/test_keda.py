"""``lint``, ``import`` and ``emit`` as people and programs use them: output, and exit codes."""

from __future__ import annotations

import json

import pytest

from cli.runs import ROOT, WORKED_EXAMPLE, same_as_golden
from servingplan.api.yaml_reader import read_yaml
from support.keda import a_cron, a_manifest
from support.specs import targeting

EXAMPLE = str(ROOT / "examples" / "keda" / "scaledobject.yaml")


def test_what_the_example_does_in_a_year(cli):
    result = cli("lint", "keda", EXAMPLE, "--from", "2026-12-01", env={"COLUMNS": "100"})
    assert result.exit_code == 4, result.output
    same_as_golden("lint-keda.txt", result.stdout)
    assert "Error: 3 findings in" in result.stderr


def test_the_same_as_json_with_every_instant(cli):
    result = cli("lint", "keda", EXAMPLE, "--from", "2026-12-01", "-o", "json")
    assert result.exit_code == 4, result.output
    (found,) = json.loads(result.stdout)["scaledObjects"]
    assert (found["file"], found["scaledObject"]) == (EXAMPLE, {"namespace": "llm", "name": "support-chat"})
    assert found["from"] == "2026-11-30T23:00:00Z"
    assert [(t["hoursActive"], t["hoursIntended"]) for t in found["triggers"]] == [(5628.0, 3132.0), (1297.0, 1278.0)]
    by_reason = {finding["reason"]: finding for finding in found["findings"]}
    assert len(by_reason["PhantomHours"]["times"]) == 52
    assert by_reason["HeldAtClockChange"]["times"] == [{"from": "2027-03-27T05:00:00Z", "to": "2027-03-28T01:00:00Z"}]
    assert by_reason["FallsLater"]["note"] is True


def test_a_schedule_that_is_right_ends_with_0(cli, plan_file):
    result = cli("lint", "keda", plan_file(a_manifest()), "--from", "2026-12-01")
    assert result.exit_code == 0, result.output
    assert "Findings" not in result.stdout


def test_several_objects_and_other_kinds_may_be_in_a_file(cli, plan_file):
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "vllm"}}
    file = plan_file(a_manifest(), other, {"kind": "List", "items": [a_manifest()]})
    result = cli("lint", "keda", file, "--from", "2026-12-01", "-o", "json")
    assert len(json.loads(result.stdout)["scaledObjects"]) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "no ScaledObject (keda.sh) in it"),
        ({**a_manifest(), "spec": {"scaleTargetRef": {"name": "a"}}}, "spec.triggers: is no list of triggers"),
    ],
    ids=["no ScaledObject", "no triggers"],
)
def test_what_is_no_scaled_object_is_a_problem_of_the_input(cli, plan_file, body, said):
    result = cli("lint", "keda", plan_file(body))
    assert result.exit_code == 1
    assert said in result.stderr


# ---- import ----


def test_the_plan_of_the_example_validates_and_says_what_to_do(cli, tmp_path):
    result = cli("import", "keda", EXAMPLE)
    assert result.exit_code == 0, result.output
    same_as_golden("import-keda.yaml", result.stdout)
    assert "delete ScaledObject support-chat before you apply the plan" in result.stderr
    assert 'start: "08:00"' in result.stdout
    file = tmp_path / "plan.yaml"
    file.write_text(result.stdout)
    assert cli("validate", str(file)).exit_code == 0


def test_rates_a_name_and_the_start_time(cli):
    arguments = ("--capacity", "2.5", "--reserve", "1", "--name", "chat", "--start-time", "8m", "-o", "json")
    plan = json.loads(cli("import", "keda", EXAMPLE, *arguments).stdout)
    assert plan["metadata"]["name"] == "chat"
    assert plan["spec"]["leadTime"] == {"declared": "8m"}
    assert [w["requestsPerSecond"] for w in plan["spec"]["schedule"]["windows"]] == [10, 5]


@pytest.mark.parametrize(
    ("triggers", "arguments", "code", "said"),
    [
        ([a_cron("0 8 * * 8", "0 20 * * *")], (), 1, "KEDA refuses it: '8' as weekday"),
        ([a_cron("0 8 1 * *", "0 20 10 * *")], (), 1, "a window by date lasts at most 168h"),
        ([], ("--name", "No_Name"), 1, "metadata.name"),
        ([], ("--reserve", "1"), 2, "--reserve counts only with --capacity"),
        ([], ("--start-time", "soon"), 2, "--start-time"),
    ],
    ids=["KEDA refuses", "cannot be said", "name", "reserve alone", "no span"],
)
def test_what_cannot_be_imported_is_told(cli, plan_file, triggers, arguments, code, said):
    result = cli("import", "keda", plan_file(a_manifest(*triggers)), *arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_one_name_is_not_for_two(cli, plan_file):
    result = cli("import", "keda", plan_file(a_manifest(), a_manifest()), "--name", "a")
    assert result.exit_code == 2


# ---- emit ----

WEEKS = ("--from", "2026-12-01", "--weeks", "4")


@pytest.mark.parametrize("form", ["keda", "cronjob"])
def test_the_way_out_of_the_worked_example(cli, form):
    result = cli("emit", form, WORKED_EXAMPLE, *WEEKS)
    assert result.exit_code == 0, result.output
    same_as_golden(f"emit-{form}.yaml", result.stdout)
    assert "does what the plan does until Tue 29 Dec 00:00 CET; emit it anew before" in result.stderr


def test_what_is_emitted_for_keda_has_no_finding(cli, tmp_path):
    file = tmp_path / "scaledobject.yaml"
    file.write_text(cli("emit", "keda", WORKED_EXAMPLE, *WEEKS).stdout)
    assert cli("lint", "keda", str(file), "--from", "2026-12-01").exit_code == 0


def test_an_autoscaler_is_named_or_the_plans_target(cli, plan_file):
    named = cli("emit", "hpa", WORKED_EXAMPLE, *WEEKS, "--hpa", "chat", "-o", "json")
    assert '{\\"spec\\":{\\"minReplicas\\":5}}' in named.stdout
    target = plan_file(**targeting("HorizontalPodAutoscaler", "autoscaling/v2", "translate"))
    found = cli("emit", "hpa", target, *WEEKS, "--image", "example.org/kubectl:1")
    assert "horizontalpodautoscalers.autoscaling/translate" in found.stdout
    assert "image: example.org/kubectl:1" in found.stdout
    assert cli("emit", "hpa", WORKED_EXAMPLE).exit_code == 2


def test_two_autoscalers_on_one_workload_are_refused(cli, plan_file):
    target = plan_file(**targeting("ScaledObject", "keda.sh/v1alpha1", "chat"))
    refused = cli("emit", "keda", target)
    assert refused.exit_code == 1
    assert "two autoscalers on one workload fight: use emit cronjob" in refused.stderr
    jobs = [body for _, body in read_yaml(cli("emit", "cronjob", target, *WEEKS).stdout) if body["kind"] == "CronJob"]
    assert len(jobs) == 4
