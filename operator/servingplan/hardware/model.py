"""A model as sizing sees it: what each layer keeps in the KV cache, and what its weights take.

In: made by `inventory`, from config.json and safetensors headers. Out: read by `weights`, `pages`, `roofline`. Values
only, of the whole model; what one GPU holds of it is `weights` and `pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Attention(StrEnum):
    """Which tokens a layer keeps of a request."""

    FULL = "full"
    SLIDING = "sliding window"
    CHUNKED = "chunked"
    LATENT = "latent (MLA)"

    @property
    def keeps_all(self) -> bool:
        """Whether every token of a request is kept, however long it gets."""
        return self in {Attention.FULL, Attention.LATENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayer:
    """A layer that keeps keys and values of tokens.

    heads: KV heads of the whole model. key_size, value_size: elements a head and token. window: tokens that a sliding
    or chunked layer looks back; None where all are kept. token_bytes: bytes a token where the cache's number format
    does not change them (an indexer's cache); None otherwise.
    """

    kind: Attention
    heads: int
    key_size: int
    value_size: int
    window: int | None = None
    token_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """A part of a recurrent state, over all GPUs of a replica, which divide it."""

    elements: int
    bytes_each: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLayer:
    """A layer that keeps a state of fixed size for a request (Mamba, linear attention, short convolution)."""

    tensors: tuple[StateTensor, ...]


CacheLayer = AttentionLayer | StateLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One decoder layer by what it caches: usually one entry; none where it shares another's, two where it has both."""

    caches: tuple[CacheLayer, ...]


class Role(StrEnum):
    """What a weight is, as far as it decides where it lies.

    Tensor parallelism divides EMBEDDING, OUTPUT, LINEAR, EXPERTS and ENCODER by its size, KV by at most the number of
    KV heads, REPLICATED not at all.
    """

    EMBEDDING = "embedding"
    OUTPUT = "output"
    LINEAR = "linear"
    KV = "kv"
    EXPERTS = "experts"
    REPLICATED = "replicated"
    ENCODER = "encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """Weights of one role in one layer; `layer` is None outside of the decoder layers.

    elements: parameters. size: bytes in GPU memory, scales and packing included.
    """

    role: Role
    layer: int | None
    elements: int
    size: int


class WeightSource(StrEnum):
    """Where the bytes of the weights come from, and with it how exact they are."""

    HEADERS = "safetensors headers"
    INDEX = "safetensors index"
    CONFIG = "parameters x bits / 8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts: `count` routed experts a layer, of which a token takes `per_token`."""

    count: int
    per_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A checkpoint.

    architecture: as its config names it. max_len: the longest context that its config allows, in tokens. hidden,
    heads, kv_heads, vocabulary, intermediate: sizes of the decoder. dtype_bytes: of activations, and of the cache where
    nothing else is asked. weight_bits: stored bits a linear weight. quantization: the method's name, None for none.
    disk: bytes of the checkpoint's weight files. multimodal: it has an encoder for images or sound.
    """

    name: str
    architecture: str
    layers: tuple[Layer, ...]
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocabulary: int
    max_len: int
    dtype_bytes: int
    weight_bits: float
    quantization: str | None
    weights: tuple[WeightPart, ...]
    weight_source: WeightSource
    disk: int
    tied: bool
    experts: Experts | None
    multimodal: bool

    @property
    def caches(self) -> Sequence[CacheLayer]:
        """What is cached, layer after layer."""
        return [cache for layer in self.layers for cache in layer.caches]

    @property
    def latent(self) -> bool:
        """True for multi-head latent attention."""
        return any(isinstance(cache, AttentionLayer) and cache.kind is Attention.LATENT for cache in self.caches)

    @property
    def parameters(self) -> int:
        """Parameters of the checkpoint."""
        return sum(part.elements for part in self.weights)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes: all but the experts that it does not take, and the embedding's table."""
        return round(
            sum(part.elements * self._active_share(part.role) for part in self.weights if self.computes(part.role))
        )

    def _active_share(self, role: Role) -> float:
        if role is Role.EXPERTS and self.experts is not None:
            return self.experts.per_token / self.experts.count
        return 1.0

    def computes(self, role: Role) -> bool:
        """An encoder's weights see images alone; an embedding is a look-up unless it is the output layer too."""
        return role is not Role.ENCODER and (role is not Role.EMBEDDING or self.tied)
