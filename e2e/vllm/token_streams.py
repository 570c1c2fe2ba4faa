"""Requests of known lengths to a real vLLM, whose tokens are counted in steps of the engine.

In: requests, with the step from which on each is to be sent. Out: for each the first step that could compute it, and
those that brought its first and its last token. The clock is a request of its own, the *ruler*: it is the first to run,
so it is never preempted, and gets a token in every step.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import aiohttp

from servingplan.simulation.tokens import TokenRequest

FIRST_TOKEN_ID = 3
"""Those before it are special."""

SETTLE_S = 0.2
"""From the head of an answer, or of a pause, to all that belongs to it; the engine itself stands still meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A request in steps, counted from 0: the first that could compute it, and those that brought its tokens."""

    asked: TokenRequest
    arrived: int
    first: int
    last: int


class Streams:
    """Streams of one server. Within the ``with`` block they share their connections."""

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url, model
        self._ruler = 0
        self._frozen = False
        self._moved = asyncio.Condition()

    async def run(self, ruler: TokenRequest, requests: Sequence[TokenRequest], *, freeze: bool = False) -> list[Stream]:
        """All of them, the ruler's first.

        freeze: the engine is paused while requests are sent (it needs VLLM_SERVER_DEV_MODE), so that the step before
        which they arrive is known. Otherwise it goes on, and the head of an answer says when the engine was asked.
        """
        timeout, told = aiohttp.ClientTimeout(total=None), []
        async with (
            aiohttp.ClientSession(self._url, connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session,
            asyncio.TaskGroup() as group,
        ):
            everything = [(0, ruler), *enumerate(requests, start=1)]
            for step, together in itertools.groupby(everything, key=lambda each: each[1].arrival_s):
                await self._until(step)
                if freeze:
                    await self._freeze(session)
                for number, asked in together:
                    head = asyncio.Event()
                    told.append(group.create_task(self._follow(session, asked, number, head)))
                    if freeze:
                        await head.wait()
                if freeze:
                    await self._go_on(session)
        return [each.result() for each in told]

    async def _until(self, step: float) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._ruler >= step)

    async def _freeze(self, session: aiohttp.ClientSession) -> None:
        async with session.post("/pause", params={"mode": "keep", "clear_cache": "false"}) as answer:
            assert answer.status == 200, await answer.text()
        await asyncio.sleep(SETTLE_S)
        self._frozen = True

    async def _go_on(self, session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(SETTLE_S)
        self._frozen = False
        async with session.post("/resume") as answer:
            assert answer.status == 200, await answer.text()

    async def _follow(
        self, session: aiohttp.ClientSession, asked: TokenRequest, number: int, head: asyncio.Event
    ) -> Stream:
        arrived = first = -1
        tokens = 0
        async for tokens in self._tokens(session, asked, number):
            if not head.is_set():
                head.set()
                # While the engine runs, the step after the ruler's last token has been scheduled already.
                arrived = self._ruler + (number > 0 and not self._frozen)
            if number == 0:
                await self._move(tokens)
            if first < 0 and tokens:
                first = self._ruler - 1
        assert tokens == asked.output_tokens
        return Stream(asked=asked, arrived=arrived, first=first, last=self._ruler - 1)

    async def _move(self, tokens: int) -> None:
        async with self._moved:
            self._ruler = tokens
            self._moved.notify_all()

    async def _tokens(self, session: aiohttp.ClientSession, asked: TokenRequest, number: int) -> AsyncIterator[int]:
        """How many tokens have come: 0 with the head of the answer, then whenever there are more."""
        body = {
            "model": self._model,
            # No two prompts have a common beginning.
            "prompt": [FIRST_TOKEN_ID + (7919 * number + place) % 2000 for place in range(asked.prompt_tokens)],
            "max_tokens": asked.output_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        async with session.post("/v1/completions", json=body) as answer:
            assert answer.status == 200, await answer.text()
            yield 0
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line.removeprefix(b"data: "))["usage"]["completion_tokens"]
