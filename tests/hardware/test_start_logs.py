"""What vLLM logged when it started published models: the cache, the weights and the margins must come out."""

from __future__ import annotations

import statistics

import pytest

from servingplan.hardware.kv_cache import pool
from servingplan.hardware.margins import margins
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.weights import stage_bytes
from support.models import accelerator, engine, gib, model, old_engine, start_logs

ELEVEN = {
    "Llama-3.1-8B": ("llama-3.1-8b", 1, "auto", 58.11, 476_016, 58.11),
    "the same with an FP8 cache": ("llama-3.1-8b", 1, "fp8", 58.11, 952_032, 116.21),
    "Llama-3.3-70B in FP8 over two": ("llama-3.3-70b-fp8-dynamic", 2, "auto", 37.28, 244_304, 29.82),
    "Qwen2.5-7B, as many KV heads as GPUs": ("qwen2.5-7b", 4, "auto", 67.34, 5_043_280, 615.63),
    "DeepSeek-V2-Lite, latent attention": ("deepseek-v2-lite", 1, "auto", 43.61, 1_505_552, 183.78),
    "Kimi-VL-A3B, latent attention copied": ("kimi-vl-a3b", 2, "auto", 54.78, 1_890_896, 230.82),
    "Qwen3-30B-A3B, experts": ("qwen3-30b-a3b", 1, "auto", 15.41, 168_288, 20.54),
    "Mixtral-8x7B over two": ("mixtral-8x7b", 2, "auto", 28.44, 465_936, 56.88),
    "gemma-3-27b, windows and padding": ("gemma-3-27b", 1, "auto", 19.53, 36_560, 4.46),
    "gpt-oss-20b over two, windows": ("gpt-oss-20b", 2, "auto", 59.32, 2_591_776, 316.07),
    "Llama-4-Scout over four, chunks": ("llama-4-scout", 4, "auto", 16.75, 365_968, 44.68),
}


@pytest.mark.parametrize(
    ("name", "tensor", "cache_dtype", "cache", "tokens", "concurrency"), ELEVEN.values(), ids=ELEVEN
)
def test_the_cache_is_what_vllm_logged(name, tensor, cache_dtype, cache, tokens, concurrency):
    found = pool([gib(cache)], model(name), Layout(tensor=tensor), old_engine(cache_dtype=cache_dtype))

    assert found.tokens == pytest.approx(tokens, rel=1e-3)
    assert found.concurrency == pytest.approx(concurrency, rel=1e-3)


def test_the_tiny_model_is_what_its_own_log_says():
    found = pool([gib(1)], model("tiny"), Layout(), engine(max_model_len=512))

    assert (found.tokens, found.concurrency) == (2_097_152, 4096.0)


SINGLE_STAGE = [row for row in start_logs() if row["pipeline"] == "1"]


def settings(row):
    return old_engine(
        max_model_len=int(row["max_len"]),
        max_num_seqs=int(row["max_num_seqs"]),
        max_num_batched_tokens=int(row["max_num_batched_tokens"]),
        utilization=float(row["utilization"]),
        cache_dtype=row["cache_dtype"],
    )


def layout(row):
    return Layout(tensor=int(row["tensor"]), pipeline=int(row["pipeline"]))


@pytest.mark.parametrize("row", SINGLE_STAGE, ids=lambda row: row["log"].removesuffix(".log"))
def test_every_public_log_comes_out(row):
    found = pool([gib(float(row["cache_gib"]))], model(row["model"]), layout(row), settings(row))

    assert found.tokens == pytest.approx(int(row["tokens"]), rel=1e-3)
    assert found.concurrency == pytest.approx(float(row["concurrency"]), rel=1e-3, abs=0.006)


TEXT_MODELS = [
    row for row in SINGLE_STAGE if not model(row["model"]).multimodal and model(row["model"]).quantization != "mxfp4"
]


@pytest.mark.parametrize("row", TEXT_MODELS, ids=lambda row: row["log"].removesuffix(".log"))
def test_weights_of_text_models_are_within_a_hundredth_of_what_was_loaded(row):
    assert max(stage_bytes(model(row["model"]), layout(row))) == pytest.approx(gib(float(row["weights_gib"])), rel=0.01)


@pytest.mark.parametrize("row", start_logs(), ids=lambda row: row["log"].removesuffix(".log"))
def test_all_weights_are_within_the_stated_error(row):
    share = 0.14 if model(row["model"]).quantization == "mxfp4" else 0.07

    assert max(stage_bytes(model(row["model"]), layout(row))) == pytest.approx(
        gib(float(row["weights_gib"])), rel=share
    )


def cache_errors(rows):
    """GiB by which the cache is off, with the weights that were logged."""
    physical = accelerator("H100-SXM").memory_gib
    return [
        float(row["utilization"]) * physical
        - float(row["weights_gib"])
        - margins(model(row["model"]), layout(row), settings(row)).total / gib(1)
        - float(row["cache_gib"])
        for row in rows
    ]


def test_margins_are_as_exact_as_they_are_said_to_be():
    found = sorted(abs(error) for error in cache_errors(start_logs()))

    assert statistics.median(found) < 0.1
    assert found[int(0.9 * len(found))] < 0.35


def test_margins_of_a_pipeline_are_on_the_safe_side():
    assert all(-1.1 < error < 0 for error in cache_errors([row for row in start_logs() if row["pipeline"] != "1"]))
