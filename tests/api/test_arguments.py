"""Arguments that the API owns are refused however they are spelled; all others pass."""

from __future__ import annotations

import pytest

from servingplan.api.arguments import OWNED, OWNED_SHORT, argument_problems, owned_flag


@pytest.mark.parametrize(
    ("argument", "owned"),
    [
        ("--max-model-len", "--max-model-len"),
        ("--max-model-len=8192", "--max-model-len"),
        ("--max_model_len", "--max-model-len"),
        ("--max_model_len=8192", "--max-model-len"),
        ("--max-mod", "--max-model-len"),
        ("--max_mod=8192", "--max-model-len"),
        ("--tensor", "--tensor-parallel-size"),
        ("-tp", "--tensor-parallel-size"),
        ("-tp=2", "--tensor-parallel-size"),
        ("-t", "--tensor-parallel-size"),
        ("-q", "--quantization"),
        ("-qfp8", "--quantization"),
        ("-ep", "--enable-expert-parallel"),
        ("--model=/models/other", "--model"),
        ("--served-model-name", "--served-model-name"),
        ("--no-enable-prefix-caching", "--no-enable-prefix-caching"),
        ("--no-enable-prefix", "--no-enable-prefix-caching"),
        ("--custom-histogram-buckets.request_latency", "--custom-histogram-buckets"),
        ("--custom-histogram-buckets.request_latency+", "--custom-histogram-buckets"),
        ("--config", "--config"),
        ("--shutdown-timeout=0", "--shutdown-timeout"),
        ("--api-key", "--api-key"),
        ("--device-memory-utilization", "--device-memory-utilization"),
        ("--ssl-cert", "--ssl-certfile"),
        ("--disable-log-stats", "--disable-log-stats"),
    ],
)
def test_an_owned_flag_is_found_in_any_spelling(argument, owned):
    assert owned_flag(argument) == owned


@pytest.mark.parametrize(
    "argument",
    [
        "--enable-chunked-prefill",
        "--kv-cache-dtype-skip-layers",
        "--quantization-config",
        "--model-impl",
        "--config-format=hf",
        "--ssl-keyfile-password",
        "--grpc-port",
        "--dtype-of-something-new",
        "--compilation-config.cache_dir",
        "-cc.mode=none",
        "-O3",
        "-sc",
        "-1",
        "-0.5",
        "8192",
        "/models/draft",
        '{"method": "ngram"}',
        "value=--max-model-len",
    ],
)
def test_an_argument_that_the_api_does_not_own_passes(argument):
    assert owned_flag(argument) is None


def test_every_beginning_of_an_owned_flag_is_refused():
    for flag in OWNED:
        for length in range(3, len(flag) + 1):
            assert owned_flag(flag[:length]) is not None, flag[:length]


def test_short_forms_lead_to_owned_flags():
    assert set(OWNED_SHORT.values()) <= set(OWNED)


def test_each_problem_names_its_argument_and_the_field_to_state():
    problems = list(argument_problems(["--seed", "7", "--max_model_len=1", "-tp", "2"], "spec.engine.extraArgs"))
    assert [(problem.path, problem.reason) for problem in problems] == [
        ("spec.engine.extraArgs[2]", "OwnedArgument"),
        ("spec.engine.extraArgs[3]", "OwnedArgument"),
    ]
    assert "engine.maxModelLen" in problems[0].message
    assert "engine.parallelism.tensor" in problems[1].message


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(["other-model", "--seed", "1"], "ValueWithoutFlag"), (["--", "x"], "ReservedArgument")],
    ids=["a value before any flag", "the end of flags"],
)
def test_what_would_shift_the_operators_own_arguments_is_refused(arguments, reason):
    assert [problem.reason for problem in argument_problems(arguments, "x")] == [reason]
