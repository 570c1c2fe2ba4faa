"""Checkpoints as files: real headers in files of their real size, of which nothing but the header is written.

Names of the weights are those of published indexes, shapes follow from the configs; the sum of their bytes is the
``total_size`` that the publishers state, to the byte.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.models import MODELS

Shape = tuple[int, ...]
Named = tuple[str, str, Shape]
"""Name, format, shape."""

GRANITE_MOE: Mapping[str, Any] = {
    "architectures": ["GraniteMoeForCausalLM"],
    "model_type": "granitemoe",
    "torch_dtype": "bfloat16",
    "hidden_size": 1024,
    "intermediate_size": 512,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "num_experts_per_tok": 8,
    "vocab_size": 49155,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
"""ibm-granite/granite-3.1-1b-a400m-instruct (Apache-2.0)."""

_BYTES = {"F32": 4, "BF16": 2, "F16": 2, "I8": 1, "U8": 1, "I32": 4, "F8_E4M3": 1}


def config(name: str) -> dict[str, Any]:
    """A published config by the name of its file."""
    return json.loads((MODELS / f"{name}.json").read_text())


def decoder(shape: Mapping[str, Any], dtype: str = "BF16", *, biases: bool = False) -> Iterator[Named]:
    """The weights of Llama (and, with biases, of Qwen2)."""
    hidden, vocabulary = shape["hidden_size"], shape["vocab_size"]
    yield "model.embed_tokens.weight", dtype, (vocabulary, hidden)
    yield "lm_head.weight", dtype, (vocabulary, hidden)
    yield "model.norm.weight", dtype, (hidden,)
    for layer in range(shape["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, rows, columns in projections(shape):
            yield f"{prefix}{name}.weight", dtype, (rows, columns)
            if biases and name[-6] in "qkv":
                yield f"{prefix}{name}.bias", dtype, (rows,)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{prefix}{norm}.weight", dtype, (hidden,)


def projections(shape: Mapping[str, Any]) -> Sequence[tuple[str, int, int]]:
    """The matrices of one layer: name, rows, columns."""
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    keys = hidden // shape["num_attention_heads"] * shape["num_key_value_heads"]
    return (
        ("self_attn.q_proj", hidden, hidden),
        ("self_attn.k_proj", keys, hidden),
        ("self_attn.v_proj", keys, hidden),
        ("self_attn.o_proj", hidden, hidden),
        ("mlp.gate_proj", inner, hidden),
        ("mlp.up_proj", inner, hidden),
        ("mlp.down_proj", hidden, inner),
    )


def int8_decoder(shape: Mapping[str, Any]) -> Iterator[Named]:
    """The same after bitsandbytes stored its matrices in 8 bits, with a scale for each row."""
    matrices = {name for name, _, _ in projections(shape)}
    for name, dtype, size in decoder(shape, "F16"):
        stem = name.removesuffix(".weight")
        if stem.split(".", 3)[-1] not in matrices:
            yield name, dtype, size
            continue
        yield name, "I8", size
        yield f"{stem}.SCB", "F32", size[:1]
        yield f"{stem}.weight_format", "U8", ()


def granite_moe(dtype: str = "F32") -> Iterator[Named]:
    """The weights of Granite 3.1 1B, with its experts in one tensor each, published in float32."""
    shape = GRANITE_MOE
    hidden, inner, experts = shape["hidden_size"], shape["intermediate_size"], shape["num_local_experts"]
    yield "model.embed_tokens.weight", dtype, (shape["vocab_size"], hidden)
    yield "model.norm.weight", dtype, (hidden,)
    for layer in range(shape["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield f"{prefix}block_sparse_moe.input_linear.weight", dtype, (experts, 2 * inner, hidden)
        yield f"{prefix}block_sparse_moe.output_linear.weight", dtype, (experts, hidden, inner)
        yield f"{prefix}block_sparse_moe.router.layer.weight", dtype, (experts, hidden)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{prefix}{norm}.weight", dtype, (hidden,)
        for name, rows, columns in projections({**shape, "intermediate_size": 1})[:4]:
            yield f"{prefix}{name}.weight", dtype, (rows, columns)


def header(weights: Iterator[Named] | Sequence[Named]) -> dict[str, Any]:
    """The header of one file."""
    found: dict[str, Any] = {}
    start = 0
    for name, dtype, shape in weights:
        end = start + math.prod(shape) * _BYTES[dtype]
        found[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
        start = end
    return found


def write_file(path: Path, content: Mapping[str, Any]) -> None:
    """A safetensors file of its full size; its weights are a hole."""
    text = json.dumps(content).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    ends = [entry["data_offsets"][1] for name, entry in content.items() if name != "__metadata__"]
    os.truncate(path, 8 + len(text) + max(ends, default=0))


def write_model(folder: Path, shape: Mapping[str, Any], weights: Iterator[Named] | Sequence[Named] = ()) -> Path:
    """A folder with config.json, and one file of weights where there are some."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(shape))
    named = list(weights)
    if named:
        write_file(folder / "model.safetensors", {"__metadata__": {"format": "pt"}, **header(named)})
    return folder


def write_shards(folder: Path, shape: Mapping[str, Any], weights: Iterator[Named], count: int) -> Path:
    """The same in several files, with their index."""
    write_model(folder, shape)
    named = list(weights)
    names = [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    total = 0
    for i, name in enumerate(names):
        part = header(named[i::count])
        write_file(folder / name, part)
        total += sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in part.values())
    held = {weight[0]: names[i % count] for i, weight in enumerate(named)}
    index = {"metadata": {"total_size": total}, "weight_map": held}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
