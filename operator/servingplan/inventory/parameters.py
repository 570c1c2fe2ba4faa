"""Parameters of a model from its config alone: how many weights each layer has, and what they are for.

In: a config and the kind of each layer. Out: weight parts by layer and role, in elements. Norms and biases are left
out: together they are under 0.1 % of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servingplan.hardware.model import Experts, Role
from servingplan.inventory.attention import LayerKind, head_size, kv_heads, state_maker
from servingplan.inventory.fields import Config

Elements = tuple[Role, int | None, int]
"""What it is for, the layer (None outside of layers), how many."""

_PLAIN_MLP = frozenset(
    {"gpt2", "gpt_neox", "gptj", "falcon", "phi", "opt", "bloom", "starcoder2", "gpt_bigcode", "nemotron", "nemotron_h"}
)
"""Families whose MLP has no gate: two matrices instead of three."""

_OWN_DENSE_SIZE = {"llama4_text": "intermediate_size_mlp"}
"""Families whose dense layers have another intermediate size than their experts."""


def elements(config: Config, kinds: Sequence[LayerKind]) -> Iterator[Elements]:
    """All weights of the model."""
    table = config.count("vocabulary") * config.count("hidden")
    yield Role.EMBEDDING, None, table
    if not config.flag("tie_word_embeddings"):
        yield Role.OUTPUT, None, table
    for layer, kind in enumerate(kinds):
        yield from _mixer(config, kind, layer)
        yield from _feed_forward(config, kind, layer)
    if config.multimodal:
        yield Role.ENCODER, None, _encoder(config)


def experts(config: Config) -> Experts | None:
    """The mixture of experts, where there is one."""
    count = _stated(config, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    if count is None or count == 1:
        return None
    taken = _stated(config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "experts_per_token")
    return Experts(count=count, per_token=min(taken or 1, count))


def _stated(config: Config, *names: str) -> int | None:
    return next((found for name in names if (found := config.optional(name)) is not None), None)


def _mixer(config: Config, kind: LayerKind, layer: int) -> Iterator[Elements]:
    if kind in {LayerKind.STATE, LayerKind.BOTH}:
        yield Role.LINEAR, layer, state_maker(config)(config, 2)[1]
    if kind in {LayerKind.STATE, LayerKind.NEITHER}:
        return
    hidden, heads, size = config.count("hidden"), config.count("heads"), head_size(config)
    rank = config.optional("kv_lora_rank")
    if rank is not None:
        yield from _latent_attention(config, rank, layer)
        return
    # A gated output doubles the query.
    queries = 2 if config.flag("attn_output_gate") or config.family == "qwen3_next" else 1
    yield Role.LINEAR, layer, (queries + 1) * hidden * heads * size
    yield Role.KV, layer, 2 * hidden * kv_heads(config) * size


def _latent_attention(config: Config, rank: int, layer: int) -> Iterator[Elements]:
    hidden, heads = config.count("hidden"), config.count("heads")
    plain, rotary, value = (config.count(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    query_rank = config.optional("q_lora_rank")
    query = query_rank or hidden
    yield Role.LINEAR, layer, query * heads * (plain + rotary) + rank * heads * (plain + value) + heads * value * hidden
    yield Role.REPLICATED, layer, hidden * (rank + rotary + (query_rank or 0))


def _feed_forward(config: Config, kind: LayerKind, layer: int) -> Iterator[Elements]:
    if config.family == "nemotron_h":
        # Its MLPs are layers of their own.
        if kind is LayerKind.NEITHER:
            yield Role.LINEAR, layer, 2 * config.count("hidden") * config.count("intermediate")
        return
    if config.family in {"mamba", "mamba2", "falcon_mamba"}:
        return
    hidden, mixture = config.count("hidden"), experts(config)
    if mixture is None or not has_experts(config, layer):
        inner = config.count(_OWN_DENSE_SIZE.get(config.family, "intermediate"), _default_intermediate(config))
        yield Role.LINEAR, layer, _matrices(config) * hidden * inner
        return
    inner = config.optional("moe_intermediate_size") or config.count("intermediate")
    yield Role.EXPERTS, layer, mixture.count * 3 * hidden * inner
    yield Role.REPLICATED, layer, hidden * mixture.count
    if shared := _shared_intermediate(config, inner):
        yield Role.LINEAR, layer, 3 * hidden * shared


def _matrices(config: Config) -> int:
    return 2 if config.family in _PLAIN_MLP else 3


def _default_intermediate(config: Config) -> int | None:
    return 4 * config.count("hidden") if config.family in _PLAIN_MLP else None


def _shared_intermediate(config: Config, inner: int) -> int:
    """The intermediate size of experts that every token takes; 0 where there are none."""
    stated = config.optional("shared_expert_intermediate_size") or config.optional("shared_intermediate_size")
    if config.family == "llama4_text":
        return inner
    return stated or (config.optional("n_shared_experts") or 0) * inner


def has_experts(config: Config, layer: int) -> bool:
    """Whether a layer has experts in a model where some do."""
    dense_first = config.optional("first_k_dense_replace") or config.optional("num_dense_layers") or 0
    if layer < dense_first or layer in config.sequence("mlp_only_layers"):
        return False
    if (period := config.optional("expert_layer_period")) is not None:
        return layer % period == config.whole_number("expert_layer_offset")
    if (every := config.optional("interleave_moe_layer_step")) is not None:
        return (layer + 1) % every == 0
    step = config.optional("decoder_sparse_step")
    return step is None or (layer + 1) % step == 0


def _encoder(config: Config) -> int:
    """A transformer encoder of the stated size; what joins it to the decoder is small."""
    total = 0
    for key in ("vision_config", "audio_config"):
        section = config.whole.get(key)
        if not isinstance(section, dict):
            continue
        hidden = _first(section, "hidden_size", "embed_dim", "width", "d_model")
        layers = _first(section, "num_hidden_layers", "depth", "layers", "encoder_layers")
        inner = _first(section, "intermediate_size", "encoder_ffn_dim") or 4 * hidden
        total += layers * (4 * hidden * hidden + 2 * hidden * inner)
    return total


def _first(section: dict[str, object], *names: str) -> int:
    return next((value for name in names if isinstance(value := section.get(name), int) and value > 0), 0)
