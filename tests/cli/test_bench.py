"""`servingplan bench`: against a small server with a stand-in for vLLM, and on files."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from cli.runs import ROOT, WORKED_EXAMPLE, process
from servingplan.api.benchmark_report import bench_report
from servingplan.api.documents import read_plans
from servingplan.api.resolve import resolve
from servingplan.benchmarking import measuring, validity
from servingplan.benchmarking.goodput import Block
from servingplan.benchmarking.record import document, read, write
from servingplan.benchmarking.run import Engine
from servingplan.benchmarking.search import Measure
from servingplan.planning.units import format_duration
from servingplan.reporting.hours import nominal_month
from support import fake_vllm
from support.benches import a_ramp, a_run, a_seen, a_void, an_engine_seen

RECORDED = ROOT / "tests" / "data" / "vllm" / "bench-throughput-0.32.json"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with fake_vllm.a_server() as url:
        yield url


@pytest.fixture
def bench(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The arguments of `bench run` with the stand-in, of which each run takes no time, and each probe a moment."""
    monkeypatch.setattr(measuring, "PROBE_S", 0.0)
    monkeypatch.setattr(validity, "PROBES_OFF", 1000.0)
    program = tmp_path / "vllm"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(fake_vllm.__file__)} "$@"\n')
    program.chmod(0o755)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"say {n}", "output_tokens": 5 + n}) + "\n" for n in range(40)))

    def arguments(*more: str) -> list[str]:
        return ["bench", "run", "--url", server, "--prompts", str(prompts), "--out", str(tmp_path / "ramp.json"),
                "--vllm", str(program), "--ttft", "p95:500ms", "--tpot", "p95:100ms", "--effort", "quick",
                "--start", "10", *more]  # fmt: skip

    return arguments


def kept(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "ramp.json").read_text())


def held_and_failed(*, good: float = 0.999):
    """Five a second hold 99.9 %, six hold 93 %: the worked example's replica."""
    return (*(a_run(5.0, good, seed=seed, a_block=1000) for seed in range(8)),
            *(a_run(6.0, 0.93, seed=seed, a_block=1000) for seed in range(3)))  # fmt: skip


@pytest.fixture
def ramp_file(tmp_path: Path) -> Callable[..., str]:
    def made(*runs, name: str = "capacity.json", **changes) -> str:
        file = tmp_path / name
        write(a_ramp(*(runs or held_and_failed()), **changes), file)
        return str(file)

    return made


# ---- bench run ----


def test_every_run_is_kept_and_the_same_command_goes_on(cli, bench, tmp_path):
    first = cli(*bench("--longest", "1ms"))
    assert first.exit_code == 4, first.output
    assert "OutOfTime" in first.output
    runs = kept(tmp_path)["runs"]
    assert len(runs) == 1

    room_for_one_more = format_duration(timedelta(seconds=2.2 * runs[0]["took_s"]))
    again = cli(*bench("--longest", room_for_one_more, "-o", "json"))
    assert again.exit_code == 4, again.output
    assert "Going on with 1 run " in again.stderr
    assert kept(tmp_path)["runs"][:1] == runs
    assert len(kept(tmp_path)["runs"]) > 1
    assert json.loads(again.stdout)["fingerprint"]["vllm"] == "0.32.0"
    assert json.loads(again.stdout)["fingerprint"]["cache"]["kv_cache_size_tokens"] == "4096"


def test_the_load_is_what_the_rules_ask_for(cli, bench, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_VLLM_SEEN", str(tmp_path / "seen.json"))
    cli(*bench("--longest", "1ms", "--cv", "1.5"))
    seen = json.loads((tmp_path / "seen.json").read_text())["arguments"]
    options = dict(pairwise(seen))
    assert "--max-concurrency" not in seen
    assert {"--ignore-eos", "--no-oversample", "--save-detailed"} <= set(seen)
    assert float(options["--burstiness"]) == pytest.approx(1 / 1.5**2)
    assert options["--request-rate"] == "10.0"
    assert json.loads(options["--extra-body"])["cache_salt"].startswith("ramp-")
    assert seen[seen.index("--goodput") + 1 : seen.index("--goodput") + 3] == ["ttft:500", "tpot:100"]


def test_another_ramp_is_not_written_over(cli, bench):
    cli(*bench("--longest", "1ms"))
    other = cli(*bench("--longest", "1ms", "--e2el", "p95:9s"))
    assert other.exit_code == 2
    assert "holds another ramp" in other.stderr
    assert "objectives" in other.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_ramp_that_is_stopped_leaves_no_process_and_keeps_its_file(bench, tmp_path, number):
    seen = tmp_path / "seen.json"
    environment = {**os.environ, "FAKE_VLLM": "hang", "FAKE_VLLM_SEEN": str(seen)}
    program = "from servingplan.cli.program import program"
    code = f"from servingplan.benchmarking import measuring\n{program}\nmeasuring.PROBE_S = 0.0\nprogram({bench()!r})"
    command = [sys.executable, "-c", code]
    running = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (seen.exists() and seen.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    child = json.loads(seen.read_text())["pid"]
    running.send_signal(number)
    _, told = running.communicate(timeout=60)

    assert running.returncode == 130, told
    assert "the same command goes on" in told
    assert "Traceback" not in told
    assert not Path(f"/proc/{child}").exists()
    assert kept(tmp_path)["runs"] == []


WRONG = {
    "no vLLM": (("--vllm", "/nowhere/vllm"), {}, 2, "install vLLM here, or name it with --vllm"),
    "vLLM that fails": ((), {"FAKE_VLLM": "fail"}, 3, "the tokenizer tiny was not found"),
    "no server": (("--url", "http://127.0.0.1:9"), {}, 3, "cannot be reached"),
    "another model": (("--model", "large"), {}, 2, "serves tiny, not large"),
    "no limit": (("--ttft", "1500ms"), {}, 2, "write it as p95:1500ms"),
    "no prompts": (("--prompts", "/nowhere.jsonl"), {}, 1, "cannot be read"),
}


@pytest.mark.parametrize(("more", "environment", "code", "says"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_clear_error(cli, bench, monkeypatch, more, environment, code, says):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = cli(*bench(*more))
    assert done.exit_code == code, done.output
    assert says in done.stderr
    assert done.stdout == ""


def test_a_server_that_asks_for_a_key_gets_it_from_the_environment(cli, bench, monkeypatch):
    with fake_vllm.a_server(key="secret") as url:
        refused = cli(*bench("--url", url, "--longest", "1ms"))
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        answered = cli(*bench("--url", url, "--longest", "1ms"))
    assert refused.exit_code == 3
    assert "answered 401" in refused.stderr
    assert "is its key set, as in OPENAI_API_KEY?" in refused.stderr
    assert "OutOfTime" in answered.output


def test_without_an_objective_there_is_nothing_to_find(cli, bench):
    arguments = [argument for argument in bench() if not argument.startswith(("--ttft", "--tpot", "p95"))]
    done = cli(*arguments)
    assert done.exit_code == 2
    assert "no objective is given" in done.stderr


def test_without_its_packages_bench_says_how_to_get_them(bench):
    code = (
        f"import sys\nsys.modules['aiohttp'] = None\nfrom servingplan.cli.program import program\nprogram({bench()!r})"
    )
    done = process(code=code)
    assert done.returncode == 2
    assert "pip install 'servingplan[bench]'" in done.stderr


# ---- bench show ----


def test_a_ramp_is_shown_with_its_levels_capacity_and_what_bound_it(cli, ramp_file):
    text = cli("bench", "show", ramp_file()).stdout
    assert "Capacity 5/s, below 6/s" in text
    assert "Pass" in text
    assert "Fail" in text
    assert "Bound by" in text
    assert "in flight" in text


def test_void_runs_are_shown_with_their_reason(cli, ramp_file):
    text = cli("bench", "show", ramp_file(*held_and_failed(), a_void(6.0, seed=9))).stdout
    assert "6/s, seed 9: Neighbour: said so" in text


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_picture_is_the_same_every_time(ramp_file, form):
    file = ramp_file()
    command = [sys.executable, "-m", "servingplan.cli", "bench", "show", file, "-o", form]
    first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG" if form == "png" else b"<?xml")


def test_the_data_is_what_is_kept(cli, ramp_file):
    shown = json.loads(cli("bench", "show", ramp_file(), "-o", "json").stdout)
    assert shown == json.loads(json.dumps(document(a_ramp(*held_and_failed()))))
    assert shown["finding"]["atCapacity"]["inFlightMean"] == 30


def test_a_damaged_file_is_one_clear_error(cli, ramp_file, tmp_path):
    file = Path(ramp_file())
    for text, says in (("{", "no JSON"), ("{}", "is no ramp"), (file.read_text().replace('"rate"', '"r"'), "damaged")):
        file.write_text(text)
        done = cli("bench", "show", str(file))
        assert done.exit_code == 1
        assert says in done.stderr


# ---- into a plan ----


def test_the_worked_examples_capacity_comes_from_a_bench_and_replicas_follow(cli, ramp_file, tmp_path):
    """99.9 % are good at 5/s and 93 % at 6/s: 5 a second, so 18 a second need four replicas, and one in reserve."""
    block = cli("bench", "show", ramp_file(), "--as-capacity")
    assert yaml.safe_load(block.stdout) == {"capacity": {"requestsPerSecond": 5.0}}

    plan = yaml.safe_load(Path(WORKED_EXAMPLE).read_text())
    plan["spec"].update(yaml.safe_load(block.stdout))
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    asked = json.loads(cli("plan", str(file), "--from", "2026-12-01", "--days", "1", "-o", "json").stdout)
    assert {entry["replicas"] for entry in asked["required"]} == {2, 5}


SHARES = {5.0: 0.995, 6.0: 0.93}


def simulated(rate: float) -> float:
    """The share of good requests, on a line through those at 5/s and 6/s: 99 % hold up to 5.07/s."""
    return min(1.0, SHARES[5.0] + (rate - 5.0) * (SHARES[6.0] - SHARES[5.0]))


def test_the_worked_example_comes_out_of_a_benchmark_that_it_refers_to(cli, tmp_path):
    """A search over runs that hold 99 % at 5/s and 93 % at 6/s finds 5/s: four and one replicas, 2,252 GPU-hours."""
    kept = a_ramp(start=5.0)
    while isinstance(step := kept.step, Measure):
        kept = kept.with_run(
            a_run(step.rate, simulated(step.rate), seed=len(kept.runs), a_block=1000, extended=step.extended)
        )
    write(kept, tmp_path / "ramp.json")
    result = cli("bench", "show", str(tmp_path / "ramp.json"), "--as-benchmark", "--name", "qwen3-14b-l40s").stdout
    plan = yaml.safe_load(Path(WORKED_EXAMPLE).read_text())
    plan["spec"]["capacity"] = {"benchmarkRef": {"name": "qwen3-14b-l40s"}}
    found = yaml.safe_load(result)
    found["metadata"]["namespace"] = plan["metadata"]["namespace"]
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump_all([plan, found]))
    asked = json.loads(cli("plan", str(file), "--from", "2026-12-01", "--days", "1", "-o", "json").stdout)
    assert found["status"]["capacity"]["requestsPerSecond"] == 5.0
    assert {entry["replicas"] for entry in asked["required"]} == {2, 5}
    (found_plan,) = read_plans([str(file)], standard_input=io.StringIO())
    resolved = resolve(found_plan.document.body, found_plan.references)
    month = nominal_month(resolved)
    assert (round(month.required), round(month.flat_peak)) == (2252, 3650)


def test_a_result_says_what_was_measured_at_what_and_of_which_pools(cli, ramp_file):
    eight = [a_run(27.3, 0.999, seed=seed, a_block=1000) for seed in range(8)]
    one, pool = ramp_file(name="one.json"), ramp_file(*eight, name="eight.json", replicas=8)
    found = json.loads(cli("bench", "show", pool, one, "--as-benchmark", "-o", "json").stdout)
    status = found["status"]
    assert (found["kind"], found["metadata"]["name"]) == ("CapacityBenchmark", "eight")
    assert [size["replicas"] for size in status["capacity"]["perPoolSize"]] == [1, 8]
    assert status["atCapacity"]["prefixHitShare"] == 0
    assert status["fingerprint"]["objectives"]["goodputShare"] == 0.99
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [("Complete", "True")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--as-benchmark", "--name", "Not A Name"), "is no name for a CapacityBenchmark"),
        (("--as-benchmark", "--as-capacity"), "state one of them"),
        (("--as-benchmark", "-o", "svg"), "is text, not svg"),
    ],
    ids=["a name that Kubernetes refuses", "two forms", "a picture"],
)
def test_a_result_that_cannot_be_printed_says_why(cli, ramp_file, options, says):
    done = cli("bench", "show", ramp_file(), *options)
    assert done.exit_code == 2
    assert says in done.stderr


def test_another_capacity_gives_other_replicas(cli, ramp_file, tmp_path):
    runs = [a_run(9.0, 0.999, seed=seed, a_block=1000) for seed in range(8)]
    runs += [a_run(9.2, 0.93, seed=seed, a_block=1000) for seed in range(3)]
    plan = yaml.safe_load(Path(WORKED_EXAMPLE).read_text())
    plan["spec"].update(yaml.safe_load(cli("bench", "show", ramp_file(*runs), "--as-capacity").stdout))
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    asked = json.loads(cli("plan", str(file), "--from", "2026-12-01", "--days", "1", "-o", "json").stdout)
    assert {entry["replicas"] for entry in asked["required"]} == {2, 3}


def test_ramps_of_two_pools_become_capacity_by_pool_size(cli, ramp_file):
    eight = [a_run(27.3, 0.999, seed=seed, a_block=1000) for seed in range(8)]
    one, pool = ramp_file(), ramp_file(*eight, name="eight.json", replicas=8)
    block = yaml.safe_load(cli("bench", "show", pool, one, "--as-capacity").stdout)
    assert block["capacity"]["perPoolSize"] == [
        {"replicas": 1, "requestsPerSecond": 5.0},
        {"replicas": 8, "requestsPerSecond": 3.41},
    ]


def test_where_nothing_held_there_is_no_capacity_to_state(cli, ramp_file):
    done = cli("bench", "show", ramp_file(*(a_run(5.0, 0.5, seed=seed) for seed in range(3))), "--as-capacity")
    assert done.exit_code == 4
    assert "no rate was seen to hold" in done.stderr


# ---- bench throughput ----


def test_a_nightly_batch_takes_so_long_on_the_reserve(cli):
    done = cli("bench", "throughput", "--result", str(RECORDED), "--requests", "100000", "--plan", WORKED_EXAMPLE,
               "-o", "json")  # fmt: skip
    shown = json.loads(done.stdout)
    assert shown["tokensPerSecond"] == pytest.approx(802.5, abs=0.1)
    assert shown["batch"]["hours"] == [{"replicas": 1, "hours": pytest.approx(3.33, abs=0.01)}]


def test_a_broken_throughput_is_one_clear_error(cli, tmp_path):
    file = tmp_path / "t.json"
    file.write_text(RECORDED.read_text().replace("requests_per_second", "other"))
    done = cli("bench", "throughput", "--result", str(file))
    assert done.exit_code == 1
    assert "requests_per_second" in done.stderr


# ---- the report of a runner ----


def test_a_report_says_how_the_ramp_ended_and_ends_well(cli, bench, tmp_path):
    file = tmp_path / "report"
    done = cli(*bench("--longest", "1ms", "--report", str(file)))
    assert done.exit_code == 0, done.output
    found = bench_report(file.read_text())
    assert (found["outcome"], found["vllm"]) == ("OutOfTime", "0.32.0")
    assert [level["runs"] + level["void"] for level in found["levels"]] == [1]
    assert len(file.read_bytes()) <= 4096


def judged(run, criteria: int):
    """The same run, by as many criteria, all alike."""
    blocks = tuple(Block(sent=block.sent, met=block.met * criteria) for block in run.blocks)
    return replace(run, blocks=blocks)


def test_a_ramp_that_was_found_reports_it_and_a_resumed_one_measures_nothing_again(cli, bench, tmp_path):
    cli(*bench("--longest", "1ms"))
    state = read(tmp_path / "ramp.json")
    runs = [a_run(10.0, 0.999, seed=n, a_block=1000) for n in range(5)]
    above = [a_run(11.0, 0.9, seed=n, a_block=1000) for n in range(5, 8)]
    two_criteria = tuple(judged(run, len(state.ramp.criteria)) for run in (*runs, *above))
    write(replace(state, runs=two_criteria), tmp_path / "ramp.json")
    file = tmp_path / "report"
    done = cli(*bench("--longest", "30m", "--report", str(file)))
    assert done.exit_code == 0, done.output
    found = bench_report(file.read_text())
    assert (found["outcome"], found["requestsPerSecond"], found["failingRequestsPerSecond"]) == ("Found", 10, 11)


def test_a_report_that_cannot_be_written_is_one_clear_error(cli, bench):
    done = cli(*bench("--longest", "1ms", "--report", "/nowhere/report"))
    assert done.exit_code == 2
    assert "--report /nowhere/report cannot be written" in done.stderr


# ---- bench run --confirm ----


TTFT_MISSES = {"ttft": 300, "tpot": 0, "e2el": 0}
SLOTS_TAKEN = an_engine_seen(kv_p90=0.1, waiting=20.0, running_p50=128.0, running_high=128.0)
BUDGET_FILLED = an_engine_seen(kv_p90=0.1, waiting=9.0, iteration_tokens=((512.0, 0.3), (2048.0, 0.7)))


@pytest.fixture
def a_found_ramp(cli, bench, tmp_path: Path) -> Callable[[Engine], tuple[str, ...]]:
    """A ramp of the server in --out that has its finding, bound as these figures of the failing rate say."""
    engine = ("--max-num-seqs", "128", "--max-num-batched-tokens", "2048")

    def made(seen: Engine) -> tuple[str, ...]:
        cli(*bench("--longest", "1ms", *engine))
        passing = [a_run(10.0, 0.999, seed=seed, a_block=1000) for seed in range(5)]
        failing = [
            a_run(11.0, 0.5, seed=seed, a_block=1000, seen=a_seen(misses=TTFT_MISSES, engine=seen)) for seed in range(3)
        ]
        file = tmp_path / "ramp.json"
        write(replace(read(file), runs=(*passing, *failing)), file)
        return engine

    return made


def test_half_as_many_at_once_are_asked_for_and_the_capacity_stays(cli, bench, a_found_ramp, tmp_path, monkeypatch):
    engine = a_found_ramp(SLOTS_TAKEN)
    monkeypatch.setenv("FAKE_VLLM_SEEN", str(tmp_path / "seen.json"))
    done = cli(*bench("--confirm", *engine, "-o", "json"))
    assert done.exit_code == 0, done.output
    options = dict(pairwise(json.loads((tmp_path / "seen.json").read_text())["arguments"]))
    assert options["--max-concurrency"] == "64"
    assert options["--request-rate"] == "11.0"
    shown = json.loads(done.stdout)
    assert shown["confirmation"]["bound"] == "Sequences"
    assert shown["confirmation"]["verdict"] == "Unclear"  # the stand-in's engine says nothing of how many ran
    assert shown["finding"]["requestsPerSecond"] == 10
    assert len(shown["runs"]) == 8


def test_what_the_client_cannot_change_is_told_and_the_result_stands(cli, bench, a_found_ramp):
    done = cli(*bench("--confirm", *a_found_ramp(BUDGET_FILLED)))
    assert done.exit_code == 0, done.output
    assert "with twice --max-num-batched-tokens, name it with --confirm-url" in done.stderr
    assert "Capacity 10/s, below 11/s" in done.stdout


def test_another_server_with_the_change_is_measured_at_the_rate_that_failed(cli, bench, server, a_found_ramp):
    done = cli(*bench("--confirm-url", server, *a_found_ramp(BUDGET_FILLED), "-o", "json"))
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["confirmation"]
    assert said["verdict"] == "Confirmed"
    assert "does not say whether" in said["doubt"][0]
    again = cli(*bench("--confirm-url", server, *("--max-num-seqs", "128", "--max-num-batched-tokens", "2048")))
    assert "Confirming" not in again.stderr
    assert "Confirmed by a run with" in again.stdout


# ---- what was measured on the real vLLM ----

REAL_RAMP = ROOT / "tests" / "data" / "ramps" / "tiny-0.32-first.json"


def test_a_real_ramp_is_shown_as_table_and_picture_and_replicas_follow_it(cli, tmp_path):
    """14 a second, so 18 a second need two replicas, and one in reserve."""
    text = cli("bench", "show", str(REAL_RAMP)).stdout
    assert "Capacity 14/s, below 19.6/s" in text
    assert "Bound by Sequences" in text
    assert "Confirmed by a run with 1 at once at most" in text
    picture = process("bench", "show", str(REAL_RAMP), "-o", "svg")
    assert picture.stdout.startswith("<?xml")

    block = cli("bench", "show", str(REAL_RAMP), "--as-capacity").stdout
    assert yaml.safe_load(block) == {"capacity": {"requestsPerSecond": 14.0}}
    plan = yaml.safe_load(Path(WORKED_EXAMPLE).read_text())
    plan["spec"].update(yaml.safe_load(block))
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    asked = json.loads(cli("plan", str(file), "--from", "2026-12-01", "--days", "1", "-o", "json").stdout)
    assert {entry["replicas"] for entry in asked["required"]} == {2, 3}
