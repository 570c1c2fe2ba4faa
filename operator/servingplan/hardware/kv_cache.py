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

    blocks = bytes // bytes a block, at the stage that has fewest; concurrency = blocks / blocks of one request of
    max_model_len; tokens = blocks // groups x block up to v0.19, concurrency x max_model_len later (vllm issue 54662).
    """
    groups = cache_groups(model, layout, engine)
    if not groups:
        return None
    held = stages(len(model.layers), layout.pipeline)
    block_bytes = [max(group.size_within(layers) for group in groups) for layers in held]
    blocks = min(max(0, size) // block for size, block in zip(sizes, block_bytes, strict=True) if block)
    needed = request_blocks(groups, engine.max_model_len, engine.tokens_in_flight(layout.pipeline))
    concurrency = blocks / needed
    if engine.version <= TOKENS_BY_GROUP:
        tokens = blocks // len(groups) * min(group.first.tokens for group in groups)
    else:
        tokens = int(concurrency * engine.max_model_len)
    largest = max(sum(page.size for page in group.pages) for group in groups)
    return Pool(
        groups=groups,
        blocks=blocks,
        block_bytes=max(block_bytes),
        request_blocks=needed,
        concurrency=concurrency,
        tokens=tokens,
        wasted=1 - sum(page.size for group in groups for page in group.pages) / (largest * len(groups)),
    )


def request_blocks(groups: Sequence[Group], length: int, in_flight: int) -> int:
    """Blocks of one request of `length` tokens: what each group needs, added up."""
    return sum(max(page.blocks(length, in_flight) for page in group.pages) for group in groups)
