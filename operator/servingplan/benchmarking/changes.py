"""What can bind a server, and for each the one controlled change that would decide.

In: nothing. Out: read by `bottleneck`, `confirmation` and `confirming`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Bound(StrEnum):
    """What bound a server. Documented in docs/explanation/capacity.md."""

    CLIENT = "Client"
    ADMISSION = "Admission"
    MEMORY = "Memory"
    SEQUENCES = "Sequences"
    TOKEN_BUDGET = "TokenBudget"  # noqa: S105  not a password
    COMPUTE = "Compute"
    FRONTEND = "Frontend"
    UNKNOWN = "Unknown"


class Fact(StrEnum):
    """What is known of an engine as one number: a field of `bottleneck.Facts`."""

    MAX_NUM_SEQS = "max_num_seqs"
    MAX_NUM_BATCHED_TOKENS = "max_num_batched_tokens"
    KV_TOKENS = "kv_tokens"


class Variation(StrEnum):
    """What the client alone can change, against the same server. Documented in docs/explanation/capacity.md."""

    HALF_CONCURRENCY = "HalfConcurrency"
    HALF_LENGTHS = "HalfLengths"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnEngine:
    """A change that needs another engine setting. words: the setting. fact: what it multiplies by `times`.

    fact is None where no server tells.
    """

    words: str
    fact: Fact | None = None
    times: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is changed. words: what to do. client: what the client alone can do; engine: what needs a server.

    Both None where nothing on this machine decides.
    """

    words: str
    client: Variation | None = None
    engine: OnEngine | None = None


CHANGES: Mapping[Bound, Change] = {
    Bound.CLIENT: Change(words="measure again from a machine of its own, near the server"),
    Bound.ADMISSION: Change(
        words="measure again with --max-num-queued-reqs and --max-num-queued-tokens left out",
        engine=OnEngine(words="without --max-num-queued-reqs and --max-num-queued-tokens"),
    ),
    Bound.MEMORY: Change(
        words="half as many tokens a request at twice the rate: the same work with half the KV cache, nothing waits",
        client=Variation.HALF_LENGTHS,
        engine=OnEngine(
            words="with twice the KV cache: more GPUs a replica, or --kv-cache-dtype fp8", fact=Fact.KV_TOKENS
        ),
    ),
    Bound.SEQUENCES: Change(
        words="half as many requests at once: tokens/s should fall as well, so that twice --max-num-seqs brings more",
        client=Variation.HALF_CONCURRENCY,
        engine=OnEngine(words="with twice --max-num-seqs", fact=Fact.MAX_NUM_SEQS),
    ),
    Bound.TOKEN_BUDGET: Change(
        words="measure again with twice --max-num-batched-tokens: TTFT should fall",
        engine=OnEngine(words="with twice --max-num-batched-tokens", fact=Fact.MAX_NUM_BATCHED_TOKENS),
    ),
    Bound.COMPUTE: Change(
        words="half as many requests at once: TPOT should fall",
        client=Variation.HALF_CONCURRENCY,
    ),
    Bound.FRONTEND: Change(
        words="measure again with --api-server-count 2: capacity should rise",
        engine=OnEngine(words="with --api-server-count 2"),
    ),
    Bound.UNKNOWN: Change(
        words="measure again with half of --max-num-seqs, then with half of --max-model-len: what moves, binds"
    ),
}
"""One thing at a time."""
