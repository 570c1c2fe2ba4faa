"""The KV cache of the token-level model: which blocks are free, and with prefix caching what the free ones still hold.

In: requests that grow and leave. Out: whether there was room. Without prefix caching blocks are all alike, and counted.
With it a block that is full keeps its content when it becomes free, until it is needed for another: so a preempted
request finds what is left of its own, and requests with a common beginning share it. The order in which free blocks are
used again is vLLM's: first those that hold nothing worth keeping, then those that became free longest ago, of one
request the last ones first.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from servingplan.simulation.tokens import EngineLimits, TokenRequest

Block: TypeAlias = int
Content: TypeAlias = tuple[Hashable, bool, int]

NEVER = sys.maxsize
"""Tokens at which the next block is full, where nobody asks what is in it."""


@dataclass(slots=True, kw_only=True, eq=False)
class InFlight:
    """A request that waits or runs. number: by order of arrival.

    known: tokens of the prompt and of the answer so far; first: with the answer's first one. computed: how many of them
    are in the cache, or will be after the steps that are scheduled; last: how many have to be, for the last token.
    pending: tokens that scheduled steps will bring. unprocessed: tokens computed in steps that have not ended; stale:
    how many of these belong to a computation that was given up. held: blocks; room: tokens they have place for.
    preempted: how often.

    With prefix caching, blocks: which ones it holds; kept: how many of them have a content that can be found; full_at:
    with how many tokens the next one will.
    """

    number: int
    asked: TokenRequest
    known: int
    first: int
    last: int
    computed: int = 0
    pending: int = 0
    unprocessed: int = 0
    stale: int = 0
    held: int = 0
    room: int = 0
    preempted: int = 0
    blocks: list[Block] = field(default_factory=list)
    kept: int = 0
    full_at: int = NEVER


class BlockPool:
    """Blocks that are counted, without prefix caching. free: those that nobody holds."""

    def __init__(self, limits: EngineLimits) -> None:
        self._size = limits.block_size
        self.free = limits.usable_blocks

    def admit(self, request: InFlight, spare: int) -> bool:
        """Whether all that the request knows would fit, with `spare` blocks left; what is there already is computed."""
        return -(-request.known // self._size) + spare <= self.free

    def grow(self, request: InFlight, tokens: int) -> bool:
        """Blocks up to so many tokens of the request; False, and none is taken, where there are not enough."""
        more = -(-tokens // self._size) - request.held
        if more > self.free:
            return False
        if more > 0:
            self._take(request, more)
            request.held += more
            request.room = request.held * self._size
        return True

    def keep(self, request: InFlight, tokens: int) -> None:
        """The first `tokens` of the request are known and computed: their full blocks may be found again."""

    def release(self, request: InFlight) -> None:
        """All blocks of the request become free."""
        self.free += request.held
        request.held = request.room = 0

    def _take(self, request: InFlight, count: int) -> None:
        """Free blocks become the request's, behind those that it has."""
        del request
        self.free -= count


class CachingPool(BlockPool):
    """Blocks with a content, which they keep until they are used again."""

    def __init__(self, limits: EngineLimits) -> None:
        super().__init__(limits)
        self._queue = OrderedDict.fromkeys(range(self.free))
        self._holders = [0] * self.free
        self._contents: list[Content | None] = [None] * self.free
        self._found: dict[Content, dict[Block, None]] = {}

    def admit(self, request: InFlight, spare: int) -> bool:
        """As without caching; blocks that are found become the request's, and their tokens computed."""
        hits = self._hits(request)
        asleep = [block for block in hits if not self._holders[block]]
        if -(-request.known // self._size) - len(hits) + len(asleep) + spare > self.free:
            return False
        for block in asleep:
            del self._queue[block]
        for block in hits:
            self._holders[block] += 1
        self.free -= len(asleep)
        request.blocks = hits
        request.held = request.kept = len(hits)
        request.computed = request.room = len(hits) * self._size
        request.full_at = request.room + self._size
        return True

    def keep(self, request: InFlight, tokens: int) -> None:
        """Name the content of blocks that have become full."""
        full = tokens // self._size
        for place in range(request.kept, full):
            block, content = request.blocks[place], self._content(request, place)
            self._contents[block] = content
            self._found.setdefault(content, {})[block] = None
        request.kept = max(request.kept, full)
        request.full_at = (request.kept + 1) * self._size

    def release(self, request: InFlight) -> None:
        """Blocks that nobody else holds become free: those without content are the next, the others the last."""
        nothing: list[Block] = []
        for block in reversed(request.blocks):
            self._holders[block] -= 1
            if self._holders[block]:
                continue
            self.free += 1
            if self._contents[block] is None:
                nothing.append(block)
            else:
                self._queue[block] = None
        for block in reversed(nothing):
            self._queue[block] = None
            self._queue.move_to_end(block, last=False)
        request.blocks = []
        request.held = request.room = request.kept = 0

    def _take(self, request: InFlight, count: int) -> None:
        for _ in range(count):
            block, _ = self._queue.popitem(last=False)
            self._forget(block)
            self._holders[block] = 1
            request.blocks.append(block)
        self.free -= count

    def _forget(self, block: Block) -> None:
        content = self._contents[block]
        if content is None:
            return
        self._contents[block] = None
        places = self._found[content]
        del places[block]
        if not places:
            del self._found[content]

    def _hits(self, request: InFlight) -> list[Block]:
        """Blocks that hold the beginning of what the request knows; its last token is computed in any case."""
        hits: list[Block] = []
        for place in range((request.known - 1) // self._size):
            places = self._found.get(self._content(request, place))
            if places is None:
                break
            hits.append(next(iter(places)))
        return hits

    def _content(self, request: InFlight, place: int) -> Content:
        """What tells the tokens of a block, and all before them, from others: shared, or the request's own."""
        asked = request.asked
        shared = (place + 1) * self._size <= asked.prefix_tokens
        return (asked.prefix if shared else request.number, shared, place)
