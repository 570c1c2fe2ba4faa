"""How much of the prompts a warm prefix cache would answer, from logged hashes of their blocks. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile

REMEMBERED_SECONDS = 3600
"""A block counts as warm for one to two hours after its last use: real caches are smaller than a week's prompts."""

REMEMBERED_BLOCKS = 500_000
"""Of each of two generations; about 60 MB together, whatever a log holds."""


class Prefixes:
    """Prompt tokens that stand at the beginning of a prompt seen shortly before.

    Two generations of blocks, of which the older is forgotten when the younger is full or an hour old.
    """

    def __init__(self) -> None:
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()
        self._since = float("-inf")
        self._warm = 0.0
        self._tokens = 0

    def add(self, at: float, tokens: int, blocks: Sequence[Hashable]) -> None:
        """Count a request; tokens: of its whole prompt, spread evenly over its blocks."""
        if at - self._since > REMEMBERED_SECONDS or len(self._young) > REMEMBERED_BLOCKS:
            recent = at - self._since <= 2 * REMEMBERED_SECONDS
            self._old, self._young, self._since = self._young if recent else set(), set(), at
        young, old = self._young, self._old
        warm = sum(1 for _ in takewhile(lambda block: block in young or block in old, blocks))
        young.update(blocks)
        self._warm += tokens * warm / len(blocks)
        self._tokens += tokens

    @property
    def share(self) -> float | None:
        """Warm prompt tokens over all, of requests with hashes; None where none has them."""
        return self._warm / self._tokens if self._tokens else None
