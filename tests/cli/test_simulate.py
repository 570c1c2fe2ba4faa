"""``servingplan simulate``: its table as kept in golden/, its contract, and every way to use it wrongly."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cli.runs import ROOT, WORKED_EXAMPLE, same_as_golden
from servingplan.simulation.scenarios.catalogue import SCENARIOS

SCHEMA = json.loads((ROOT / "docs/reference/simulation.schema.json").read_text())
DAY = ("--profile", "--from", "2026-12-01", "--days", "1")
MORNING = (2.0,) * 6 + (18.0,) * 6
"""Requests/s in steps of ten minutes."""


def rates(folder: Path, values: Sequence[float] = MORNING, name: str = "rates.csv") -> str:
    """A table of rates, with a tenant that nobody asks for."""
    lines = ["t_s,gap,c1_rps,c2_rps", *(f"{600 * i},0,{value},99" for i, value in enumerate(values))]
    file = folder / name
    text = "\n".join(lines) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(file)


def traced(file: str, *more: str) -> tuple[str, ...]:
    return (
        "simulate",
        WORKED_EXAMPLE,
        "--trace",
        file,
        "--start",
        "2026-12-01T07:00",
        "--column",
        "rate=c1_rps",
        *more,
    )


def found(result):
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_table_is_what_a_newcomer_sees_first(cli):
    result = cli("simulate", WORKED_EXAMPLE, *DAY, "--scenario", "all", env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 100
    same_as_golden("simulate.txt", result.stdout)


def test_json_is_the_contract(cli):
    document = found(cli("simulate", WORKED_EXAMPLE, *DAY, "--scenario", "all", "--gpu-hour", "2", "-o", "json"))

    plan = document["policies"][0]
    assert (plan["policy"], plan["attainment"]) == ("plan", 1.0)
    assert plan["cost"] == pytest.approx(2 * plan["gpuHours"]["total"], abs=0.02)
    assert document["requests"]["count"] == (12 * 2 + 12 * 18) * 3600
    assert [scenario["scenario"] for scenario in document["scenarios"]] == list(SCENARIOS)
    assert list(plan["scenarios"]) == list(SCENARIOS)


@pytest.mark.parametrize("name", ["rates.csv", "rates.csv.gz"])
def test_rates_are_read_packed_or_not_and_one_tenant_is_chosen(cli, tmp_path, name):
    document = found(cli(*traced(rates(tmp_path, name=name), "-o", "json")))

    assert document["from"] == "2026-12-01T06:00:00Z"
    assert document["requests"] | {"files": []} == {
        "files": [],
        "notes": [],
        "count": round(600 * sum(MORNING)),
        "meanPerSecond": 10,
        "busiestTenMinutesPerSecond": pytest.approx(18, rel=0.05),
        "stepSeconds": 600,
        "drawn": {"seed": 1, "dispersion": 3.0},
    }


def test_a_part_of_a_trace_can_be_played(cli, tmp_path):
    document = found(cli(*traced(rates(tmp_path), "--from", "2026-12-01T08:00", "--days", "1", "-o", "json")))

    assert (document["from"], document["to"]) == ("2026-12-01T07:00:00Z", "2026-12-01T08:00:00Z")
    assert document["requests"]["count"] == 600 * 6 * 18


def test_requests_of_a_log_come_when_they_came(cli, tmp_path):
    file = tmp_path / "log.csv"
    times = [f"2026-12-01T08:{second // 60:02d}:{second % 60:02d}+01:00" for second in range(2400)]
    file.write_text("time,input_tokens\n" + "".join(f"{time},100\n" for time in times))
    document = found(cli("simulate", WORKED_EXAMPLE, "--trace", str(file), "-o", "json"))

    assert (document["requests"]["drawn"], document["requests"]["stepSeconds"]) == (None, 30)
    assert (document["from"], document["requests"]["count"]) == ("2026-12-01T07:00:00Z", 2400)
    assert document["policies"][0]["attainment"] == 1


def test_the_same_command_says_the_same(cli, tmp_path):
    once, again = (cli(*traced(rates(tmp_path), "-o", "json")).stdout for _ in range(2))
    assert once == again


def test_a_plan_that_misses_too_much_ends_with_4(cli, tmp_path):
    late = traced(rates(tmp_path, [2.0] * 6 + [40.0] * 6))
    assert cli(*late, "--require", "4%").exit_code == 0
    result = cli(*late, "--require", "99%")

    assert result.exit_code == 4
    assert "this plan" in result.stdout
    assert "llm/support-chat attains" in result.stderr
    assert "and 99% is required" in result.stderr


WRONG = {
    "nothing-to-play": ((), 2, "nothing to play: state a log with --trace, or --profile"),
    "both": (("--profile", "--trace", "x"), 2, "state one of them"),
    "unknown-scenario": (("--profile", "--scenario", "flood"), 2, "there are: node-lost, prometheus-gone, slow-rises"),
    "no-share": (("--profile", "--require", "much"), 2, "--require: 'much' is not a percentage"),
    "more-than-all": (("--profile", "--require", "101%"), 2, "nobody attains more than 100%"),
    "no-span": (("--profile", "--start-time", "soon"), 2, "--start-time: 'soon' is not a duration"),
    "no-file": (("--trace", "missing.csv"), 1, "missing.csv: there is no such file"),
}


@pytest.mark.parametrize(("flags", "code", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_played_is_said_in_one_sentence(cli, flags, code, says):
    result = cli("simulate", WORKED_EXAMPLE, *flags)
    assert result.exit_code == code
    assert says in result.stderr


def test_a_trace_that_is_too_short_is_named(cli, tmp_path):
    file = rates(tmp_path, [2.0, 2.0])
    result = cli(*traced(file))

    assert result.exit_code == 1
    assert f"{file}: it holds 20 minutes of requests; 30 are the least [TraceTooShort]" in result.stderr


def test_a_trace_whose_column_is_not_there_is_named(cli, tmp_path):
    result = cli(*traced(rates(tmp_path), "--column", "rate=c9_rps"))
    assert result.exit_code == 1
    assert "it has no column 'c9_rps'; there are: c1_rps, c2_rps" in result.stderr


def test_a_plan_without_capacity_cannot_be_played(cli, plan_file):
    result = cli("simulate", plan_file(capacity={}), *DAY)
    assert result.exit_code == 1
    assert "spec.capacity" in result.stderr


def test_the_help_names_every_scenario(cli):
    words = " ".join(cli("simulate", "--help").output.split())
    assert all(name in words for name in SCENARIOS)
