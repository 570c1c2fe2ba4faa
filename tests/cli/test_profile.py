"""``servingplan profile``, as people call it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cli.runs import same_as_golden
from servingplan.api.yaml_reader import read_yaml
from servingplan.cli.program import CHECK, PROBLEMS, USAGE
from support.logs import LOGS, MONDAY, office
from support.specs import scheduled


def times(days: int = 15) -> Iterator[float]:
    """Arrivals of an office, evenly spread: a request every 10 to 100 s."""
    rate, second = office(day=0.1, night=0.01), 0.0
    while second < days * 86400:
        yield MONDAY.timestamp() + second
        second += 1 / rate(MONDAY + timedelta(seconds=math.floor(second)))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    file = tmp_path_factory.mktemp("l") / "gateway.csv"
    rows = [f"{at:.0f},{500 + i % 700},{100 + i % 90}" for i, at in enumerate(times())]
    file.write_text("time,prompt_tokens,completion_tokens\n" + "\n".join([*rows, "broken"]) + "\n")
    return str(file)


@pytest.fixture
def week(cli, log, tmp_path):
    file = tmp_path / "week.json"
    file.write_text(cli("profile", "from-log", log, "--time-zone", "Europe/Berlin", "-o", "json").stdout)
    return str(file)


def test_a_log_shows_its_week_and_a_schedule(cli, log, monkeypatch):
    monkeypatch.chdir(Path(log).parent)
    answer = cli("profile", "from-log", "gateway.csv", "--time-zone", "Europe/Berlin", "--capacity", "0.04")

    assert answer.exit_code == 0, answer.output
    same_as_golden("profile.txt", answer.stdout)


def test_what_is_kept_shows_the_same(cli, log, week):
    direct = cli("profile", "from-log", log, "--time-zone", "Europe/Berlin")
    kept = cli("profile", "show", week)

    assert kept.stdout == direct.stdout


def test_manifests_are_valid_and_planned_by_the_other_verbs(cli, week, tmp_path):
    answer = cli(
        "profile", "show", week, "--name", "support-chat", "-n", "llm", "--capacity", "0.04", "-o", "manifests"
    )
    file = tmp_path / "plan.yaml"
    file.write_text(answer.stdout)

    assert cli("validate", str(file)).exit_code == 0
    plan = json.loads(cli("plan", str(file), "--from", "2026-12-07", "--days", "7", "-o", "json").stdout)
    assert plan["plan"] == {"namespace": "llm", "name": "support-chat"}
    assert {each["replicas"] for each in plan["required"]} == {2, 4}
    assert 'start: "08:00"' in answer.stdout


def test_without_a_capacity_the_manifests_say_what_to_add(cli, week, tmp_path):
    answer = cli("profile", "show", week, "--name", "support-chat", "-o", "manifests")
    file = tmp_path / "plan.yaml"
    file.write_text(answer.stdout)

    assert "then state --capacity" in answer.stderr
    assert cli("validate", str(file)).exit_code == PROBLEMS


def test_targets_are_named_by_kind(cli, week):
    answer = cli("profile", "show", week, "--name", "a", "--target", "ScaledObject/vllm", "-o", "manifests")
    *_, (_, plan) = read_yaml(answer.stdout)

    assert plan["spec"]["targetRef"] == {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "vllm"}


def test_pictures_and_pages_are_made(cli, week):
    svg = cli("profile", "show", week, "-o", "svg")
    html = cli("profile", "show", week, "-o", "html", "--name", "<b>")

    assert "<svg" in svg.stdout
    assert "&lt;b&gt;" in html.stdout
    assert "<b>" not in html.stdout


def test_a_log_in_a_pipe_with_times_from_a_start(cli):
    text = (LOGS / "servegen-tenants-10min.csv").read_bytes()
    start = ("--start", "2025-04-01T00:00", "--column", "rate=c26_rps")
    answer = cli("profile", "from-log", "-", "--time-zone", "Asia/Shanghai", *start, "-o", "json", input=text)
    found = json.loads(answer.stdout)

    assert (found["start"], found["step_seconds"]) == ("2025-03-31T16:00:00Z", 600.0)


def test_naive_times_say_in_which_zone_they_were_read(cli):
    answer = cli("profile", "from-log", str(LOGS / "azure.csv"), "--time-zone", "UTC")

    assert "3 times have no offset and were read as UTC (--log-time-zone)" in answer.stdout
    assert "too short a log" in answer.stdout


def test_what_can_wait_is_told_apart(cli):
    options = ("--time-zone", "UTC", "--deferrable", "tenant=nightly", "-o", "json")
    found = json.loads(cli("profile", "from-log", str(LOGS / "gateway.csv"), *options).stdout)

    assert (found["requests"], found["deferrable"]) == (3, 1)
    assert any("tenant=nightly can wait" in remark for remark in found["source"]["remarks"])


@pytest.mark.parametrize(
    ("options", "why", "code"),
    [
        (("--time-zone", "Mars/Base"), "--time-zone 'Mars/Base' is no time zone", USAGE),
        ((), "Missing option '--time-zone'", USAGE),
        (("--time-zone", "UTC", "--format", "xml"), "--format 'xml' is not known; there are: otlp", USAGE),
        (("--time-zone", "UTC", "--column", "when=ts"), "--column 'when=ts': write one of time, input", USAGE),
        (("--time-zone", "UTC", "--path", "("), "--path '(' is no regular expression", USAGE),
        (("--time-zone", "UTC", "--deferrable", "nightly"), "--deferrable 'nightly': write one of tenant", USAGE),
        (("--time-zone", "UTC", "--holidays", "XX"), "--holidays XX", USAGE),
        (("--time-zone", "UTC", "--capacity", "0"), "--capacity 0 must be more than 0", USAGE),
        (("--time-zone", "UTC", "--target", "vllm"), "--target 'vllm': write KIND/NAME", USAGE),
        (("--time-zone", "UTC", "-o", "manifests"), "-o manifests needs --name", USAGE),
        (
            ("--time-zone", "UTC", "--format", "envoy"),
            "read as an access log of Envoy, 4 of 4 lines are broken",
            PROBLEMS,
        ),
        (("--time-zone", "UTC", "--name", "a", "-o", "manifests"), "0.0 hours are not enough", PROBLEMS),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_one_sentence(cli, options, why, code):
    answer = cli("profile", "from-log", str(LOGS / "gateway.csv"), *options)

    assert why in " ".join(answer.output.split())
    assert answer.exit_code == code
    assert "Traceback" not in answer.output


def test_a_start_that_is_missing_is_asked_for(cli):
    answer = cli("profile", "from-log", str(LOGS / "mooncake.jsonl"), "--time-zone", "UTC")

    assert "state it with --start" in answer.output
    assert answer.exit_code == PROBLEMS


def test_show_wants_a_profile(cli, tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("{}")

    assert "it is no profile" in cli("profile", "show", str(file)).output
    assert "it cannot be read" in cli("profile", "show", str(tmp_path / "none.json")).output


# ---- diff ----


@pytest.fixture
def too_small(plan_file):
    return plan_file(capacity={"requestsPerSecond": 0.04}, bounds={"maxReplicas": 9}, **scheduled(windows=None))


def test_a_plan_is_compared_with_a_profile_or_a_log(cli, week, log, too_small):
    kept = cli("profile", "diff", too_small, week)

    assert kept.exit_code == 0, kept.output
    assert "too many" in kept.stdout
    assert cli("profile", "diff", too_small, log).stdout == kept.stdout


def test_a_patch_is_what_kubectl_merges(cli, week, plan_file):
    plan = plan_file(capacity={"requestsPerSecond": 0.04}, **scheduled(base={"requestsPerSecond": 0}, windows=None))
    ((_, patch),) = read_yaml(cli("profile", "diff", plan, week, "-o", "patch").stdout)

    schedule = patch["spec"]["schedule"]
    assert schedule["base"] == {"requestsPerSecond": 0.01}
    assert [(each["start"], each["end"]) for each in schedule["windows"]] == [("08:00", "18:00")]


def test_a_check_fails_where_a_plan_falls_short(cli, week, plan_file):
    short = plan_file(capacity={"requestsPerSecond": 0.04}, **scheduled(base={"requestsPerSecond": 0}, windows=None))
    answer = cli("profile", "diff", short, week, "--check", "-o", "json")

    assert answer.exit_code == CHECK
    assert json.loads(answer.stdout)["shortHoursPerWeek"] == 168
