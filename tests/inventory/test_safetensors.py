"""Headers of weight files: published checkpoints to the byte, shards, saved headers, and files that are broken."""

from __future__ import annotations

import json
import os
import struct

import pytest

from servingplan.errors import InputError
from servingplan.hardware.model import Role, WeightSource
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.weights import lower_bound, stage_bytes, total_bytes
from servingplan.inventory.models import read_model
from support.checkpoints import (
    GRANITE_MOE,
    config,
    decoder,
    granite_moe,
    header,
    int8_decoder,
    write_file,
    write_model,
    write_shards,
)
from support.models import gib

INT8 = {**config("llama-3.1-8b"), "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}
PUBLISHED = {
    "Llama-3.1-8B": (config("llama-3.1-8b"), lambda: decoder(config("llama-3.1-8b")), 16_060_522_496),
    "Qwen2.5-7B": (config("qwen2.5-7b"), lambda: decoder(config("qwen2.5-7b"), biases=True), 15_231_233_024),
    "Llama-3.1-8B in 8 bits": (INT8, lambda: int8_decoder(config("llama-3.1-8b")), 9_086_705_888),
    "granite-3.1-1b-a400m in 32 bits": (GRANITE_MOE, granite_moe, 5_338_513_408),
}
"""What `total_size` of the publishers' indexes says."""


@pytest.mark.parametrize(("shape", "weights", "size"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_checkpoint_has_the_bytes_that_its_publisher_states(tmp_path, shape, weights, size):
    found = read_model(str(write_model(tmp_path / "model", shape, weights())))

    assert found.weight_source is WeightSource.HEADERS
    assert found.disk == size


@pytest.mark.parametrize(("shape", "weights", "size"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_config_alone_comes_within_a_hundredth_of_the_headers(tmp_path, shape, weights, size):
    exact = read_model(str(write_model(tmp_path / "exact", shape, weights())))
    guessed = read_model(str(write_model(tmp_path / "guessed", shape)))

    assert guessed.weight_source is WeightSource.CONFIG
    assert guessed.parameters == pytest.approx(exact.parameters, rel=1e-3)
    assert total_bytes(guessed) == pytest.approx(total_bytes(exact), rel=0.01)


def test_weights_from_headers_are_what_vllm_loaded(tmp_path):
    found = read_model(str(write_model(tmp_path, config("llama-3.1-8b"), decoder(config("llama-3.1-8b")))))

    assert max(stage_bytes(found, Layout())) == pytest.approx(gib(14.99), rel=0.01)
    assert max(stage_bytes(found, Layout(tensor=4))) == pytest.approx(gib(3.77), rel=0.01)
    assert max(stage_bytes(found, Layout(pipeline=4))) == pytest.approx(gib(4.26), rel=0.01)


def test_parameters_times_bits_is_a_lower_bound_of_the_headers(tmp_path):
    found = read_model(str(write_model(tmp_path, INT8, int8_decoder(config("llama-3.1-8b")))))

    assert 0.99 * total_bytes(found) < lower_bound(found) <= total_bytes(found)


def test_weights_in_32_bits_are_served_in_16(tmp_path):
    found = read_model(str(write_model(tmp_path, GRANITE_MOE, granite_moe())))

    assert (total_bytes(found), found.disk) == (5_338_513_408 // 2, 5_338_513_408)


def test_experts_in_one_tensor_are_experts(tmp_path):
    found = read_model(str(write_model(tmp_path, GRANITE_MOE, granite_moe())))
    experts = sum(part.elements for part in found.weights if part.role is Role.EXPERTS)

    assert experts == 24 * 32 * 3 * 1024 * 512
    assert found.active_parameters == found.parameters - experts * 3 // 4


def test_shards_hold_the_same_as_one_file(tmp_path):
    shape = config("llama-3.1-8b")
    one = read_model(str(write_model(tmp_path / "one", shape, decoder(shape))))
    many = read_model(str(write_shards(tmp_path / "many", shape, decoder(shape), 4)))

    assert (many.weights, many.disk) == (one.weights, one.disk)


def test_headers_alone_are_enough(tmp_path):
    shape = config("llama-3.1-8b")
    folder = write_model(tmp_path / "saved", shape)
    saved = {"a.safetensors": header(list(decoder(shape))[::2]), "b.safetensors": header(list(decoder(shape))[1::2])}
    (folder / "safetensors-headers.json").write_text(json.dumps(saved))

    assert read_model(str(folder)).disk == 16_060_522_496


def test_one_header_may_be_saved_as_it_is(tmp_path):
    shape = config("llama-3.1-8b")
    folder = write_model(tmp_path, shape)
    (folder / "safetensors-headers.json").write_text(json.dumps({"__metadata__": {}, **header(decoder(shape))}))

    assert read_model(str(folder)).disk == 16_060_522_496


def test_an_index_without_its_files_gives_the_bytes(tmp_path):
    shape = config("llama-3.1-8b")
    folder = write_shards(tmp_path, shape, decoder(shape), 4)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    found = read_model(str(folder))

    assert found.weight_source is WeightSource.INDEX
    assert total_bytes(found) == pytest.approx(16_060_522_496, rel=1e-6)


def test_a_second_copy_in_another_layout_is_not_counted(tmp_path):
    shape = config("llama-3.1-8b")
    folder = write_model(tmp_path, shape, decoder(shape))
    write_file(folder / "consolidated.safetensors", header(decoder(shape)))

    assert read_model(str(folder)).disk == 16_060_522_496


def test_draft_layers_beyond_the_decoder_are_not_loaded(tmp_path):
    shape = config("llama-3.1-8b")
    extra = ("model.layers.32.eh_proj.weight", "BF16", (4096, 8192))
    with_draft = read_model(str(write_model(tmp_path / "draft", shape, [*decoder(shape), extra])))
    without = read_model(str(write_model(tmp_path / "plain", shape, decoder(shape))))

    assert with_draft.weights == without.weights


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
PACKED = {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 128}}}}
QUANTIZED = {
    "awq": (AWQ, [("qweight", "I32", (4096, 512)), ("qzeros", "I32", (32, 512)), ("scales", "F16", (32, 4096))]),
    "gptq": (GPTQ, [("qweight", "I32", (512, 4096)), ("qzeros", "I32", (32, 512)), ("scales", "F16", (32, 4096)),
                    ("g_idx", "I32", (4096,))]),
    "compressed-tensors": (PACKED, [("weight_packed", "I32", (4096, 512)), ("weight_scale", "BF16", (4096, 32)),
                                    ("weight_shape", "I32", (2,))]),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]},
            [("weight", "F8_E4M3", (4096, 4096)), ("weight_scale_inv", "F32", (32, 32))]),
    "mxfp4": ({"quant_method": "mxfp4"},
              [("weight_blocks", "U8", (4096, 128, 16)), ("weight_scales", "U8", (4096, 128))]),
}  # fmt: skip


@pytest.mark.parametrize(("quantization", "tensors"), QUANTIZED.values(), ids=QUANTIZED)
def test_packed_weights_count_as_what_they_stand_for(tmp_path, quantization, tensors):
    shape = {**config("llama-3.1-8b"), "num_hidden_layers": 1, "quantization_config": quantization}
    named = [(f"model.layers.0.mlp.up_proj.{name}", dtype, size) for name, dtype, size in tensors]
    found = read_model(str(write_model(tmp_path, shape, named)))

    assert found.parameters == 4096 * 4096
    assert total_bytes(found) == found.disk


# ---- what is broken ----


def broken(kind, folder):
    """A checkpoint with one thing wrong."""
    shape = config("llama-3.1-8b")
    path = folder / "model.safetensors"
    write_model(folder, shape, decoder(shape))
    size = path.stat().st_size
    changes = {
        "cut off": lambda: os.truncate(path, size - 1),
        "cut off in its header": lambda: os.truncate(path, 100),
        "empty": lambda: path.write_bytes(b""),
        "not safetensors": lambda: path.write_bytes(b"PK\x03\x04" + bytes(100)),
        "a header that is not JSON": lambda: path.write_bytes(struct.pack("<Q", 5) + b"{nope"),
        "a header that is a list": lambda: path.write_bytes(struct.pack("<Q", 2) + b"[]"),
        "no offsets": lambda: path.write_bytes(struct.pack("<Q", 26) + b'{"a":{"dtype":"F32"}}     '),
        "an unknown format": lambda: write_header(path, {"dtype": "F3", "shape": [1], "data_offsets": [0, 4]}),
        "a shape that is none": lambda: write_header(path, {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}),
        "a pointer": lambda: path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        "a folder": lambda: (path.unlink(), path.mkdir()),
    }
    changes[kind]()


def write_header(path, entry):
    text = json.dumps({"a": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))


@pytest.mark.parametrize(
    ("kind", "reason", "words"),
    [
        ("cut off", "Truncated", "download it again"),
        ("cut off in its header", "NoSafetensors", "does not start with the header"),
        ("empty", "NoSafetensors", "does not start with the header"),
        ("not safetensors", "NoSafetensors", "does not start with the header"),
        ("a header that is not JSON", "InvalidJSON", "its header is not JSON (line 1, column 2"),
        ("a header that is a list", "NoObject", "its header is JSON, but no object"),
        ("no offsets", "InvalidHeader", "tensor a has no data_offsets"),
        ("an unknown format", "InvalidHeader", "tensor a has the format 'F3'"),
        ("a shape that is none", "InvalidHeader", "tensor a has the shape [-1]"),
        ("a pointer", "Pointer", "git lfs pull"),
        ("a folder", "FileUnreadable", "cannot be read"),
    ],
)
def test_a_broken_file_is_one_problem_that_says_what_to_do(tmp_path, kind, reason, words):
    broken(kind, tmp_path)
    with pytest.raises(InputError) as caught:
        read_model(str(tmp_path))

    (problem,) = caught.value.problems
    assert (problem.path, problem.reason) == (str(tmp_path / "model.safetensors"), reason)
    assert words in problem.message


def test_a_missing_shard_is_named(tmp_path):
    shape = config("llama-3.1-8b")
    folder = write_shards(tmp_path, shape, decoder(shape), 3)
    (folder / "model-00002-of-00003.safetensors").unlink()

    with pytest.raises(InputError, match=r"1 of 3 files are missing, the first is model-00002-of-00003.safetensors"):
        read_model(str(folder))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({"metadata": {"total_size": 1}}, "weight_map is missing"),
        ({"metadata": {"total_size": "much"}, "weight_map": {"a": "gone.safetensors"}}, "total_size is 'much'"),
        ({"metadata": {}, "weight_map": {"a": "gone.safetensors"}}, "total_size is None"),
        ({"weight_map": {"a": 1}}, "weight_map is missing or no object"),
    ],
    ids=["no map", "no number", "no size", "no names"],
)
def test_a_broken_index_is_one_problem(tmp_path, index, words):
    write_model(tmp_path, config("llama-3.1-8b"))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

    with pytest.raises(InputError, match=words):
        read_model(str(tmp_path))


@pytest.mark.parametrize("content", ["{}", '{"a": 1}', '{"a": {"b": 1}}', "[]"])
def test_saved_headers_that_are_none_are_refused(tmp_path, content):
    write_model(tmp_path, config("llama-3.1-8b"))
    (tmp_path / "safetensors-headers.json").write_text(content)

    with pytest.raises(InputError) as caught:
        read_model(str(tmp_path))

    assert caught.value.problems[0].reason in {"InvalidHeader", "NoObject"}
