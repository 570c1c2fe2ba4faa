"""Who is computed in a step of vLLM's V1 engine, and who has to leave: the scheduler of the token-level model.

In: requests in order of arrival. Out: `Batch`es, step by step; when they end is for the caller. First come, first
served. Each step has a budget of tokens: requests that run have it first, in the order in which they were admitted,
then those that wait, from the first on. A prompt that the budget cuts goes on in the next step. Where blocks run out,
the request that was admitted last gives up all of its own, waits before all others, and is computed anew; in such a
step nobody is admitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from servingplan.simulation.tokens import EngineLimits, TokenRequest
from servingplan.simulation.tokens_blocks import BlockPool, CachingPool, InFlight


@dataclass(slots=True, kw_only=True)
class Batch:
    """A step: who is computed, with how many tokens, and whether it brings the next token of the answer.

    tokens: of all. sequences: those that compute one token. context: tokens in the cache before the step, of all.
    preempted: who had to leave.
    """

    work: list[tuple[InFlight, int, bool]] = field(default_factory=list)
    tokens: int = 0
    sequences: int = 0
    context: int = 0
    preempted: list[InFlight] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Completed:
    """What a step brought. began: who has its first token. ended: who has its last one, and leaves."""

    began: list[InFlight] = field(default_factory=list)
    ended: list[InFlight] = field(default_factory=list)


class Scheduler:
    """One engine. Batches are to be completed in the order in which they were scheduled."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._spare = int(limits.watermark * limits.blocks)
        self.pool = CachingPool(limits) if limits.prefix_caching else BlockPool(limits)
        self.waiting: deque[InFlight] = deque()
        self.running: list[InFlight] = []
        self._arrived = 0

    def add(self, asked: TokenRequest) -> InFlight:
        """A request that has arrived. Raises ValueError where it could never end."""
        if not self._limits.holds(asked):
            raise ValueError(f"{asked} can never end: the cache has {self._limits.usable_blocks} blocks")
        prompt = asked.prompt_tokens
        arrived = InFlight(
            number=self._arrived, asked=asked, known=prompt, first=prompt + 1, last=prompt + asked.output_tokens - 1
        )
        self._arrived += 1
        self.waiting.append(arrived)
        return arrived

    @property
    def blocks_in_use(self) -> int:
        """Blocks that requests hold."""
        return self._limits.usable_blocks - self.pool.free

    def schedule(self) -> Batch:
        """The next step. Empty where nothing runs, or all that runs has its last token on the way."""
        batch = Batch()
        longest = self._longest()
        budget = self._go_on(batch, longest)
        if not batch.preempted:
            self._admit(batch, budget, longest)
        return batch

    def complete(self, batch: Batch) -> Completed:
        """The step has ended."""
        completed = Completed()
        for request, tokens, brings in batch.work:
            request.unprocessed -= tokens
            if brings:
                request.known += 1
                if request.known == request.first:
                    completed.began.append(request)
                if request.known > request.last:
                    completed.ended.append(request)
            if request.stale:
                request.stale -= tokens
            elif brings:
                request.pending -= 1
                if request.computed >= request.full_at:
                    self.pool.keep(request, request.computed - request.pending)
        self._let_go(completed.ended)
        return completed

    def _longest(self) -> int:
        """Tokens that one request may take of a step."""
        bound = self._limits.long_prefill_token_threshold
        alone = len(self.running) + len(self.waiting) <= 1
        return self._limits.max_num_batched_tokens if alone or not bound else bound

    def _go_on(self, batch: Batch, longest: int) -> int:
        """Requests that run already; what they leave of the budget."""
        running, budget, place = self.running, self._limits.max_num_batched_tokens, 0
        while place < len(running) and budget > 0:
            request = running[place]
            place += 1
            if request.computed == request.last:
                continue
            tokens = min(request.known + request.pending - request.computed, longest, budget)
            if request.computed + tokens > request.room and not self._make_room(request, tokens, batch):
                break
            self._enter(batch, request, tokens)
            budget -= tokens
        return budget

    def _make_room(self, request: InFlight, tokens: int, batch: Batch) -> bool:
        """Blocks for a request that runs; False where it was itself the last one to leave."""
        while not self.pool.grow(request, request.computed + tokens):
            victim = self.running.pop()
            self._give_up(victim)
            batch.preempted.append(victim)
            if victim is request:
                return False
        return True

    def _give_up(self, victim: InFlight) -> None:
        """Back to the front of those that wait. What is computed for it just now still brings its token."""
        self.pool.release(victim)
        victim.stale = victim.unprocessed
        victim.computed = victim.pending = 0
        victim.preempted += 1
        self.waiting.appendleft(victim)

    def _admit(self, batch: Batch, budget: int, longest: int) -> None:
        """Requests that wait, as far as the budget, the sequences and the blocks go."""
        aside: list[InFlight] = []
        while budget > 0 and self.waiting and len(self.running) < self._limits.max_num_seqs:
            request = self.waiting[0]
            if request.stale:
                aside.append(self.waiting.popleft())
                continue
            if not self.pool.admit(request, self._spare if self.running else 0):
                break
            tokens = min(request.known - request.computed, longest, budget)
            self.pool.grow(request, request.computed + tokens)
            self.running.append(self.waiting.popleft())
            self._enter(batch, request, tokens)
            budget -= tokens
        self.waiting.extendleft(reversed(aside))

    def _enter(self, batch: Batch, request: InFlight, tokens: int) -> None:
        batch.tokens += tokens
        batch.sequences += tokens == 1
        batch.context += request.computed
        request.computed += tokens
        request.unprocessed += tokens
        if request.computed >= request.full_at:
            self.pool.keep(request, min(request.computed, request.known))
        brings = request.computed == request.known + request.pending
        request.pending += brings
        batch.work.append((request, tokens, brings))

    def _let_go(self, ended: Iterable[InFlight]) -> None:
        for request in ended:
            self.pool.release(request)
            # Its last token may have been on the way when it was preempted.
            where = self.running if request in self.running else self.waiting
            where.remove(request)
