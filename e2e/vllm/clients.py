"""Clients that stream completions from vLLM, in a process of their own: ``python -m e2e.vllm.clients OPTIONS``.

In: an address and how many clients, or how many requests/s. Out: one JSON line for each request that has ended, with
how it ended. On SIGTERM no more are sent, and those in flight are waited for. `load` starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum

import aiohttp


class Connections(StrEnum):
    """How clients connect."""

    EACH = "each"
    """A connection for each request."""

    KEPT = "kept"
    """One connection per client, used again for as long as the server leaves it open."""


class End(StrEnum):
    """How a request ended."""

    WHOLE = "whole"
    """Everything that was asked for."""

    CUT = "cut"
    """Something, and then no more."""

    FAILED = "failed"
    """Nothing. A stream that is refused at the door has status 200 all the same, and one event with the error."""

    HUNG = "hung"
    """No byte more within the client's patience."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A request that has ended. begun, ended: seconds since 1970. tokens: as the server counts them."""

    begun: float
    ended: float
    end: End
    tokens: int
    detail: str


@dataclass(slots=True)
class _Stream:
    """What has come of a stream. events: lines with data. texts: those that bring some. error: one that it told of."""

    events: int = 0
    texts: int = 0
    tokens: int = 0
    error: str = ""
    finished: str = ""
    done: bool = False

    def take(self, line: bytes) -> None:
        if not line.startswith(b"data: "):
            return
        self.events += 1
        data = line.removeprefix(b"data: ").strip()
        if data == b"[DONE]":
            self.done = True
            return
        event = json.loads(data)
        self.error = self.error or str(event.get("error", ""))
        for choice in event.get("choices", ()):
            self.texts += 1
            self.finished = choice.get("finish_reason") or self.finished
        self.tokens = (event.get("usage") or {}).get("completion_tokens", self.tokens)

    def lacks(self, tokens: int) -> str:
        """Why it is not whole; empty where it is: a naive client takes a stream that was aborted for a whole one."""
        if self.error:
            return f"an error event: {self.error[:300]}"
        if not self.done:
            return f"no [DONE] after {self.events} events"
        if self.finished != "length":
            return f"finish_reason {self.finished!r}"
        return "" if self.tokens == tokens else f"{self.tokens} of {tokens} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Asks one server. tokens: of the longest answer, and of the shortest; requests ask for any number in between.

    patience_s: without a byte for so long, a request hangs.
    """

    url: str
    model: str
    tokens: int
    shortest: int
    patience_s: float

    async def ask(self, session: aiohttp.ClientSession) -> Ended:
        """Send one request and read it to its end."""
        begun, stream = time.time(), _Stream()
        tokens = random.randint(self.shortest, self.tokens)  # noqa: S311 - lengths of answers, not secrets
        try:
            lacks = await self._read(session, stream, tokens) or stream.lacks(tokens)
        except TimeoutError:
            return self._ended(begun, stream, End.HUNG, f"nothing for {self.patience_s:.0f} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            detail = f"{type(error).__name__}: {error}"
            return self._ended(begun, stream, End.CUT if stream.texts else End.FAILED, detail)
        lost = End.CUT if stream.texts else End.FAILED
        return self._ended(begun, stream, lost if lacks else End.WHOLE, lacks)

    async def _read(self, session: aiohttp.ClientSession, stream: _Stream, tokens: int) -> str:
        """What refused it at once; empty where there was a stream."""
        body = {
            "model": self.model,
            "prompt": f"import {random.getrandbits(30)} from",
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        async with session.post(f"{self.url}/v1/completions", json=body) as answer:
            if answer.status != 200:
                return f"HTTP {answer.status}: {(await answer.text())[:120]}"
            async for line in answer.content:
                stream.take(line)
        return ""

    def session(self, connections: Connections) -> aiohttp.ClientSession:
        """What its requests share: nothing, or one connection."""
        each = connections is Connections.EACH
        connector = aiohttp.TCPConnector(limit=0, force_close=True) if each else aiohttp.TCPConnector(limit=1)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.patience_s, sock_read=self.patience_s)
        return aiohttp.ClientSession(connector=connector, timeout=timeout)

    @staticmethod
    def _ended(begun: float, stream: _Stream, end: End, detail: str) -> Ended:
        return Ended(begun=begun, ended=time.time(), end=end, tokens=stream.tokens, detail=detail)


async def keep_asking(client: Client, connections: Connections, stop: asyncio.Event) -> None:
    """One client: the next request when the last one has ended; a moment's rest after one that failed."""
    async with client.session(connections) as session:
        while not stop.is_set():
            ended = await client.ask(session)
            _tell(ended)
            if ended.end is End.FAILED:
                await asyncio.sleep(0.2)


async def ask_at_a_rate(client: Client, per_s: float, stop: asyncio.Event) -> None:
    """Requests at random moments, so many a second on average, however slowly they are answered."""
    async with client.session(Connections.EACH) as session, asyncio.TaskGroup() as group:
        due = time.monotonic()
        while not stop.is_set():
            due += random.expovariate(per_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), max(0.0, due - time.monotonic()))
            if not stop.is_set():
                group.create_task(_ask_and_tell(client, session))


async def _ask_and_tell(client: Client, session: aiohttp.ClientSession) -> None:
    _tell(await client.ask(session))


def _tell(ended: Ended) -> None:
    print(json.dumps(asdict(ended)), flush=True)


async def main(arguments: argparse.Namespace) -> None:
    """Ask until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client = Client(
        url=arguments.url,
        model=arguments.model,
        tokens=arguments.tokens,
        # Answers of one length, begun together, would end together.
        shortest=arguments.tokens // 2,
        patience_s=arguments.patience_s,
    )
    if arguments.per_s:
        await ask_at_a_rate(client, arguments.per_s, stop)
        return
    connections = Connections(arguments.connections)
    await asyncio.gather(*(keep_asking(client, connections, stop) for _ in range(arguments.clients)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--patience-s", type=float, default=90.0)
    parser.add_argument("--connections", choices=list(Connections), default=Connections.EACH)
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--clients", type=int, default=0)
    load.add_argument("--per-s", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(_arguments()))
    sys.exit(0)
