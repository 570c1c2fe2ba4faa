"""Weights by role and layer: from the headers of a checkpoint where there are some, from its config where not.

In: a config with its kinds of layers and its stored format, tensors or bytes that are known. Out: the weight parts of
a `Model`, and where their bytes come from.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from servingplan.hardware.model import Role, WeightPart, WeightSource
from servingplan.inventory.attention import LayerKind
from servingplan.inventory.fields import Config
from servingplan.inventory.parameters import elements
from servingplan.inventory.quantization import Stored
from servingplan.inventory.safetensors import ELEMENT_BITS, Tensor

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d+)\.")
_ENCODER = re.compile(
    r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal_projector|mm_projector|mlp1|embed_vision|embed_audio)\."
)
_SCALES = re.compile(
    r"(?:scales?|scale_inv|scale_2|global_scale|zero_point|zeros|qzeros|g_idx|weight_shape|absmax|quant_map|nested_\w+|"
    r"quant_state\.\w+|SCB|weight_format)$"
)
_ROLES: Sequence[tuple[Role, re.Pattern[str]]] = (
    (Role.OUTPUT, re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.")),
    (
        Role.EMBEDDING,
        re.compile(r"(?:^|\.)(?:embed_tokens\w*|wte|tok_embeddings|word_embeddings|embeddings?|embed_in)\."),
    ),
    (Role.EXPERTS, re.compile(r"\.experts\.|block_sparse_moe\.(?:input|output)_linear\.")),
    (Role.KV, re.compile(r"\.(?:k_proj|v_proj|wk|wv)\.")),
    (
        Role.REPLICATED,
        re.compile(r"norm|\.ln_|\.(?:q_a_proj|kv_a_proj_with_mqa|gate|router|shared_expert_gate|sinks?)(?:\.|$)"),
    ),
)
"""What a weight is by its name, the first that matches; the rest is LINEAR."""

_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_PACKED = frozenset({"I32", "U8", "I8"})

Parts = tuple[tuple[WeightPart, ...], WeightSource]


def from_tensors(config: Config, tensors: Iterable[Tensor], held: Stored, dtype_bytes: int) -> Parts:
    """Parts from headers. Weights beyond the decoder's layers (draft layers) are left out: vLLM does not load them."""
    layers = config.count("layers")
    found: defaultdict[tuple[Role, int | None], list[int]] = defaultdict(lambda: [0, 0])
    for tensor in tensors:
        role, layer = _place(tensor.name)
        if layer is not None and layer >= layers:
            continue
        counted, size = _in_memory(tensor, held, dtype_bytes)
        found[role, layer][0] += counted
        found[role, layer][1] += size
    if config.flag("tie_word_embeddings"):
        found.pop((Role.OUTPUT, None), None)
    parts = (
        WeightPart(role=role, layer=layer, elements=counted, size=size)
        for (role, layer), (counted, size) in found.items()
    )
    return tuple(sorted(parts, key=_order)), WeightSource.HEADERS


def _order(part: WeightPart) -> tuple[int, str]:
    return (-1 if part.layer is None else part.layer, part.role.value)


def _place(name: str) -> tuple[Role, int | None]:
    if _ENCODER.search(name):
        return Role.ENCODER, None
    layer = _LAYER.search(name)
    role = next((role for role, pattern in _ROLES if pattern.search(name)), Role.LINEAR)
    if layer is None:
        return (role if role in {Role.OUTPUT, Role.EMBEDDING} else Role.REPLICATED), None
    return (Role.LINEAR if role in {Role.OUTPUT, Role.EMBEDDING} else role), int(layer[1])


def _in_memory(tensor: Tensor, held: Stored, dtype_bytes: int) -> tuple[int, int]:
    """Parameters and bytes of one tensor once vLLM has loaded it."""
    if _SCALES.search(tensor.name):
        return 0, tensor.size
    if tensor.dtype in _FLOATS:
        return tensor.elements, tensor.elements * dtype_bytes
    if held.method is not None and tensor.dtype in _PACKED:
        return tensor.elements * max(1, ELEMENT_BITS[tensor.dtype] // int(held.bits)), tensor.size
    return tensor.elements, tensor.size


def from_config(config: Config, kinds: Sequence[LayerKind], held: Stored, dtype_bytes: int) -> Parts:
    """Parts from the config alone: parameters x bits / 8."""
    found: defaultdict[tuple[Role, int | None], int] = defaultdict(int)
    for role, layer, count in elements(config, kinds):
        found[role, layer] += count
    parts = (
        WeightPart(role=role, layer=layer, elements=count, size=round(count * _bits(role, held, dtype_bytes) / 8))
        for (role, layer), count in found.items()
    )
    return tuple(sorted(parts, key=_order)), WeightSource.CONFIG


def _bits(role: Role, held: Stored, dtype_bytes: int) -> float:
    quantized = {Role.EXPERTS} if held.experts_only else {Role.EXPERTS, Role.LINEAR, Role.KV}
    return held.bits if role in quantized else 8.0 * dtype_bytes


def scaled_to(parts: Sequence[WeightPart], total: int) -> Parts:
    """Parts of a config, with the bytes that the checkpoint's index states."""
    share = total / sum(part.size for part in parts)
    scaled = (
        WeightPart(role=part.role, layer=part.layer, elements=part.elements, size=round(part.size * share))
        for part in parts
    )
    return tuple(scaled), WeightSource.INDEX
