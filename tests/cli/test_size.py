"""``servingplan size`` as people and programs use it: outputs as kept in golden/, inputs, exit codes, the page."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator

from cli.runs import ROOT, SIZE_EXAMPLE, WORKED_EXAMPLE, process, same_as_golden
from cli.test_program import HEAVY, loaded_after
from servingplan.api.yaml_reader import read_yaml
from support.checkpoints import config, decoder, write_model
from support.models import DATA, MODELS
from support.specs import document

SCHEMA = json.loads((ROOT / "docs/reference/size.schema.json").read_text())
LLAMA, GPT_OSS, GEMMA = (str(MODELS / f"{name}.json") for name in ("llama-3.1-8b", "gpt-oss-20b", "gemma-3-27b"))
OLD_LOG = str(DATA / "vllm/start-0.19-gpt-oss-20b.log")
WORKLOAD = ("--rate", "18", "--input-tokens", "p50:600,p95:2400", "--output-tokens", "p50:180,p95:600")
OBJECTIVES = ("--ttft", "p95:1500ms", "--tpot", "p95:60ms")


def as_json(cli, *arguments):
    result = cli("size", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(found)
    return found


def only(found):
    (option,) = found["options"]
    return option


# ---- what is shown ----


def test_the_worked_example_on_one_accelerator(cli):
    result = cli("size", SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--accelerator", "L40S", "--price", "L40S=1.10")
    assert result.exit_code == 0, result.output
    same_as_golden("size.txt", result.stdout)
    assert "Note: 18 requests/s, the highest of llm/support-chat: window working-day" in result.stderr
    assert "Note: 5 requests/s a replica, the capacity of llm/support-chat, counts" in result.stderr


def test_the_worked_example_as_json_is_the_contract(cli):
    found = as_json(cli, SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--accelerator", "L40S", "--price", "L40S=1.10")
    same_as_golden("size.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    assert [level["replicas"] for level in only(found)["levels"]] == [4, 8, 5]
    assert only(found)["capacity"] == {"requestsPerSecond": 5.0, "source": "measured"}


def test_models_formats_and_accelerators_side_by_side(cli):
    result = cli(
        "size", LLAMA, GEMMA, "--compare", "--quantization", "own", "--quantization", "fp8", *WORKLOAD, *OBJECTIVES,
        "--max-model-len", "8192", "--accelerator", "L40S", "--accelerator", "H100-SXM", "--accelerator", "L4",
        "--price", "L40S=1.1", "--price", "H100-SXM=2.5", "--price", "L4=0.6",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    same_as_golden("size-compare.txt", result.stdout)


def test_one_replica_without_a_workload(cli):
    result = cli("size", GPT_OSS, "--accelerator", "h100-sxm")
    assert result.exit_code == 0, result.output
    same_as_golden("size-replica.txt", result.stdout)


def test_json_and_yaml_hold_the_same(cli):
    arguments = (LLAMA, GEMMA, *WORKLOAD, "--max-model-len", "8192")
    ((_, as_yaml),) = read_yaml(cli("size", *arguments, "-o", "yaml").stdout)
    assert as_yaml == as_json(cli, *arguments)


@pytest.mark.parametrize("arguments", [(LLAMA,), (LLAMA, GPT_OSS, GEMMA, *WORKLOAD), (LLAMA, *WORKLOAD, *OBJECTIVES)])
def test_every_kind_of_question_keeps_the_contract(cli, arguments):
    found = as_json(cli, *arguments, "--max-model-len", "8192")
    assert len(found["options"]) == 11 * sum(argument.endswith(".json") for argument in arguments)


def test_help_loads_neither_models_nor_plans():
    assert not loaded_after(["size", "--help"]) & set(HEAVY)


def test_data_for_programs_loads_no_tables_and_no_pictures():
    arguments = ["size", LLAMA, *WORKLOAD, "-o", "json"]
    assert not loaded_after(arguments) & {"rich", "matplotlib", "jinja2", "kubernetes", "kopf", "aiohttp"}


# ---- where figures come from ----


def test_headers_are_read_where_there_are_some(cli, tmp_path):
    folder = write_model(tmp_path / "chat", config("llama-3.1-8b"), decoder(config("llama-3.1-8b")))
    found = only(as_json(cli, str(folder), "--accelerator", "H100-SXM"))
    assert (found["model"]["name"], found["model"]["weightsFrom"]) == ("chat", "safetensors headers")
    assert found["storage"]["modelsGiB"] == pytest.approx(2 * 16_060_522_496 / 2**30, abs=0.01)


def test_a_log_takes_the_place_of_what_is_estimated(cli):
    found = only(as_json(cli, GPT_OSS, "--log", OLD_LOG, "--accelerator", "H100-SXM", "--max-model-len", "9"))
    assert (found["engine"]["vllm"], found["engine"]["maxModelLen"], found["layout"]["tensor"]) == ("0.19", 8192, 2)
    assert (found["cache"]["tokens"], found["cache"]["concurrency"]) == (2_591_776, 316.07)
    assert (found["memory"]["from"], found["memory"]["cacheGiB"], found["memory"]["graphsGiB"]) == ("log", 59.32, 0)
    assert abs(found["memory"]["logDisagreesPercent"]) < 0.1


def test_our_own_log_on_a_cpu_is_read_too(cli):
    found = only(
        as_json(cli, str(MODELS / "tiny.json"), "--log", str(DATA / "vllm/start-0.32-tiny.log"), "--accelerator", "L4")
    )
    assert found["cache"]["tokens"] == 2_097_152
    assert found["memory"]["cacheGiB"] == 1.0


def test_flags_win_over_the_plan(cli):
    flags = ("--rate", "7", "--capacity", "3.5", "--max-model-len", "4096", "--tensor", "2", "--ttft", "p99:900ms")
    found = as_json(cli, SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--accelerator", "L40S", *flags)
    assert found["workload"]["requestsPerSecond"] == 7
    assert found["workload"]["objectives"]["ttft"] == {"percentile": "p99", "limitMs": 900}
    assert found["workload"]["objectives"]["tpot"]["limitMs"] == 60
    assert only(found)["capacity"]["requestsPerSecond"] == 3.5
    assert (only(found)["engine"]["maxModelLen"], only(found)["layout"]["tensor"]) == (4096, 2)


def test_the_engine_of_a_plan_is_the_one_that_is_sized(cli):
    found = only(as_json(cli, SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--accelerator", "L40S"))
    assert found["engine"]["maxNumSeqs"] == 128
    assert found["engine"]["maxModelLen"] == 16384
    assert found["model"]["quantization"] == "fp8"


def test_a_plan_that_serves_another_format_than_the_checkpoint_is_noted(cli, plan_file):
    engine = {**document()["spec"]["engine"], "quantization": "awq"}
    result = cli("size", LLAMA, "--plan", plan_file(engine=engine), "--max-model-len", "8192")
    assert "Note: llm/support-chat serves awq, and config.json says that nothing is quantised" in result.stderr


def test_the_capacity_of_a_plan_belongs_to_one_accelerator(cli):
    result = cli("size", SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--compare", "-o", "json")
    assert "is not used: it was measured on one accelerator" in result.stderr
    assert {option["capacity"]["source"] for option in json.loads(result.stdout)["options"] if option["passes"]} == {
        "estimate"
    }


def test_a_capacity_can_be_said_of_one_of_several(cli):
    found = as_json(cli, LLAMA, *WORKLOAD, "--accelerator", "L40S", "--accelerator", "H200", "--max-model-len", "8192",
                    "--capacity", "llama-3.1-8b@l40s=4.2")  # fmt: skip
    assert [option["capacity"]["source"] for option in found["options"]] == ["measured", "estimate"]


def test_a_data_parallel_replica_shares_its_capacity(cli, plan_file):
    engine = {**document()["spec"]["engine"], "parallelism": {"data": 2}}
    result = cli("size", LLAMA, "--plan", plan_file(engine=engine), "--accelerator", "L40S", "-o", "json")
    assert "shared by the 2 data-parallel engines of a replica" in result.stderr
    assert only(json.loads(result.stdout))["capacity"] == {"requestsPerSecond": 2.5, "source": "measured"}


def test_without_objectives_it_says_what_capacity_means(cli):
    assert "no objective is stated: capacity is where the cache" in cli("size", LLAMA, *WORKLOAD).stderr


def test_a_failed_node_takes_all_that_it_holds(cli):
    common = (SIZE_EXAMPLE, "--plan", WORKED_EXAMPLE, "--accelerator", "L40S")
    assert [level["replicas"] for level in only(as_json(cli, *common, "--failure", "node"))["levels"]] == [4, 8, 12]


def test_a_profile_and_overrides_count_towards_the_highest_rate(cli, plan_file):
    schedule = {**document()["spec"]["schedule"], "overrides": [
        {"name": "launch", "start": "2026-12-01T07:00", "end": "2026-12-01T19:00", "requestsPerSecond": 40}
    ]}  # fmt: skip
    result = cli("size", LLAMA, "--plan", plan_file(schedule=schedule), "--max-model-len", "8192")
    assert "Note: 40 requests/s, the highest of llm/support-chat: override launch" in result.stderr


def test_a_table_of_ones_own_takes_the_place_of_the_shipped_one(cli, tmp_path):
    table = tmp_path / "gpus.yaml"
    table.write_text(
        "accelerators: [{name: X1, memory: 40, bandwidth: 900, tflops: 200, link: PCIe, gpusPerNode: 4, price: 1}]"
    )
    found = only(as_json(cli, LLAMA, "--accelerators", str(table), "--max-model-len", "8192"))
    assert (found["accelerator"]["name"], found["monthlyCost"]) == ("X1", 730)


# ---- exit codes ----


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gone",), 1, "gone: there is no such file: check the path [FileNotFound]"),
        ((LLAMA, "--accelerators", "gone.yaml"), 1, "gone.yaml: there is no such file"),
        ((LLAMA, "--log", "gone.log"), 1, "gone.log: there is no such file"),
        ((LLAMA, "--plan", "gone.yaml"), 1, "gone.yaml: there is no such file"),
        ((), 2, "Missing argument 'MODEL...'"),
        ((LLAMA, "--accelerator", "X9"), 2, "there is no accelerator 'X9' in the table; there are: L4, A10"),
        ((LLAMA, "--price", "L4"), 2, "--price 'L4': write for example L4=1.10"),
        ((LLAMA, "--price", "L4=-1"), 2, "--price 'L4=-1'"),
        ((LLAMA, "--rate", "5"), 2, "a workload needs --input-tokens"),
        ((LLAMA, "--ttft", "p95:1s"), 2, "a workload needs --rate, or --plan"),
        ((LLAMA, "--capacity", "5"), 2, "a workload needs --rate, or --plan"),
        ((LLAMA, *WORKLOAD, "--burst", "lots"), 2, "--burst 'lots': write a multiple"),
        ((LLAMA, *WORKLOAD, "--burst", "0.5x1m"), 2, "--burst '0.5x1m'"),
        ((LLAMA, *WORKLOAD, "--burst", "2x0s"), 2, "--burst must be longer than 0s"),
        ((LLAMA, *WORKLOAD, "--ttft", "fast"), 2, "--ttft: 'fast' has no percentile"),
        ((LLAMA, *WORKLOAD, "--tpot", "p95:fast"), 2, "--tpot: 'fast' is not a duration"),
        ((LLAMA, *WORKLOAD, "--capacity", "5"), 2, "--capacity 5: say of what, as in llama-3.1-8b@L4=5"),
        ((LLAMA, *WORKLOAD, "--capacity", "0", "--accelerator", "L4"), 2, "--capacity '0': write requests/s"),
        ((LLAMA, *WORKLOAD, "--capacity", "x@L4=5"), 2, "there is no model 'x'; there are: llama-3.1-8b"),
        ((LLAMA, "--rate", "5", "--input-tokens", "600"), 2, "--input-tokens '600': write quantiles"),
        ((LLAMA, "--rate", "5", "--input-tokens", "p50:9,p95:3", "--output-tokens", "p50:1"), 2, "less than p50"),
        ((LLAMA, "--vllm", "latest"), 2, "--vllm: 'latest' is no version"),
        ((LLAMA, LLAMA), 2, "two models are called llama-3.1-8b: name them"),
        ((LLAMA, GEMMA, "--log", OLD_LOG, "--accelerator", "L4"), 2, "--log belongs to one model on one accelerator"),
        ((GPT_OSS, "--log", OLD_LOG), 2, "the log's GPU has 79.19 GiB, which is A100-80GB, H100-SXM: say"),
        ((GPT_OSS, "--quantization", "fp8"), 2, "is stored as mxfp4 already"),
        ((LLAMA, "--metrics-retention", "long"), 2, "--metrics-retention: 'long' is not a duration"),
        ((LLAMA, "--kv-cache-dtype", "int3"), 2, "Invalid value for '--kv-cache-dtype'"),
    ],
    ids=lambda value: " ".join(value)[-50:] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_what_cannot_be_sized_is_one_clear_sentence(cli, arguments, code, words):
    result = cli("size", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert not result.stdout
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GEMMA, "--accelerator", "L4", "--tensor", "1"), "gemma-3-27b on L4: even on TP1 weights and margins need"),
        ((LLAMA, *WORKLOAD, "--tpot", "p95:1ms", "--accelerator", "H100-SXM"), "one request at a time breaks TPOT"),
        ((LLAMA, GEMMA, "--tensor", "3"), "none of 22 options passes; llama-3.1-8b on L4"),
    ],
    ids=["memory", "objective", "several"],
)
def test_where_nothing_passes_the_check_fails_after_the_answer(cli, arguments, words):
    result = cli("size", *arguments, "-o", "json")
    assert result.exit_code == 4
    assert words in result.stderr
    found = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(found)
    assert found["best"] is None


def test_a_cache_format_that_is_not_known_is_named_with_its_place(cli, plan_file):
    engine = {**document()["spec"]["engine"], "kvCacheDtype": "turboquant_4bit_nc"}
    result = cli("size", LLAMA, "--plan", plan_file(engine=engine))
    assert result.exit_code == 2
    assert "spec.engine.kvCacheDtype of llm/support-chat has the KV cache in turboquant_4bit_nc" in result.stderr


def test_the_help_is_there_within_a_process():
    done = process("size", "--help")
    assert done.returncode == 0
    assert "servingplan size models/qwen3-8b" in done.stdout


# ---- the page ----


def page(cli, *arguments):
    result = cli("size", *arguments, "-o", "html")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_page_loads_nothing_and_holds_the_figures(cli):
    text = page(cli, SIZE_EXAMPLE, LLAMA, "--plan", WORKED_EXAMPLE, "--price", "L40S=1.1", "--max-model-len", "8192")
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert "<script" not in text
    assert text.count("<svg") >= 4
    for words in ("Memory of one GPU", "Replicas by level", "Three levels", "All options", "How exact this is"):
        assert words in text


def test_the_page_is_the_same_each_time(cli):
    arguments = (LLAMA, *WORKLOAD, "--max-model-len", "8192")
    assert page(cli, *arguments) == page(cli, *arguments)


def test_a_name_on_the_page_is_text(cli):
    text = page(cli, f"<script>$\\frac$={LLAMA}", "--accelerator", "H100-SXM")
    assert "<script" not in text
    assert "&lt;script&gt;$\\frac$" in text


def test_a_page_where_nothing_passes_says_so(cli):
    result = cli("size", GEMMA, "--accelerator", "L4", "--tensor", "1", "-o", "html")
    assert result.exit_code == 4
    assert "No option passes" in result.stdout
    assert "weights and margins need" in result.stdout
