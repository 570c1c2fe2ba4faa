"""``servingplan simulate --engine-profile``: a line more, a field more, and what it needs."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from cli.runs import ROOT, WORKED_EXAMPLE
from inventory.test_engine_profiles import GOOD

SCHEMA = json.loads((ROOT / "docs/reference/simulation.schema.json").read_text())


@pytest.fixture
def engine(tmp_path):
    """A file of an engine."""
    file = tmp_path / "engine.yaml"
    file.write_text(GOOD)
    return str(file)


@pytest.fixture
def trace(tmp_path):
    """40 minutes of a request a second."""
    file = tmp_path / "log.csv"
    times = [f"2026-12-01T08:{second // 60:02d}:{second % 60:02d}+01:00" for second in range(2400)]
    file.write_text("time,input_tokens\n" + "".join(f"{time},100\n" for time in times))
    return str(file)


def plan(folder, change):
    """The worked example, changed."""
    document = YAML(typ="safe").load((ROOT / WORKED_EXAMPLE).read_text())
    change(document["spec"])
    file = folder / "plan.yaml"
    file.write_text(json.dumps(document))
    return str(file)


def test_the_plans_replicas_are_served_token_by_token_too(cli, engine, trace):
    result = cli("simulate", WORKED_EXAMPLE, "--trace", trace, "--engine-profile", engine, "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(document)
    tokens = document["tokenByToken"]

    assert tokens["requests"] == document["requests"]["count"] == 2400
    assert tokens["attainment"] > 0.9
    assert tokens["preempted"] == 0
    assert tokens["replicaRequestsPerSecond"] > 1
    assert 0.01 < tokens["p95Seconds"]["tpot"] < tokens["p95Seconds"]["ttft"] < tokens["p95Seconds"]["e2el"]


def test_the_table_has_a_line_of_it(cli, engine, trace):
    result = cli("simulate", WORKED_EXAMPLE, "--trace", trace, "--engine-profile", engine, env={"COLUMNS": "400"})

    assert "Token by token, this plan's replicas keep every limit for " in result.stdout
    assert "of 2,400 requests: TTFT p95 " in result.stdout
    assert "By that engine's profile a replica serves about " in result.stdout


def test_without_the_file_nothing_is_said_of_tokens(cli, trace):
    result = cli("simulate", WORKED_EXAMPLE, "--trace", trace, "-o", "json")

    assert json.loads(result.stdout)["tokenByToken"] is None


WRONG = {
    "no-objectives": (lambda spec: spec["workload"].pop("objectives"), "states no objective"),
    "no-lengths": (lambda spec: spec["workload"]["tokens"].pop("output"), "set spec.workload.tokens.output"),
    "no-replicas": (lambda spec: spec["bounds"].update(minReplicas=0), "set spec.bounds.minReplicas to 1 or more"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_plan_must_say_is_said_before_anything_is_played(cli, tmp_path, engine, trace, name):
    change, said = WRONG[name]
    result = cli("simulate", plan(tmp_path, change), "--trace", trace, "--engine-profile", engine)

    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_a_wrong_file_ends_with_1(cli, trace, tmp_path):
    result = cli("simulate", WORKED_EXAMPLE, "--trace", trace, "--engine-profile", str(tmp_path / "missing.yaml"))

    assert result.exit_code == 1
    assert "there is no such file" in result.stderr
