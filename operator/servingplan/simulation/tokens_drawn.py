"""Requests for the token-level model where no log has them one by one: drawn, with lengths as a plan states them.

In: counts of requests in equal steps of time, the distributions of their tokens, a seed. Out: requests in order of
arrival. Inside a step each comes at a moment of its own.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from servingplan.simulation.tokens import TokenRequest


class Lengths(Protocol):
    """A distribution of token lengths."""

    def quantile(self, share: float) -> float:
        """The length that this share of the requests do not exceed."""
        ...


def counts_at(rates: NDArray[np.float64], step_s: float, *, seed: int) -> NDArray[np.int64]:
    """Requests in each step at so many a second, each independent of the others."""
    return np.random.default_rng(seed).poisson(rates * step_s)


def drawn(
    counts: NDArray[np.int64], step_s: float, *, prompt: Lengths, output: Lengths, longest: int, seed: int
) -> list[TokenRequest]:
    """Requests from second 0 on. longest: tokens of prompt and answer together, beyond which both are cut."""
    rng = np.random.default_rng(seed)
    total = int(counts.sum())
    at = np.sort((np.repeat(np.arange(len(counts)), counts) + rng.random(total)) * step_s)
    prompts, outputs = (_lengths(lengths, rng.random(total)) for lengths in (prompt, output))
    outputs = np.minimum(outputs, longest // 2)
    prompts = np.minimum(prompts, longest - outputs)
    return [
        TokenRequest(arrival_s=float(arrival), prompt_tokens=int(tokens), output_tokens=int(answer))
        for arrival, tokens, answer in zip(at, prompts, outputs, strict=True)
    ]


_TABLE = (np.arange(4096) + 0.5) / 4096


def _lengths(lengths: Lengths, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole tokens, at least one, at these shares of the distribution: from a table, as quantiles take long."""
    values = np.array([lengths.quantile(float(share)) for share in _TABLE])
    whole: NDArray[np.int64] = np.maximum(1, np.round(np.interp(shares, _TABLE, values))).astype(np.int64)
    return whole
