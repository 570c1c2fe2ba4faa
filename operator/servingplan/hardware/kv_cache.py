"""The KV cache as vLLM sizes it: blocks of one pool, tokens and concurrency as its log prints them.

In: bytes for the cache on each pipeline stage, a model, a layout, an engine. Out: a `Pool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servingplan.hardware.engine import TOKENS_BY_GROUP, Engine
from servingplan.hardware.model import Model
from servingplan.hardware.pages import Group, cache_groups
from servingplan.hardware.parallelism import Layout, stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Blocks that all groups draw from.

    block_bytes: of one block on the GPU that needs most. request_blocks: of one request of max_model_len. concurrency:
    such requests at once. tokens: the cache's size as vLLM's log of that version prints it. wasted: share of a block
    that is padding.
    """

    groups: tuple[Group, ...]
    blocks: int
    block_bytes: int
    request_blocks: int
    concurrency: float
    tokens: int
    wasted: float


def pool(sizes: Sequence[int], model: Model, layout: Layout, engine: Engine) -> Pool | None:
    """The pool from the bytes that each pipeline stage has for it; None for a model that caches nothing.

    blocks = bytes // bytes a block, at the stage that has fewest.
    """
    groups = cache_groups(model, layout, engine)
    if not groups:
        return None
    blocks = min(max(0, size) // block for size, block in zip(sizes, _block_bytes(groups, model, layout), strict=True))
    return _pool(blocks, groups, model, layout, engine)


def logged_pool(tokens: int, model: Model, layout: Layout, engine: Engine) -> Pool | None:
    """The pool from the size that vLLM's log printed, read by its version; None for a model that caches nothing."""
    groups = cache_groups(model, layout, engine)
    if not groups:
        return None
    if engine.version <= TOKENS_BY_GROUP:
        blocks = tokens // _smallest_block(groups) * len(groups)
    else:
        needed = request_blocks(groups, engine.max_model_len, engine.tokens_in_flight(layout.pipeline))
        blocks = round(tokens / engine.max_model_len * needed)
    return _pool(blocks, groups, model, layout, engine)


def _pool(blocks: int, groups: tuple[Group, ...], model: Model, layout: Layout, engine: Engine) -> Pool:
    """Concurrency = blocks / blocks of one request of max_model_len.

    Tokens = blocks // groups x block up to v0.19, concurrency x max_model_len later (vllm issue 54662).
    """
    needed = request_blocks(groups, engine.max_model_len, engine.tokens_in_flight(layout.pipeline))
    concurrency = blocks / needed
    by_group = engine.version <= TOKENS_BY_GROUP
    largest = max(sum(page.size for page in group.pages) for group in groups)
    return Pool(
        groups=groups,
        blocks=blocks,
        block_bytes=max(_block_bytes(groups, model, layout)),
        request_blocks=needed,
        concurrency=concurrency,
        tokens=blocks // len(groups) * _smallest_block(groups) if by_group else int(concurrency * engine.max_model_len),
        wasted=1 - sum(page.size for group in groups for page in group.pages) / (largest * len(groups)),
    )


def _block_bytes(groups: Sequence[Group], model: Model, layout: Layout) -> Sequence[int]:
    """Bytes of one block on a GPU of each pipeline stage; at least 1, for a stage that caches nothing."""
    held = stages(len(model.layers), layout.pipeline)
    return [max(1, *(group.size_within(layers) for group in groups)) for layers in held]


def _smallest_block(groups: Sequence[Group]) -> int:
    return min(group.first.tokens for group in groups)


def request_blocks(groups: Sequence[Group], length: int, in_flight: int) -> int:
    """Blocks of one request of `length` tokens: what each group needs, added up."""
    return sum(max(page.blocks(length, in_flight) for page in group.pages) for group in groups)
