"""What the token-level model of a replica is told: requests, the engine's limits, and what a step costs.

In: values of a trace, of an engine's arguments, of a measurement. Out: read by `tokens_scheduler` (who is computed in a
step) and `tokens_blocks` (which blocks of the KV cache it has).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A request as it comes: seconds, tokens of its prompt, tokens of its answer (at least 1 each).

    prefix: what names the beginning that its prompt shares with others, of `prefix_tokens` tokens; None for none.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: Hashable = None
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What bounds a step of vLLM's V1 engine, by the names of its arguments.

    blocks: of the KV cache, as ``num_gpu_blocks`` counts them: one of them, the null block, holds nothing.
    watermark: the share of them that an admission leaves free while others run. long_prefill_token_threshold: tokens
    of one prompt a step where it is not alone, 0 for no bound. async_scheduling: a step is scheduled while the one
    before it runs, vLLM's default on GPUs.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    blocks: int
    block_size: int
    watermark: float = 0.0
    long_prefill_token_threshold: int = 0
    prefix_caching: bool = False
    async_scheduling: bool = False

    @property
    def usable_blocks(self) -> int:
        """Blocks that requests can hold."""
        return self.blocks - 1

    def blocks_of(self, tokens: int) -> int:
        """Blocks that so many tokens take."""
        return -(-tokens // self.block_size)

    def holds(self, request: TokenRequest) -> bool:
        """Whether the request can ever end: alone, all but its last token must fit into the cache."""
        return self.blocks_of(request.prompt_tokens + request.output_tokens - 1) <= self.usable_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """What a step takes, in seconds: linear in what is computed and read.

    base + prefill tokens x prefill_token + sequences x sequence + context x context_token. Prefill tokens are those of
    sequences that compute several, sequences are those that compute one. context: tokens in the cache that all of them
    read, each its own.
    """

    base_s: float
    prefill_token_s: float
    sequence_s: float
    context_token_s: float

    def seconds(self, prefill_tokens: int, sequences: int, context_tokens: int) -> float:
        """How long such a step takes."""
        return (
            self.base_s
            + self.prefill_token_s * prefill_tokens
            + self.sequence_s * sequences
            + self.context_token_s * context_tokens
        )
