"""A model from its files: config.json, and headers of its weights where there are some.

In: a path as given on the command line. Out: a `Model`. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servingplan.hardware.model import Layer, Model, WeightPart, WeightSource
from servingplan.inventory.attention import LayerKind, kv_heads, layer_caches, layer_kinds
from servingplan.inventory.fields import LARGEST, Config, read_config
from servingplan.inventory.files import read_object, refuse
from servingplan.inventory.parameters import experts
from servingplan.inventory.quantization import Stored, stored
from servingplan.inventory.safetensors import headers_of, indexed_bytes
from servingplan.inventory.weights import from_config, from_tensors, scaled_to

CONFIG_FILE = "config.json"

_UNSCALED = frozenset({"default", "mrope", "llama3", "longrope", "su", "proportional"})
"""Kinds of rotary scaling after which max_position_embeddings is already the longest context."""


def read_model(argument: str) -> Model:
    """The model of ``[NAME=]PATH``: a folder, or its config.json. Raises InputError."""
    name, path = _named(argument)
    file = path / CONFIG_FILE if path.is_dir() else path
    if path.is_dir() and not file.exists():
        refuse(path, "FileNotFound", f"the folder has no {CONFIG_FILE}: name the folder of a model")
    config = read_config(file, read_object(file))
    return _model(name or _folder_name(file), config, file.parent if path.is_dir() else None)


def _named(argument: str) -> tuple[str | None, Path]:
    name, sign, path = argument.partition("=")
    if sign and name and "/" not in name and not Path(argument).exists():
        return name, Path(path)
    return None, Path(argument)


def _folder_name(file: Path) -> str:
    """``qwen3-8b`` of ``qwen3-8b/config.json`` and of ``qwen3-8b.json``."""
    return file.resolve().parent.name if file.name == CONFIG_FILE else file.stem


def _model(name: str, config: Config, folder: Path | None) -> Model:
    dtype_bytes = _dtype_bytes(config)
    kinds, held = layer_kinds(config), stored(config, dtype_bytes)
    parts, source, disk = _weights(config, kinds, held, dtype_bytes, folder)
    return Model(
        name=name,
        architecture=_architecture(config),
        layers=tuple(Layer(caches=caches) for caches in layer_caches(config, kinds, dtype_bytes)),
        hidden=config.count("hidden"),
        intermediate=_intermediate(config),
        heads=config.count("heads", 1),
        kv_heads=kv_heads(config) if config.get("num_attention_heads") or config.get("n_head") else 1,
        vocabulary=config.count("vocabulary"),
        max_len=_max_len(config),
        dtype_bytes=dtype_bytes,
        weight_bits=held.bits,
        quantization=held.method,
        weights=parts,
        weight_source=source,
        disk=disk,
        tied=config.flag("tie_word_embeddings"),
        experts=experts(config),
        multimodal=config.multimodal,
    )


def _weights(
    config: Config, kinds: tuple[LayerKind, ...], held: Stored, dtype_bytes: int, folder: Path | None
) -> tuple[tuple[WeightPart, ...], WeightSource, int]:
    tensors = headers_of(folder) if folder is not None else None
    if tensors is not None:
        parts, source = from_tensors(config, tensors, held, dtype_bytes)
        return parts, source, sum(tensor.size for tensor in tensors)
    parts, source = from_config(config, kinds, held, dtype_bytes)
    total = indexed_bytes(folder) if folder is not None else None
    if total is not None:
        parts, source = scaled_to(parts, total)
    return parts, source, sum(part.size for part in parts)


def _architecture(config: Config) -> str:
    names = config.whole.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else config.family


def _dtype_bytes(config: Config) -> int:
    """Bytes of an activation: vLLM serves float32 checkpoints in 16 bits unless it is told otherwise."""
    stated = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    known = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 2, "float": 2}
    if stated.removeprefix("torch.") not in known:
        config.refuse("InvalidField", f"torch_dtype is {stated!r}; known are {', '.join(known)}")
    return known[stated.removeprefix("torch.")]


def _intermediate(config: Config) -> int:
    """The widest thing that a token passes in one layer."""
    mixture = experts(config)
    if mixture is not None and (inner := config.optional("moe_intermediate_size")) is not None:
        return inner * mixture.per_token
    return config.count("intermediate", 4 * config.count("hidden"))


def _max_len(config: Config) -> int:
    """The longest context: max_position_embeddings, times the factor of rotary scaling where that is to be added."""
    positions = config.count("positions", 2048)
    scaling: Mapping[str, Any] = config.section("rope_scaling") or config.section("rope_parameters")
    kind, factor = str(scaling.get("rope_type") or scaling.get("type") or "default"), scaling.get("factor")
    if kind in _UNSCALED or config.family.startswith("gemma3"):
        return positions
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= LARGEST:
        return positions
    original = scaling.get("original_max_position_embeddings")
    return round(factor * (original if kind == "yarn" and isinstance(original, int) and original > 0 else positions))
