"""Files that somebody broke: whatever they hold, there is an answer, or one problem that names the file."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.errors import InputError
from servingplan.hardware.engine import KNOWN_VERSION
from servingplan.hardware.replicas import Failure
from servingplan.hardware.storage import Keeping
from servingplan.hardware.study import Asked, Serving, study
from servingplan.inventory.engine_log import parse_log
from servingplan.inventory.models import read_model
from support.checkpoints import config
from support.models import DATA, accelerator, workload

NAMES = ("llama-3.1-8b", "gemma-3-4b", "gpt-oss-20b", "kimi-vl-a3b", "qwen3-30b-a3b", "llama-4-scout")
HYBRIDS = (
    {"model_type": "qwen3_next", "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_num_value_heads": 4,
     "linear_value_head_dim": 16},
    {"model_type": "jamba", "mamba_d_state": 16, "num_experts": 4, "num_experts_per_tok": 2},
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M-*-", "mamba_num_heads": 8, "mamba_head_dim": 16},
    {"model_type": "kimi_linear", "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
     "linear_attn_config": {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "full_attn_layers": [4]}},
)  # fmt: skip
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 1000}  # fmt: skip
CONFIGS = [config(name) for name in NAMES] + [{**SMALL, **hybrid} for hybrid in HYBRIDS]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, 1, 3, -1, 10**6, 10**12, 0.5, float("nan"), float("inf"), "", "yarn", "mamba", [], {}, [1], ["x"]]
    ),
    st.integers(0, 64),
    st.dictionaries(st.sampled_from(["bits", "quant_method", "factor", "rope_type", "num_heads"]), st.integers(0, 9)),
)


def paths(value, prefix=()):
    """Where in a config something can be changed."""
    for key, inner in value.items():
        yield (*prefix, key)
        if isinstance(inner, dict):
            yield from paths(inner, (*prefix, key))


def changed(value, path, new):
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return copy


SPOTS = [(index, path) for index, shape in enumerate(CONFIGS) for path in paths(shape)]


@settings(max_examples=400, deadline=None)
@given(spot=st.sampled_from(SPOTS), value=VALUES)
def test_a_config_with_any_value_anywhere_is_sized_or_refused_by_name(spot, value):
    index, path = spot
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(changed(CONFIGS[index], path, value)))
        found, refused = attempt(lambda: read_model(folder))
    assert refused in ([], [str(file)])
    if found is not None:
        answer(found)


def attempt(read):
    """What is read, and the paths of what is wrong."""
    try:
        return read(), []
    except InputError as error:
        return None, [problem.path for problem in error.problems]


def answer(found):
    serving = Serving(
        version=KNOWN_VERSION, max_model_len=None, max_num_seqs=None, max_num_batched_tokens=None, utilization=None,
        cache_dtype="auto", prefix_caching=True, layout=None,
    )  # fmt: skip
    keeping = Keeping(versions=1, retention=timedelta(days=1), interval=timedelta(seconds=15))
    asked = Asked(workload=workload(), failure=Failure.REPLICA, spare=0, measured={}, keeping=keeping)
    (option,) = study([found], [accelerator("H100-SXM")], serving, asked).options

    assert (option.choice is None) == bool(option.why_not)


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200), start=st.sampled_from([b"", b"\x10" + bytes(7), b"\x02\0\0\0\0\0\0\0{}"]))
def test_any_bytes_as_weights_are_an_empty_file_or_one_problem(content, start):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(CONFIGS[0]))
        file = Path(folder) / "model.safetensors"
        file.write_bytes(start + content)
        _, refused = attempt(lambda: read_model(folder))
    assert refused in ([], [str(file)])


LINES = (DATA / "vllm" / "start-0.19-gpt-oss-20b.log").read_text().splitlines()


@settings(max_examples=100, deadline=None)
@given(kept=st.lists(st.sampled_from(LINES), max_size=12), noise=st.text(max_size=40))
def test_a_log_of_any_lines_is_read_or_refused(kept, noise):
    found, refused = attempt(lambda: parse_log("server.log", "\n".join([*kept, noise])))

    assert refused in ([], ["server.log"])
    assert found is None or found.tokens > 0


@pytest.mark.parametrize("number", ["0", "0,000"])
def test_a_log_without_a_token_is_refused(number):
    text = "\n".join(LINES).replace("2,591,776", number)

    with pytest.raises(InputError, match="no token"):
        parse_log("server.log", text)
