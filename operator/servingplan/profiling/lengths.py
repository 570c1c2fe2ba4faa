"""Token lengths, counted: exact where people look, in bounded memory whatever a log holds. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

EXACT_BITS = 14
"""Lengths below 16,384 tokens are counted one by one; longer ones to their first 14 bits, so within 0.02 %.

At most 8,192 different counts for each further bit: whatever arrives, they are fewer than 200,000.
"""

QUANTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens per request. count: requests whose length is known."""

    count: int
    mean: float
    p50: int
    p90: int
    p95: int
    p99: int
    longest: int


class LengthCounts:
    """Counts lengths as they come."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._sum = 0
        self._longest = 0

    def add(self, lengths: Iterable[int]) -> None:
        """Count more of them."""
        for length, times in Counter(lengths).items():
            self._sum += length * times
            self._longest = max(self._longest, length)
            self._counts[_rounded(length)] += times

    @property
    def lengths(self) -> Lengths | None:
        """What was counted; None where nothing was."""
        return lengths_of(self._counts, total=self._sum, longest=self._longest)


def lengths_of(counts: Counter[int], *, total: float, longest: int) -> Lengths | None:
    """The distribution of counted lengths, with quantiles by nearest rank. total: the sum of all lengths."""
    count = sum(counts.values())
    if not count:
        return None
    found: dict[int, int] = {}
    below = 0
    ranks = {quantile: math.ceil(count * quantile / 100) for quantile in QUANTILES}
    for length in sorted(counts):
        below += counts[length]
        found |= {q: length for q, rank in ranks.items() if q not in found and below >= rank}
    p50, p90, p95, p99 = (found[q] for q in QUANTILES)
    return Lengths(count=count, mean=total / count, p50=p50, p90=p90, p95=p95, p99=p99, longest=longest)


def _rounded(length: int) -> int:
    dropped = max(0, length.bit_length() - EXACT_BITS)
    return length >> dropped << dropped
