"""The arguments that the operator renders are those that vLLM takes: asked of vLLM's own parser and validator."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from e2e.vllm.engines import SMALL_CACHE, VARIABLES, cpu_engine
from servingplan.planning.target import Parallelism
from servingplan.rendering.engine import arguments
from support.plans import a_full_engine, an_engine

CHECK = Path(__file__).parent / "check_arguments.py"

PARSED = {
    "nothing stated": an_engine(),
    "everything stated": a_full_engine(),
    "a name that begins with a dash": an_engine(served_model_name="-odd"),
}
"""Engines for other models than the tiny one: vLLM's parser takes their arguments."""


def whole(model):
    """Engines for the tiny model: vLLM makes a whole configuration of their arguments."""
    return {
        "the tiny model": cpu_engine(model),
        "a small cache": cpu_engine(model, *SMALL_CACHE),
        "limits": cpu_engine(model, max_model_len=1024, max_num_seqs=64, max_num_batched_tokens=2048),
        "no prefix caching": cpu_engine(model, prefix_caching=False),
        "prefix caching": cpu_engine(model, prefix_caching=True, gpu_memory_utilization=Decimal("0.5")),
        "an FP8 cache": cpu_engine(model, kv_cache_dtype="fp8_e4m3"),
        "a drain of an hour": cpu_engine(model, drain_timeout=timedelta(hours=1)),
        "a drain of less than a second": cpu_engine(model, drain_timeout=timedelta(milliseconds=1)),
        "admission limits": cpu_engine(model, "--max-num-queued-reqs=12", "--max-num-queued-tokens=4096"),
        "a longest answer": cpu_engine(model, '--override-generation-config={"max_new_tokens": 480}'),
    }


REFUSED = {
    "a word that vLLM does not know": ({"kv_cache_dtype": "fp7"}, "fp7"),
    "more tokens than the model has": ({"max_model_len": 65536}, "max_model_len"),
    "a batch smaller than its sequences": (
        {"max_num_seqs": 64, "max_num_batched_tokens": 32},
        "max_num_batched_tokens",
    ),
    "heads that cannot be divided": ({"parallelism": Parallelism(tensor=3)}, "divisible"),
    "a flag that is gone": ({"extra_args": ("--swap-space=4",)}, "swap-space"),
}
"""So that the check itself can fail."""


@pytest.fixture(scope="module")
def verdicts(environment):
    """What vLLM says against each engine, by name; asked in one process."""
    model = environment.model
    parsed = {name: (arguments(engine), False) for name, engine in PARSED.items()}
    fitting = {name: (arguments(engine), True) for name, engine in whole(model).items()}
    refused = {name: (arguments(cpu_engine(model, **changes)), True) for name, (changes, _) in REFUSED.items()}
    cases = parsed | fitting | refused
    asked = json.dumps([{"arguments": rendered, "fits": fits} for rendered, fits in cases.values()])
    answer = subprocess.run(
        [environment.python, CHECK],
        input=asked,
        env=os.environ | VARIABLES,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    return dict(zip(cases, json.loads(answer.stdout), strict=True))


@pytest.mark.parametrize("name", [*PARSED, *whole("")])
def test_what_is_rendered_is_taken(verdicts, name):
    assert verdicts[name] == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_vllm_refuses_is_refused_here(verdicts, name):
    assert REFUSED[name][1] in verdicts[name]
