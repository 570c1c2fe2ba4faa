"""`servingplan evaluate`: against small servers that fail as a test says, and on results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from cli.runs import ROOT, process
from servingplan.evaluating import asking
from support.small_openai import Fault, SmallServer, small_server

ITEMS = 200


def right(question: str) -> str:
    return question.removeprefix("say ")


@pytest.fixture
def servers() -> Iterator[tuple[SmallServer, SmallServer]]:
    """A baseline and a variant that know every answer."""
    with small_server(right) as baseline, small_server(right) as variant:
        yield baseline, variant


@pytest.fixture
def asked(servers, tmp_path: Path, monkeypatch) -> Callable[..., list[str]]:
    """The arguments that ask both."""
    for name in ("OPENAI_API_KEY", "BASELINE_API_KEY", "VARIANT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(asking.Manner, "__init__", quick(asking.Manner.__init__))
    file = tmp_path / "set.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"say {n}", "answer": str(n)}) + "\n" for n in range(ITEMS)))

    def arguments(*more: str) -> list[str]:
        baseline, variant = servers
        return ["evaluate", "--baseline", baseline.url, "--variant", variant.url, "--set", str(file),
                "--out", str(tmp_path / "answers.jsonl"), *more]  # fmt: skip

    return arguments


def quick(made):
    """The same manner without long waits."""
    return lambda self, **stated: made(self, **{**stated, "longest_wait_s": 0.01})


def lines(tmp_path: Path) -> list[dict]:
    return [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]


def shown(result) -> dict:
    return json.loads(result.stdout)


def test_an_equal_variant_passes(cli, asked, servers):
    done = cli(*asked("--minimum-score", "0.8", "-o", "json"))
    assert done.exit_code == 0, done.output
    found = shown(done)
    assert (found["verdict"], found["reason"]) == ("Passed", "NotWorse")
    assert found["difference"]["baselineDiscordant"] == 0
    assert found["difference"]["items"] == ITEMS
    assert len(servers[0].asked), len(servers[1].asked) == (2 * ITEMS, ITEMS)


def test_what_is_printed_is_what_the_schema_says(cli, asked, servers):
    servers[1].behave = lambda question: Fault(status=400) if question == "say 7" else right(question)
    schema = json.loads((ROOT / "docs/reference/evaluation.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(shown(cli(*asked("-o", "json"))))


def test_each_request_is_greedy_and_as_long_as_the_set_says(cli, asked, servers):
    cli(*asked("--max-tokens", "7", "--no-repeat-baseline"))
    body = servers[0].bodies[0]
    assert (body["temperature"], body["seed"], body["max_tokens"], body["model"]) == (0, 0, 7, "tiny")
    assert len(servers[0].asked) == ITEMS


def test_a_worse_variant_fails_and_its_answers_are_shown(cli, asked, servers):
    servers[1].behave = lambda question: "no <b>idea</b>" if question.endswith("3") else right(question)
    done = cli(*asked())
    assert done.exit_code == 4
    assert "Failed: -10.0 points" in done.stdout
    assert "no <b>idea</b>" in done.stdout
    page = cli(*asked("-o", "html"))
    assert page.exit_code == 4
    assert "no &lt;b&gt;idea&lt;/b&gt;" in page.stdout
    assert "http-equiv" not in page.stdout
    assert len(servers[1].asked) == ITEMS, "a second look asks nothing again"


def test_few_items_are_inconclusive_and_say_how_many_would_decide(cli, asked, tmp_path):
    file = tmp_path / "few.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"say {n}", "answer": str(n)}) + "\n" for n in range(10)))
    done = cli(*asked("--set", str(file)))
    assert done.exit_code == 4
    assert "Inconclusive" in done.stdout
    assert "about 161 items would decide that" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        pytest.param(Fault(status=400, text="too long"), "Refused", id="refused"),
        pytest.param(Fault(status=503), "ServerError", id="always busy"),
        pytest.param(Fault(wait_s=60), "Timeout", id="hangs"),
        pytest.param("  ", "EmptyAnswer", id="empty"),
    ],
)
def test_an_item_without_an_answer_is_wrong_and_shown_apart(cli, asked, servers, fault, failure):
    servers[1].behave = lambda question: fault if question in {"say 7", "say 9"} else right(question)
    found = shown(cli(*asked("-o", "json", "--timeout", "5s", "--margin", "0.2")))
    assert found["failures"] == {"baseline": 0, "variant": 2}
    assert found["score"]["variant"] == pytest.approx(1 - 2 / ITEMS)
    assert {item["variant"].get("failure") for item in found["items"]} == {None, failure}
    assert "the variant gave no answer to 2 items" in found["remarks"][0]


def test_a_busy_server_is_asked_again(cli, asked, servers):
    first: set[str] = set()

    def busy(question: str) -> str | Fault:
        if question in first:
            return right(question)
        first.add(question)
        return Fault(status=429)

    servers[1].behave = busy
    assert shown(cli(*asked("-o", "json")))["failures"] == {"baseline": 0, "variant": 0}


def test_no_more_requests_are_in_flight_than_asked_for(cli, asked, servers):
    for server in servers:
        server.behave = lambda question: Fault(status=200, wait_s=0.001, text=right(question))
    cli(*asked("--concurrency", "3"))
    assert [server.most_at_once for server in servers] == [3, 3]


def test_a_server_that_serves_both_gets_no_more(cli, asked, servers):
    baseline = servers[0]
    baseline.models = ("old", "new")
    baseline.behave = lambda question: Fault(status=200, wait_s=0.001, text=right(question))
    done = cli(*asked("--variant", baseline.url, "--baseline-model", "old", "--variant-model", "new"))
    assert done.exit_code == 0, done.output
    assert baseline.most_at_once == 4
    assert {body["model"] for body in baseline.bodies} == {"old", "new"}


def test_an_answer_that_is_cut_off_is_remarked(cli, asked, servers):
    servers[0].behave = lambda question: Fault(status=200, text=right(question), finish="length")
    assert "200 of the answers of the baseline ended at the limit of tokens" in " ".join(cli(*asked()).stdout.split())


def test_a_baseline_that_differs_from_itself_is_remarked(cli, asked, servers):
    seen: set[str] = set()

    def noisy(question: str) -> str:
        again = question in seen
        seen.add(question)
        return "?" if again and question.endswith("5") else right(question)

    servers[0].behave = noisy
    found = shown(cli(*asked("-o", "json")))
    assert found["difference"]["baselineDiscordant"] == pytest.approx(0.1)
    assert "part of what differs is noise" in found["remarks"][0]


# ---- servers that are gone, and going on ----


@pytest.mark.parametrize(
    "fault",
    [Fault(status=503), Fault(status=500), Fault(status=200, text="half an ans", finish="abort")],
    ids=["refuses everything", "has no engine", "aborts"],
)
def test_a_server_that_goes_away_ends_it_and_the_same_command_goes_on(cli, asked, servers, tmp_path, fault):
    variant = servers[1]

    def dies(question: str) -> str | Fault:
        if len(variant.asked) > 50:
            return fault
        return right(question)

    variant.behave = dies
    done = cli(*asked())
    assert done.exit_code == 3, done.output
    assert "the same command goes on" in done.stderr
    kept = lines(tmp_path)[1:]
    assert not any(line["failure"] for line in kept), "what a server that is gone does not answer does not count"

    variant.behave = right
    before = len(variant.asked)
    again = cli(*asked("-o", "json"))
    assert again.exit_code == 0, again.output
    assert "Going on with" in again.stderr
    assert shown(again)["verdict"] == "Passed"
    kept_of_variant = sum(line["role"] == "variant" for line in kept)
    assert len(set(variant.asked[before:]) - {asking.PROBE}) == ITEMS - kept_of_variant


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_what_is_stopped_keeps_its_answers_and_goes_on(cli, asked, servers, tmp_path, number):
    servers[1].behave = lambda question: Fault(status=200, wait_s=0.05, text=right(question))
    command = [sys.executable, "-m", "servingplan.cli", *asked()]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
    until = time.monotonic() + 120
    while len(servers[1].asked) < 20 and time.monotonic() < until:
        time.sleep(0.02)
    running.send_signal(number)
    told = running.communicate(timeout=60)[1]
    assert running.returncode == 130, told
    assert "the same command goes on" in told
    assert "Traceback" not in told

    servers[1].behave = right
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write('{"id": "torn\u00e4')
    done = cli(*asked("-o", "json"))
    assert done.exit_code == 0, done.output
    assert len(shown(done)["items"]) == ITEMS
    assert len({(line["id"], line["role"]) for line in lines(tmp_path)[1:]}) == 3 * ITEMS


def test_another_evaluation_is_not_written_over(cli, asked, servers, tmp_path):
    cli(*asked())
    other = cli(*asked("--max-tokens", "5"))
    assert other.exit_code == 2
    assert "holds another evaluation: its --max-tokens is 1024, asked is 5" in other.stderr


def test_a_finished_evaluation_is_judged_by_another_rule_without_its_servers(cli, asked, servers):
    servers[1].behave = lambda question: "?" if question.endswith("13") else right(question)
    assert shown(cli(*asked("-o", "json")))["verdict"] == "Inconclusive"
    for server in servers:
        server.behave = lambda _: Fault(status=500)
        server.list_models_status = 500
    done = cli(*asked("--margin", "0.1", "-o", "json"))
    assert done.exit_code == 0, done.output


def test_keys_are_taken_from_the_environment_each_servers_own(cli, asked, servers, monkeypatch):
    servers[0].key, servers[1].key = "one", "two"
    refused = cli(*asked())
    assert refused.exit_code == 3
    assert "401" in refused.stderr
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("VARIANT_API_KEY", "two")
    assert cli(*asked()).exit_code == 0


def test_a_key_that_is_refused_on_the_way_ends_it(cli, asked, servers, tmp_path):
    page = "not allowed " + "x" * 5_000_000
    servers[1].behave = lambda question: Fault(status=403, text=page) if question == "say 90" else right(question)
    done = cli(*asked())
    assert done.exit_code == 3
    assert "403: not allowed xxx" in done.stderr
    assert len(done.stderr) < 1_000
    assert not any(line["failure"] for line in lines(tmp_path)[1:])


WRONG = {
    "another model": (("--variant-model", "large"), 2, "serves tiny, not large: see --variant-model"),
    "no server": (("--baseline", "http://127.0.0.1:9"), 3, "cannot be reached"),
    "no set": (("--set", "/nowhere.jsonl"), 1, "cannot be read"),
    "no span": (("--timeout", "soon"), 2, "--timeout"),
    "results too": (("--results", "x"), 2, "leave out --baseline"),
}


@pytest.mark.parametrize(("more", "code", "says"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_clear_error(cli, asked, tmp_path, more, code, says):
    done = cli(*asked(*more))
    assert done.exit_code == code, done.output
    assert says in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "answers.jsonl").exists()


def test_what_is_missing_is_named(cli):
    done = cli("evaluate", "--baseline", "http://a")
    assert done.exit_code == 2
    assert "--variant, --set, --out missing" in done.stderr


def test_without_its_packages_evaluate_says_how_to_get_them():
    code = (
        "import sys\nsys.modules['re2'] = None\nfrom servingplan.cli.program import program\n"
        "program(['evaluate', '--results', 'x'])"
    )
    done = process(code=code)
    assert done.returncode == 2
    assert "pip install 'servingplan[evaluate]'" in done.stderr


# ---- the report, and results of one's own ----


def test_a_report_fits_a_termination_message_and_ends_well_whatever_the_verdict(cli, asked, servers, tmp_path):
    long = "m" * 3000
    for server in servers:
        server.models = (long,)
    servers[1].behave = lambda _: "?"
    report = tmp_path / "report"
    done = cli(*asked("--report", str(report)))
    assert done.exit_code == 0, done.output
    assert len(report.read_bytes()) <= 4096
    found = json.loads(report.read_text())
    assert found["format"] == "servingplan.dev/evaluation-report/v1"
    assert (found["verdict"], found["reason"]) == ("Failed", "Worse")
    assert found["set"]["items"] == ITEMS
    assert "items" not in found


def scores(tmp_path: Path, *rows: dict) -> str:
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps({"id": str(number), **row}) + "\n" for number, row in enumerate(rows)))
    return str(file)


def test_scores_of_ones_own_are_judged_by_the_same_rule(cli, tmp_path):
    rows = [{"baseline": 0.8, "variant": 0.79, "again": 0.8}] * 300
    done = cli("evaluate", "--results", scores(tmp_path, *rows), "--minimum-score", "0.7", "-o", "json")
    assert done.exit_code == 0, done.output
    assert shown(done)["difference"]["mean"] == pytest.approx(-0.01)
    fails = cli("evaluate", "--results", scores(tmp_path, *rows), "--minimum-score", "0.9")
    assert fails.exit_code == 4
    assert "below the minimum of 90.0%" in " ".join(fails.stdout.split())
    assert "the baseline itself scores 80.0%" in " ".join(fails.stdout.split())
