"""Logs of vLLM's start: what they say, by version, and what is no such log."""

from __future__ import annotations

import pytest

from servingplan.errors import InputError
from servingplan.hardware.engine import Version
from servingplan.hardware.kv_cache import logged_pool
from servingplan.hardware.parallelism import Layout
from servingplan.inventory.engine_log import parse_log, read_log
from support.models import DATA, engine, gib, model, old_engine

OLD = DATA / "vllm" / "start-0.19-gpt-oss-20b.log"
NEW = DATA / "vllm" / "start-0.32-tiny.log"


def test_a_log_of_0_19_gives_settings_and_bytes():
    found = read_log(OLD)

    assert (found.version, found.tensor, found.pipeline) == (Version(major=0, minor=19), 2, 1)
    assert (found.max_len, found.max_num_seqs, found.max_num_batched_tokens) == (8192, 1024, 8192)
    assert (found.utilization, found.cache_dtype) == (0.9, "auto")
    assert (found.weights, found.activation, found.outside_torch) == (gib(7.01), gib(2.87), gib(2.07))
    assert (found.graphs, found.cache, found.device) == (gib(1.09), gib(59.32), gib(79.19))
    assert (found.tokens, found.concurrency) == (2_591_776, 316.07)


def test_a_log_of_0_32_says_size_and_concurrency_on_one_line():
    found = read_log(NEW)

    assert (found.version, found.max_len) == (Version(major=0, minor=32), 512)
    assert (found.tokens, found.concurrency, found.cache) == (2_097_152, 4096.0, None)


def test_blocks_come_out_of_the_printed_tokens_by_the_version_of_the_log():
    old = logged_pool(2_591_776, model("gpt-oss-20b"), Layout(tensor=2), old_engine(utilization=0.9))
    new = logged_pool(2_097_152, model("tiny"), Layout(), engine(max_model_len=512))

    assert old.concurrency == pytest.approx(316.07, abs=0.01)
    assert (new.blocks, new.blocks * new.block_bytes) == (131_072, gib(1))


def test_of_several_workers_the_one_with_the_least_room_counts():
    text = OLD.read_text() + "\nAvailable KV cache memory: 58.00 GiB\nModel loading took 7.5 GiB memory\n"
    found = parse_log("x", text)

    assert (found.cache, found.weights) == (gib(58), gib(7.5))


def test_colours_do_not_hide_a_number():
    text = OLD.read_text().replace("KV cache size: ", "\x1b[32mKV cache size: \x1b[0m")

    assert parse_log("x", text).tokens == 2_591_776


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("", "NoLog", "it names no version of vLLM"),
        ("hello", "NoLog", "save the log from the start of the server on"),
        ("version 0.32.0\nUsing max model len 512", "LogIncomplete", "how large the KV cache is"),
        ("version 0.32.0\nGPU KV cache size: 10 tokens", "LogIncomplete", "the maximum concurrency"),
    ],
)
def test_what_is_no_whole_log_is_one_problem(text, reason, words):
    with pytest.raises(InputError) as caught:
        parse_log("server.log", text)

    (problem,) = caught.value.problems
    assert (problem.path, problem.reason) == ("server.log", reason)
    assert words in problem.message


def test_a_log_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_log(tmp_path / "gone.log")
