"""The memory of one GPU: what vLLM may take, what weights and margins leave of it, and the pool that comes out.

In: a model, a layout, an engine, an accelerator; or what a log of vLLM says instead. Out: `Memory`.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.hardware.accelerator import GIB, Accelerator
from servingplan.hardware.engine import GRAPHS_COUNTED, Engine
from servingplan.hardware.kv_cache import Pool, logged_pool, pool
from servingplan.hardware.margins import ERROR, LEAST_ERROR_GIB, Margins, margins
from servingplan.hardware.model import Model, WeightSource
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.weights import stage_bytes

HEADER_ERROR = 0.01
"""Weights from headers: text models on one pipeline stage come out within this share."""

CONFIG_ERROR = 0.07
"""Weights from the config alone, encoders and pipelines."""

PADDED_ERROR = 0.14
"""MXFP4 experts, which kernels pad to multiples of 128: gpt-oss-20b over two GPUs takes 9 % more than it should."""

COMFORTABLE = 0.2
"""A GPU is comfortable where the cache gets at least this share of what vLLM may take. Our own rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """What one start of vLLM logged, bytes a GPU; None where its log does not say.

    cache: for the KV cache. tokens: the size of the KV cache as printed.
    """

    weights: int | None
    activation: int | None
    outside_torch: int | None
    graphs: int | None
    cache: int | None
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of the GPU that has least room.

    allowed: utilization x memory. cache: what is left for the KV cache, negative where weights and margins do not
    fit. pool: None where nothing is cached or nothing is left. logged: it is from a log. error: bytes by which `cache`
    may be off. disagreement: what the formulas make of the logged bytes, against the logged tokens, as a share of
    these; None without both.
    """

    allowed: int
    weights: int
    margins: Margins
    cache: int
    pool: Pool | None
    logged: bool
    error: int
    disagreement: float | None = None

    @property
    def starts(self) -> bool:
        """Whether vLLM starts: one request of max_model_len must fit."""
        return self.cache > 0 and (self.pool is None or self.pool.blocks >= self.pool.request_blocks)

    @property
    def comfortable(self) -> bool:
        """Whether the cache has room to work with."""
        return self.starts and self.cache >= COMFORTABLE * self.allowed


def memory(model: Model, layout: Layout, engine: Engine, accelerator: Accelerator) -> Memory:
    """The estimate: utilization x physical memory - weights - activation - outside torch - graphs."""
    allowed = round(engine.utilization * accelerator.memory)
    weights = stage_bytes(model, layout)
    extra = margins(model, layout, engine)
    sizes = [allowed - stage - extra.total for stage in weights]
    return Memory(
        allowed=allowed,
        weights=max(weights),
        margins=extra,
        cache=min(sizes),
        pool=pool(sizes, model, layout, engine) if min(sizes) > 0 else None,
        logged=False,
        error=round(max(ERROR * extra.total, LEAST_ERROR_GIB * GIB) + _weight_error(model, layout) * max(weights)),
    )


def logged_memory(model: Model, layout: Layout, engine: Engine, accelerator: Accelerator, log: Logged) -> Memory:
    """What a log says, in the place of estimates; estimates where it does not say."""
    guess = margins(model, layout, engine)
    extra = Margins(
        activation=guess.activation if log.activation is None else log.activation,
        outside_torch=guess.outside_torch if log.outside_torch is None else log.outside_torch,
        # Before they were counted, the log named them all the same.
        graphs=guess.graphs if log.graphs is None or engine.version < GRAPHS_COUNTED else log.graphs,
    )
    found = logged_pool(log.tokens, model, layout, engine)
    computed = None if log.cache is None else pool([log.cache] * layout.pipeline, model, layout, engine)
    return Memory(
        allowed=round(engine.utilization * accelerator.memory),
        weights=max(stage_bytes(model, layout)) if log.weights is None else log.weights,
        margins=extra,
        cache=_cache_bytes(log, found),
        pool=found,
        logged=True,
        error=0,
        disagreement=None if computed is None else computed.tokens / log.tokens - 1,
    )


def _cache_bytes(log: Logged, found: Pool | None) -> int:
    if log.cache is not None:
        return log.cache
    return found.blocks * found.block_bytes if found is not None else 0


def _weight_error(model: Model, layout: Layout) -> float:
    if model.quantization == "mxfp4":
        return PADDED_ERROR
    exact = model.weight_source is not WeightSource.CONFIG and not model.multimodal and layout.pipeline == 1
    return HEADER_ERROR if exact else CONFIG_ERROR
