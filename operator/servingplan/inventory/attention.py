"""Which layer of a model does what: attention of which kind, a recurrent state, or nothing that is cached.

In: a config. Out: one `LayerKind` a layer, and the caches that follow. The rules are those of vLLM's model classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum

from servingplan.hardware.model import Attention, AttentionLayer, CacheLayer, StateLayer
from servingplan.inventory import states
from servingplan.inventory.fields import MOST_LAYERS, Config


class LayerKind(StrEnum):
    """What a decoder layer is."""

    FULL = "full_attention"
    SLIDING = "sliding_attention"
    CHUNKED = "chunked_attention"
    STATE = "state"
    BOTH = "state beside attention"
    NEITHER = "no cache"


_SPELLED: Mapping[str, LayerKind] = {
    "full_attention": LayerKind.FULL,
    "attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "chunked_attention": LayerKind.CHUNKED,
    "linear_attention": LayerKind.STATE,
    "mamba": LayerKind.STATE,
    "mamba2": LayerKind.STATE,
    "conv": LayerKind.STATE,
    "recurrent": LayerKind.STATE,
    "hybrid": LayerKind.BOTH,
    "moe": LayerKind.NEITHER,
    "mlp": LayerKind.NEITHER,
}

_PATTERN: Mapping[str, LayerKind] = {"M": LayerKind.STATE, "*": LayerKind.FULL}

StateMaker = Callable[[Config, int], tuple[StateLayer, int]]

STATES: Mapping[str, StateMaker] = {
    "mamba": states.mamba1,
    "falcon_mamba": states.mamba1,
    "jamba": states.mamba1,
    "mamba2": states.mamba2,
    "bamba": states.mamba2,
    "granitemoehybrid": states.mamba2,
    "nemotron_h": states.mamba2,
    "falcon_h1": states.mamba2,
    "zamba2": states.mamba2,
    "qwen3_next": states.delta_net,
    "qwen3_5": states.delta_net,
    "qwen3_5_text": states.delta_net,
    "qwen3_5_moe": states.delta_net,
    "qwen3_5_moe_text": states.delta_net,
    "kimi_linear": states.delta_attention,
    "minimax": states.lightning,
    "minimax_text_01": states.lightning,
    "MiniMaxText01": states.lightning,
    "lfm2": states.short_convolution,
    "lfm2_moe": states.short_convolution,
}
"""The recurrent layer of each family that has one."""

_ALL_STATE = frozenset({"mamba", "mamba2", "falcon_mamba"})
_EVERY_SIXTH, _EVERY_FOURTH, _EVERY_OTHER = 6, 4, 2
_FULL_EVERY: Mapping[str, int] = {
    "gemma2": _EVERY_OTHER,
    "gemma3_text": _EVERY_SIXTH,
    "cohere2": _EVERY_FOURTH,
    "gpt_oss": _EVERY_OTHER,
}
"""Families that alternate: all layers but every n-th look back a window."""


def layer_kinds(config: Config) -> tuple[LayerKind, ...]:
    """The kind of each layer, in order. Raises InputError for kinds that are not known."""
    count = config.count("layers")
    if count > MOST_LAYERS:
        config.refuse("InvalidField", f"num_hidden_layers is {count}: no model has so many, download the file again")
    for rule in (_by_pattern, _by_types, _by_family):
        kinds = rule(config, count)
        if kinds:
            return tuple(kinds)
    window = config.optional("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return (LayerKind.FULL,) * count
    return (LayerKind.SLIDING,) * count


def _by_pattern(config: Config, count: int) -> Sequence[LayerKind]:
    """Nemotron-H writes one letter a layer."""
    pattern = config.get("hybrid_override_pattern")
    if not isinstance(pattern, str):
        return ()
    if len(pattern) != count:
        config.refuse("InvalidField", f"hybrid_override_pattern has {len(pattern)} letters for {count} layers")
    return [_PATTERN.get(letter, LayerKind.NEITHER) for letter in pattern]


def _by_types(config: Config, count: int) -> Sequence[LayerKind]:
    types = config.sequence("layer_types") or config.sequence("layers_block_type")
    if not types:
        return ()
    if len(types) != count:
        config.refuse("InvalidField", f"layer_types has {len(types)} entries for {count} layers")
    unknown = sorted({str(name) for name in types} - set(_SPELLED))
    if unknown:
        config.refuse("NotSupported", f"layers of type {', '.join(unknown)} are not known: size it with a log of vLLM")
    return [_SPELLED[name] for name in types]


def _by_family(config: Config, count: int) -> Sequence[LayerKind]:
    if config.family in _ALL_STATE:
        return [LayerKind.STATE] * count
    if config.family == "falcon_h1":
        return [LayerKind.BOTH] * count
    if config.family in STATES:
        full = _full_layers(config, count)
        return [LayerKind.FULL if i in full else LayerKind.STATE for i in range(count)]
    return _llama4(config, count) if config.family == "llama4_text" else _alternating(config, count)


def _alternating(config: Config, count: int) -> Sequence[LayerKind]:
    """Layers with a window between layers that see everything; nothing for families that do not alternate."""
    if config.family == "qwen2" and config.flag("use_sliding_window"):
        first = config.count("max_window_layers", count)
        return [LayerKind.SLIDING if i >= first else LayerKind.FULL for i in range(count)]
    every = config.optional("sliding_window_pattern") or _FULL_EVERY.get(config.family)
    if every is None or config.optional("sliding_window") is None:
        return ()
    return [LayerKind.FULL if (i + 1) % every == 0 else LayerKind.SLIDING for i in range(count)]


def _full_layers(config: Config, count: int) -> Collection[int]:
    """The layers with attention, in families whose others are recurrent."""
    if config.family == "jamba":
        return range(config.whole_number("attn_layer_offset"), count, config.count("attn_layer_period"))
    if config.family.startswith("qwen3"):
        every = config.count("full_attention_interval", _EVERY_FOURTH)
        return range(every - 1, count, every)
    if listed := config.sequence("attn_layer_indices"):
        return listed
    if numbered := config.section("linear_attn_config").get("full_attn_layers"):
        # Kimi numbers layers from 1.
        return [i - 1 for i in numbered if isinstance(i, int)] if isinstance(numbered, list) else []
    if kinds := config.sequence("attn_type_list"):
        return [i for i, kind in enumerate(kinds) if kind == 1]
    return config.refuse("FieldMissing", "layer_types is missing: it says which layers are recurrent")


def _llama4(config: Config, count: int) -> Sequence[LayerKind]:
    """Layers without rotary embedding see everything; the others see their chunk."""
    rotary = config.sequence("no_rope_layers") or [(i + 1) % _EVERY_FOURTH != 0 for i in range(count)]
    chunked = config.optional("attention_chunk_size") is not None
    if len(rotary) != count:
        config.refuse("InvalidField", f"no_rope_layers has {len(rotary)} entries for {count} layers")
    return [LayerKind.CHUNKED if rotates and chunked else LayerKind.FULL for rotates in rotary]


# ---- what a layer caches ---------------------------------------------------------------------------------


def layer_caches(config: Config, kinds: Sequence[LayerKind], dtype_bytes: int) -> tuple[tuple[CacheLayer, ...], ...]:
    """The caches of each layer. The last layers of some families share those of earlier ones and have none."""
    own = len(kinds) - (config.optional("num_kv_shared_layers") or 0)
    return tuple(_caches(config, kind, dtype_bytes) if index < own else () for index, kind in enumerate(kinds))


def _caches(config: Config, kind: LayerKind, dtype_bytes: int) -> tuple[CacheLayer, ...]:
    if kind is LayerKind.NEITHER:
        return ()
    if kind is LayerKind.STATE:
        return (state_maker(config)(config, dtype_bytes)[0],)
    if kind is LayerKind.BOTH:
        return (state_maker(config)(config, dtype_bytes)[0], _attention(config, LayerKind.FULL))
    if config.optional("kv_lora_rank") is not None:
        return _latent(config)
    return (_attention(config, kind),)


def state_maker(config: Config) -> StateMaker:
    """How the recurrent layer of this family is shaped. Raises InputError for families that are not known."""
    maker = STATES.get(config.family)
    if maker is None:
        config.refuse(
            "NotSupported", f"the recurrent layers of {config.family or 'this model'} are not known: size it with a log"
        )
    return maker


def head_size(config: Config) -> int:
    """Elements of a head: as stated, or hidden / heads."""
    return config.count("head_size", max(1, config.count("hidden") // config.count("heads")))


def kv_heads(config: Config) -> int:
    """KV heads: as stated, one for multi-query attention, else as many as heads."""
    if (
        config.flag("multi_query")
        and config.get("num_kv_heads") is None
        and not config.flag("new_decoder_architecture")
    ):
        return 1
    return config.count("kv_heads", config.count("heads"))


def _attention(config: Config, kind: LayerKind) -> AttentionLayer:
    heads, size = kv_heads(config), head_size(config)
    if kind is LayerKind.FULL and config.optional("global_head_dim") is not None:
        # Gemma 4: layers that see everything have heads of their own size.
        heads = config.optional("num_global_key_value_heads") or heads
        size = config.count("global_head_dim")
    values = config.optional("v_head_dim") or size
    if kind is LayerKind.SLIDING:
        window = config.count("sliding_window")
        return AttentionLayer(kind=Attention.SLIDING, heads=heads, key_size=size, value_size=values, window=window)
    if kind is LayerKind.CHUNKED:
        window = config.count("attention_chunk_size")
        return AttentionLayer(kind=Attention.CHUNKED, heads=heads, key_size=size, value_size=values, window=window)
    return AttentionLayer(kind=Attention.FULL, heads=heads, key_size=size, value_size=values)


INDEX_SCALE_BYTES = 4
"""The scale beside each token's key in the cache of a sparse-attention indexer (one byte an element)."""


def _latent(config: Config) -> tuple[AttentionLayer, ...]:
    rank, rotary = config.count("kv_lora_rank"), config.count("qk_rope_head_dim")
    latent = AttentionLayer(kind=Attention.LATENT, heads=1, key_size=rank + rotary, value_size=0)
    index = config.optional("index_head_dim")
    if index is None:
        return (latent,)
    indexer = AttentionLayer(
        kind=Attention.LATENT, heads=1, key_size=index, value_size=0, token_bytes=index + INDEX_SCALE_BYTES
    )
    return (latent, indexer)
