"""What each layer keeps in the KV cache of one GPU: pages, blocks, and the groups that share one block table.

In: a model's layers, a layout and the engine's settings. Out: groups, formed as vLLM forms them (v1/core/
kv_cache_utils.py, `get_kv_cache_groups`): layers that keep the same are split into groups of equal size, which draw
blocks from one pool, so that a group that is not full wastes its rest.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from servingplan.hardware.engine import BLOCK_TOKENS, CACHE_BYTES, LATENT_TOKEN_BYTES, TOKENS_BY_GROUP, Engine
from servingplan.hardware.model import Attention, AttentionLayer, CacheLayer, Model, StateLayer
from servingplan.hardware.parallelism import Layout, stages

LATENT_BLOCK_STEP = 64
"""Tokens by which the block of latent attention grows beside recurrent layers; 16 for other attention."""

GROUP_SLACK = Fraction(3, 2)
"""Where the most frequent kind has less than this times the layers of the rarest, groups are as large as the former."""

ALIGNED_STATES = 2
"""States a request and recurrent layer with prefix caching: the one in use, and the one that is cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One block of one layer: `size` bytes for `tokens` tokens. window: None where all tokens are kept.

    state: a recurrent state, of which a request holds `states` whatever its length.
    """

    kind: Attention | None
    tokens: int
    size: int
    window: int | None = None
    states: int = 0

    def blocks(self, length: int, in_flight: int) -> int:
        """Blocks that a request of `length` tokens holds at most, with `in_flight` tokens of its prompt scheduled."""
        if self.kind is None:
            return self.states
        if self.kind is Attention.SLIDING and self.window is not None:
            # One more: a window rarely starts at the start of a block.
            return math.ceil(min(self.window - 1 + in_flight, length) / self.tokens) + 1
        if self.kind is Attention.CHUNKED and self.window is not None:
            return math.ceil(min(self.window + in_flight, length) / self.tokens)
        return math.ceil(length / self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers with one block table. members: indices of decoder layers, one entry for each cache that is in it.

    pages: what each member keeps, all for the same tokens.
    """

    members: tuple[int, ...]
    pages: tuple[Page, ...]

    @property
    def first(self) -> Page:
        """The page that stands for all where blocks are counted."""
        return self.pages[0]

    def size_within(self, layers: range) -> int:
        """Bytes of one block of the members in these layers."""
        return sum(page.size for member, page in zip(self.members, self.pages, strict=True) if member in layers)


def cache_groups(model: Model, layout: Layout, engine: Engine) -> tuple[Group, ...]:
    """The groups of a model's layers; empty where nothing is cached."""
    owners = [index for index, layer in enumerate(model.layers) for _ in layer.caches]
    pages = _with_states([_page(cache, model, layout, engine) for cache in model.caches], model)
    if not pages:
        return ()
    if len({_token_kind(page) for page in pages}) == 1:
        # All layers need the same number of token slots: one group, whatever the size of their pages.
        return (Group(members=tuple(owners), pages=tuple(pages)),)
    return _equal_groups(owners, _same_size(pages))


def _page(cache: CacheLayer, model: Model, layout: Layout, engine: Engine) -> Page:
    if isinstance(cache, StateLayer):
        size = sum(tensor.elements * tensor.bytes_each for tensor in cache.tensors) // layout.tensor
        aligned = engine.prefix_caching and engine.version > TOKENS_BY_GROUP
        return Page(kind=None, tokens=engine.max_model_len, size=size, states=ALIGNED_STATES if aligned else 1)
    token = token_bytes(cache, layout, engine, model.dtype_bytes)
    return Page(kind=cache.kind, tokens=BLOCK_TOKENS, size=math.ceil(BLOCK_TOKENS * token), window=cache.window)


def token_bytes(cache: AttentionLayer, layout: Layout, engine: Engine, dtype_bytes: int) -> Fraction:
    """Bytes a token takes in one layer on one GPU.

    max(1, kv_heads / tensor) x (key + value) x bytes; latent attention is held whole by every GPU.
    """
    if cache.token_bytes is not None:
        return Fraction(cache.token_bytes)
    if cache.kind is Attention.LATENT and engine.cache_dtype in LATENT_TOKEN_BYTES:
        return Fraction(LATENT_TOKEN_BYTES[engine.cache_dtype])
    element = CACHE_BYTES.get(engine.cache_dtype, Fraction(dtype_bytes))
    heads = cache.heads if cache.kind is Attention.LATENT else max(1, cache.heads // layout.tensor)
    return heads * (cache.key_size + cache.value_size) * element


def _token_kind(page: Page) -> tuple[str, int | None]:
    """Layers are of one type where they need the same number of token slots: full and latent attention do."""
    if page.kind is None:
        return "state", page.size
    return ("all" if page.window is None else page.kind.value), page.window


def _with_states(pages: Sequence[Page], model: Model) -> Sequence[Page]:
    """Beside recurrent layers, attention's blocks grow until one holds a state, and states are padded to that.

    vLLM, `_align_hybrid_block_size`.
    """
    states = [page.size for page in pages if page.kind is None]
    attention = [page for page in pages if page.kind is not None]
    if not states or not attention:
        return pages
    step = LATENT_BLOCK_STEP if model.latent else BLOCK_TOKENS
    token = max(Fraction(page.size, page.tokens) for page in attention)
    tokens = max(BLOCK_TOKENS, step * math.ceil(max(states) / (step * token)))
    size = math.ceil(tokens * token)
    return [
        dataclasses.replace(page, size=size)
        if page.kind is None
        else dataclasses.replace(page, tokens=tokens, size=math.ceil(tokens * Fraction(page.size, page.tokens)))
        for page in pages
    ]


def _same_size(pages: Sequence[Page]) -> Sequence[Page]:
    """Pages of one size: smaller ones hold more tokens where that divides, or are padded (`unify_..._page_size`)."""
    largest = max(page.size for page in pages)
    return [
        dataclasses.replace(page, size=largest, tokens=page.tokens * (largest // page.size))
        if page.kind is not None and largest % page.size == 0
        else dataclasses.replace(page, size=largest)
        for page in pages
    ]


def _equal_groups(owners: Sequence[int], pages: Sequence[Page]) -> tuple[Group, ...]:
    alike: dict[Page, list[int]] = {}
    for owner, page in zip(owners, pages, strict=True):
        alike.setdefault(page, []).append(owner)
    size = group_size({page: len(members) for page, members in alike.items()})
    return tuple(
        Group(members=tuple(members[i::count]), pages=(page,) * len(members[i::count]))
        for page, members in alike.items()
        for count in (math.ceil(len(members) / size),)
        for i in range(count)
    )


def group_size(layers: Mapping[Page, int]) -> int:
    """Layers a group: as many as the rarest kind has, or as the most frequent one where that is not much more."""
    fewest, most = min(layers.values()), max(layers.values())
    return most if most < GROUP_SLACK * fewest else fewest


def cache_bytes(model: Model, layout: Layout, engine: Engine) -> int:
    """Bytes that a token takes on the GPU that holds most layers, in layers that keep all tokens."""
    return max(
        round(
            sum(
                token_bytes(cache, layout, engine, model.dtype_bytes)
                for index in held
                for cache in model.layers[index].caches
                if isinstance(cache, AttentionLayer) and cache.kind.keeps_all
            )
        )
        for held in stages(len(model.layers), layout.pipeline)
    )
