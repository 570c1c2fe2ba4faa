"""What vLLM takes beside weights and KV cache: activations, what lies outside of torch, CUDA graphs.

In: a model, a layout, an engine. Out: bytes, estimated. Fitted to public start-up logs of v0.19.0 on H100
(llm-d-incubation/llm-d-planner at d3121e05, accuracy/results/v0.19.0/logs): on 44 of them, with the logged weights,
half of the caches come out within 0.1 GiB, nine of ten within 0.35, pipelines 1 GiB too small. A log of one's own
replaces all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.hardware.accelerator import GIB
from servingplan.hardware.engine import GRAPHS_COUNTED, Engine
from servingplan.hardware.model import Model
from servingplan.hardware.parallelism import Layout

SAMPLER_BYTES = 15.2
"""Bytes for each of max_num_seqs x vocabulary when a full batch is sampled: logits, and their sorted copies."""

HIDDEN_COPIES = 7
"""Copies of the hidden state that a step holds at its peak, beside two of the MLP's intermediate one."""

EXPERTS_GIB = 0.45
"""What the buffers of a mixture of experts add."""

ENCODER_GIB = 0.3
"""What profiling an encoder for images adds."""

OUTSIDE_TORCH_GIB = 0.3
OUTSIDE_TORCH_TENSOR_GIB = 2.1
"""CUDA's own memory, and with tensor parallelism NCCL's and the custom all-reduce's buffers."""

GRAPHS_GIB = 1.2
"""CUDA graphs; 0.5 to 1.9 in the logs."""

ERROR, LEAST_ERROR_GIB = 0.1, 0.3
"""How far the sum may be off where vLLM has not changed since these logs: a share of it, and never less than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Bytes a GPU. graphs: 0 where vLLM does not take them off before it sizes the cache."""

    activation: int
    outside_torch: int
    graphs: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.activation + self.outside_torch + self.graphs


def margins(model: Model, layout: Layout, engine: Engine) -> Margins:
    """The estimate.

    activation = max(15.2 x max_num_seqs x vocabulary,
    2 x max_num_batched_tokens x (2 intermediate / tensor + 7 hidden)) + 0.45 GiB for experts + 0.3 GiB for an encoder.
    """
    sampler = SAMPLER_BYTES * min(engine.max_num_seqs, engine.max_num_batched_tokens) * model.vocabulary
    width = 2 * model.intermediate / layout.tensor + HIDDEN_COPIES * model.hidden
    activation = max(sampler, model.dtype_bytes * engine.max_num_batched_tokens * width)
    extra = (EXPERTS_GIB if model.experts is not None else 0) + (ENCODER_GIB if model.multimodal else 0)
    outside = OUTSIDE_TORCH_GIB if layout.tensor == 1 else OUTSIDE_TORCH_TENSOR_GIB
    return Margins(
        activation=round(activation + extra * GIB),
        outside_torch=round(outside * GIB),
        graphs=round(GRAPHS_GIB * GIB) if engine.version >= GRAPHS_COUNTED else 0,
    )
