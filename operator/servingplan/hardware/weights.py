"""What the weights of a model take on the GPU of a replica that holds most.

In: a model and a layout. Out: bytes. Tensor parallelism divides a weight by its role (`model.Role`), a pipeline stage
holds its own layers, the first one the embedding and the last one the output layer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from servingplan.hardware.model import Model, Role, WeightPart, WeightSource
from servingplan.hardware.parallelism import Layout, stages

FORMAT_BITS: Mapping[str, float] = {"fp8": 8, "int8": 8, "int4": 4 + 16 / 128, "mxfp4": 4 + 8 / 32}
"""Bits of a linear weight in the formats that can be asked for instead of the checkpoint's own.

Four bits come with a scale: of 16 bits for 128 weights, of 8 bits for 32 in MXFP4.
"""

_QUANTIZED = frozenset({Role.LINEAR, Role.KV, Role.EXPERTS})


def stage_bytes(model: Model, layout: Layout) -> tuple[int, ...]:
    """Bytes of weights on a GPU of each pipeline stage."""
    found = [0.0] * layout.pipeline
    stage_of = {
        layer: index for index, layers in enumerate(stages(len(model.layers), layout.pipeline)) for layer in layers
    }
    for part in model.weights:
        share = part.size / _divisor(part.role, layout, model.kv_heads)
        for stage in _held_by(part, stage_of, layout.pipeline, tied=model.tied):
            found[stage] += share
    return tuple(round(size) for size in found)


def _divisor(role: Role, layout: Layout, kv_heads: int) -> int:
    if role is Role.REPLICATED:
        return 1
    return min(layout.tensor, kv_heads) if role is Role.KV else layout.tensor


def _held_by(part: WeightPart, stage_of: Mapping[int, int], pipeline: int, *, tied: bool) -> tuple[int, ...]:
    if part.layer is not None:
        return (stage_of[part.layer],)
    if part.role is Role.OUTPUT or part.role is Role.REPLICATED:
        return (pipeline - 1,)
    if part.role is Role.EMBEDDING and tied and pipeline > 1:
        return (0, pipeline - 1)
    return (0,)


def total_bytes(model: Model) -> int:
    """Bytes of the weights on one GPU."""
    return sum(part.size for part in model.weights)


def lower_bound(model: Model) -> int:
    """Parameters x bits / 8, with embedding, output and norms in the model's own format."""
    return sum(
        round(part.elements * (model.weight_bits / 8 if part.role in _QUANTIZED else model.dtype_bytes))
        for part in model.weights
    )


def requantized(model: Model, form: str) -> Model:
    """The model with its linear weights in another format of `FORMAT_BITS`; embedding, output and norms stay."""
    bits = FORMAT_BITS[form]
    parts = tuple(
        dataclasses.replace(part, size=round(part.elements * bits / 8)) if part.role in _QUANTIZED else part
        for part in model.weights
    )
    return dataclasses.replace(
        model,
        name=f"{model.name}:{form}",
        weights=parts,
        weight_bits=bits,
        quantization=form,
        weight_source=WeightSource.CONFIG,
        disk=sum(part.size for part in parts),
    )
