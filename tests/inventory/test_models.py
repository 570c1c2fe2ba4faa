"""Models from their configs: which layers keep what, how weights are stored, and configs that are none."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from servingplan.errors import InputError
from servingplan.hardware.model import Attention, AttentionLayer, StateLayer
from servingplan.inventory.models import read_model
from support.checkpoints import config
from support.models import MODELS, model

BASE = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 1000,
}


def read(tmp_path, shape):
    (tmp_path / "config.json").write_text(json.dumps(shape))
    return read_model(str(tmp_path))


def kinds(found):
    """What each layer keeps, in letters: f(ull), s(liding), c(hunked), l(atent), m (state), - (nothing)."""
    letters = {Attention.FULL: "f", Attention.SLIDING: "s", Attention.CHUNKED: "c", Attention.LATENT: "l"}
    return " ".join(
        "".join("m" if isinstance(cache, StateLayer) else letters[cache.kind] for cache in layer.caches) or "-"
        for layer in found.layers
    )


MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4}
DELTA = {
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
LATENT = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "q_lora_rank": None}
LINEAR = {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "full_attn_layers": [4], "kda_layers": [1, 2, 3]}
LAYERS = {
    "llama": ({}, "f f f f"),
    "mistral with a window": ({"model_type": "mistral", "sliding_window": 32}, "s s s s"),
    "mistral without": ({"model_type": "mistral", "sliding_window": None}, "f f f f"),
    "mistral that says nothing": ({"model_type": "mistral"}, "s s s s"),
    "qwen2 that does not use its window": (
        {"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": False}, "f f f f"),
    "qwen2 from a layer on": (
        {"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 3}, "f f f s"),
    "gemma 2": ({"model_type": "gemma2"}, "s f s f"),
    "gemma 3 by its pattern": ({"model_type": "gemma3_text", "sliding_window_pattern": 4}, "s s s f"),
    "layer types": (
        {"layer_types": ["full_attention", "sliding_attention", *["full_attention"] * 2], "sliding_window": 9},
        "f s f f"),
    "llama 4": ({"model_type": "llama4_text", "head_dim": 16}, "c c c f"),
    "latent": ({"model_type": "deepseek_v3", **LATENT}, "l l l l"),
    "latent with an indexer": ({"model_type": "deepseek_v32", **LATENT, "index_head_dim": 16}, "ll ll ll ll"),
    "shared caches": ({"model_type": "gemma3n_text", "num_kv_shared_layers": 2}, "f f - -"),
    "mamba": ({"model_type": "mamba", "state_size": 16, "num_attention_heads": None}, "m m m m"),
    "jamba": ({"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2}, "m m f m"),
    "bamba": ({"model_type": "bamba", "attn_layer_indices": [1], **MAMBA2}, "m f m m"),
    "granite 4": (
        {"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention", *["mamba"] * 2], **MAMBA2},
        "m f m m"),
    "nemotron-h": (
        {"model_type": "nemotron_h", "hybrid_override_pattern": "M-*-", "mamba_num_heads": 8, "mamba_head_dim": 16},
        "m - f -"),
    "falcon-h1": ({"model_type": "falcon_h1", **MAMBA2}, "mf mf mf mf"),
    "qwen3-next": ({"model_type": "qwen3_next", **DELTA}, "m m m f"),
    "kimi linear": ({"model_type": "kimi_linear", **LATENT, "linear_attn_config": LINEAR}, "m m m l"),
    "minimax": ({"model_type": "minimax", "attn_type_list": [0, 0, 0, 1]}, "m m m f"),
    "lfm2": ({"model_type": "lfm2", "layer_types": ["conv", "conv", "full_attention", "conv"]}, "m m f m"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), LAYERS.values(), ids=LAYERS)
def test_each_layer_keeps_what_its_family_keeps(tmp_path, changes, expected):
    found = read(tmp_path, {**BASE, **changes})

    assert kinds(found) == expected
    assert found.parameters > 0


def test_published_models_alternate_as_their_makers_say():
    assert Counter(kinds(model("gemma-3-27b")).split()) == {"s": 52, "f": 10}
    assert Counter(kinds(model("gpt-oss-20b")).split()) == {"s": 12, "f": 12}
    assert Counter(kinds(model("llama-4-scout")).split()) == {"c": 36, "f": 12}
    assert set(kinds(model("deepseek-v2-lite")).split()) == {"l"}


PARAMETERS = {
    "llama-3.1-8b": 8.03,
    "llama-3.3-70b-fp8-dynamic": 70.6,
    "qwen2.5-72b": 72.7,
    "qwen3-8b": 8.19,
    "qwen3-30b-a3b": 30.5,
    "deepseek-v2-lite": 15.7,
    "mixtral-8x7b": 46.7,
    "gemma-2-9b": 9.24,
    "gemma-3-27b": 27.4,
    "gpt-oss-20b": 20.9,
    "llama-4-scout": 109,
    "phi-4": 14.7,
}
"""Billions, as the makers state them."""


@pytest.mark.parametrize(("name", "billions"), PARAMETERS.items())
def test_parameters_are_what_the_makers_state(name, billions):
    assert model(name).parameters / 1e9 == pytest.approx(billions, rel=0.005)


@pytest.mark.parametrize(
    ("name", "billions"), [("mixtral-8x7b", 12.7), ("qwen3-30b-a3b", 3.0), ("gpt-oss-20b", 3.6), ("llama-3.1-8b", 7.5)]
)
def test_a_token_passes_the_experts_that_it_takes(name, billions):
    assert model(name).active_parameters / 1e9 == pytest.approx(billions, rel=0.03)


def compressed(**weights):
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


QUANTIZATIONS = {
    "none": (None, 16.0),
    "fp8": ({"quant_method": "fp8"}, 8.0),
    "fp8 in blocks": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
    "gptq by row": ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8.0),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
    "awq, its other spelling": ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, 4 + 20 / 64),
    "mxfp4": ({"quant_method": "mxfp4"}, 4.25),
    "nvfp4": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
    "bitsandbytes": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.0),
    "compressed-tensors 8": (compressed(num_bits=8, type="float"), 8.0),
    "compressed-tensors 4": (compressed(num_bits=4, type="int", group_size=128), 4 + 16 / 128),
    "compressed-tensors NVFP4": (compressed(num_bits=4, type="float", group_size=16), 4.5),
    "compressed-tensors MXFP4": (compressed(num_bits=4, type="float", group_size=32), 4.25),
}


@pytest.mark.parametrize(("section", "bits"), QUANTIZATIONS.values(), ids=QUANTIZATIONS)
def test_bits_of_a_weight_include_its_scales(tmp_path, section, bits):
    assert read(tmp_path, {**BASE, "quantization_config": section}).weight_bits == pytest.approx(bits)


def test_mxfp4_stores_experts_alone(tmp_path):
    dense = read(tmp_path, {**BASE, "quantization_config": {"quant_method": "mxfp4"}})

    assert sum(part.size for part in dense.weights) == 2 * dense.parameters


LENGTHS = {
    "plain": ({}, 1000),
    "linear": ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 4000),
    "yarn from the original": (
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 500}}, 2000),
    "llama 3": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 1000),
    "longrope": ({"rope_scaling": {"type": "longrope", "factor": 8.0}}, 1000),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "tokens"), LENGTHS.values(), ids=LENGTHS)
def test_the_longest_context_follows_rotary_scaling(tmp_path, changes, tokens):
    assert read(tmp_path, {**BASE, **changes}).max_len == tokens


def test_a_multimodal_model_is_sized_by_its_decoder(tmp_path):
    found = read(tmp_path, {"model_type": "x", "text_config": BASE, "vision_config": {"hidden_size": 8, "depth": 2}})

    assert (found.multimodal, len(found.layers), found.hidden) == (True, 4, 64)


def test_multi_query_attention_has_one_head(tmp_path):
    shape = {key: value for key, value in BASE.items() if key != "num_key_value_heads"}

    assert read(tmp_path, {**shape, "model_type": "falcon", "multi_query": True}).kv_heads == 1


def test_layers_that_see_everything_may_have_heads_of_their_own(tmp_path):
    changes = {"layer_types": ["sliding_attention"] * 3 + ["full_attention"], "sliding_window": 8,
               "global_head_dim": 32, "num_global_key_value_heads": 1}  # fmt: skip
    local, everything = (read(tmp_path, {**BASE, **changes}).caches[i] for i in (0, 3))

    assert isinstance(local, AttentionLayer)
    assert (local.heads, local.key_size, everything.heads, everything.key_size) == (2, 16, 1, 32)


@pytest.mark.parametrize(
    ("argument", "name"),
    [("{0}", "llama-3.1-8b"), ("chat={0}", "chat")],
)
def test_a_model_is_called_by_its_file_or_as_one_likes(argument, name):
    assert read_model(argument.format(MODELS / "llama-3.1-8b.json")).name == name


BROKEN = {
    "no json": ("{", "InvalidJSON", "line 1"),
    "a list": ("[]", "NoObject", "no object"),
    "another file": ('{"a": 1}', "NoModelConfig", "no model_type"),
    "no layers": (json.dumps({**BASE, "num_hidden_layers": None}), "FieldMissing", "num_hidden_layers is missing"),
    "layers in words": (
        json.dumps({**BASE, "num_hidden_layers": "four"}),
        "InvalidField",
        "num_hidden_layers is 'four'",
    ),
    "negative": (json.dumps({**BASE, "hidden_size": -1}), "InvalidField", "hidden_size is -1"),
    "true": (json.dumps({**BASE, "hidden_size": True}), "InvalidField", "hidden_size is True"),
    "an encoder": (json.dumps({**BASE, "model_type": "bert"}), "NotSupported", "no KV cache"),
    "an encoder with a decoder": (json.dumps({**BASE, "is_encoder_decoder": True}), "NotSupported", "decoder models"),
    "deepseek v4": (json.dumps({**BASE, "model_type": "deepseek_v4"}), "NotSupported", "log of vLLM"),
    "unknown layers": (json.dumps({**BASE, "layer_types": ["warp"] * 4}), "NotSupported", "warp"),
    "too few layer types": (
        json.dumps({**BASE, "layer_types": ["attention"]}),
        "InvalidField",
        "1 entries for 4 layers",
    ),
    "an unknown recurrence": (json.dumps({**BASE, "layer_types": ["mamba"] * 4}), "NotSupported", "llama"),
    "a hybrid that does not say": (json.dumps({**BASE, "model_type": "lfm2"}), "FieldMissing", "layer_types"),
    "an unknown method": (
        json.dumps({**BASE, "quantization_config": {"quant_method": "x"}}),
        "NotSupported",
        "known are",
    ),
    "gptq without bits": (
        json.dumps({**BASE, "quantization_config": {"quant_method": "gptq"}}),
        "InvalidField",
        "bits",
    ),
    "an odd format": (json.dumps({**BASE, "torch_dtype": "int3"}), "InvalidField", "torch_dtype"),
    "nested": ("[" * 100_000, "InvalidJSON", "nested"),
}


@pytest.mark.parametrize(("content", "reason", "words"), BROKEN.values(), ids=BROKEN)
def test_a_config_that_cannot_be_used_is_one_problem(tmp_path, content, reason, words):
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        read_model(str(tmp_path))

    (problem,) = caught.value.problems
    assert (problem.path, problem.reason) == (str(file), reason)
    assert words in problem.message


@pytest.mark.parametrize(("path", "words"), [("gone", "there is no such file"), (".", "the folder has no config.json")])
def test_a_path_without_a_model_is_one_problem(tmp_path, path, words):
    with pytest.raises(InputError, match=words):
        read_model(str(tmp_path / path))


def test_the_fixture_of_a_published_config_is_not_made_up_twice():
    assert config("llama-3.1-8b")["num_hidden_layers"] == len(model("llama-3.1-8b").layers)
