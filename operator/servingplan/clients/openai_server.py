"""One running server with vLLM's OpenAI API: what it serves, what it says of itself, one timed request.

In: its address and, from the environment, its key. Out: values, or an error of the tree. Every request is bounded.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from servingplan.clients.bounded import Bounds, ask
from servingplan.clients.engine_load import EngineLoad, read_load
from servingplan.errors import Refused, Unreachable

_QUICK = Bounds(timeout_s=10.0, answer_bytes=16 * 2**20)
"""What is asked beside the load. A busy server may take seconds to answer."""

ANSWER_TIMEOUT_S = 300.0
"""For one whole answer of the probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One request: seconds to the first token and in all, and its prompt's tokens where the server counts them."""

    ttft_s: float
    latency_s: float
    prompt_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: text, how many tokens the answer gets, and a salt that keeps it apart in the prefix cache."""

    text: str
    output_tokens: int
    salt: str


class OpenAIServer:
    """A server. url: without a path. key: the bearer token, or None. chat: whether prompts go as chat messages."""

    def __init__(self, url: str, *, key: str | None, chat: bool = False) -> None:
        self.url = url.rstrip("/")
        self._key = key
        self._chat = chat
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session = aiohttp.ClientSession(headers=headers)

    async def __aenter__(self) -> Self:
        """The server, until its connections are closed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self._session.close()

    def another(self, url: str) -> OpenAIServer:
        """A server at another address that is asked in the same way, with the same key."""
        return OpenAIServer(url, key=self._key, chat=self._chat)

    async def models(self) -> tuple[str, ...]:
        """The names that it serves. Raises `Unreachable` or `Refused`."""
        found = await self._json("/v1/models")
        try:
            return tuple(model["id"] for model in found["data"])
        except (KeyError, TypeError):
            raise Refused(f"{self.url}/v1/models lists no models: is it a server with the OpenAI API?") from None

    async def version(self) -> str | None:
        """The version of vLLM; None where the server says none."""
        try:
            found = await self._json("/version")
        except (Refused, Unreachable):
            return None
        return str(found["version"]) if isinstance(found, Mapping) and "version" in found else None

    async def arguments(self) -> Mapping[str, Any]:
        """The engine's configuration, which vLLM shows in its development mode alone; else nothing."""
        try:
            found = await self._json("/server_info?config_format=json")
        except (Refused, Unreachable):
            return {}
        config = found.get("vllm_config") if isinstance(found, Mapping) else None
        return config if isinstance(config, Mapping) else {}

    async def load(self) -> EngineLoad:
        """What the engine says now, by the monotonic clock. Raises `ClusterError` where it cannot be read."""
        answer = await ask(self._session, f"{self.url}/metrics", what=self.url, bounds=_QUICK)
        if answer.status != 200:
            raise Refused(f"{self.url}/metrics answered {answer.status}: {answer.excerpt}")
        instant = time.perf_counter()
        return read_load(answer.body.decode("utf-8", "replace"), server=self.url, at=instant)

    async def tokens(self, model: str, text: str) -> int | None:
        """How many tokens the prompt has; None where the server does not tell."""
        body = {"model": model, **self._prompt(text)}
        try:
            async with (
                asyncio.timeout(_QUICK.timeout_s),
                self._session.post(f"{self.url}/tokenize", json=body) as response,
            ):
                found = await response.json() if response.status == 200 else {}
        except (TimeoutError, aiohttp.ClientError, ValueError):
            return None
        return found["count"] if isinstance(found, dict) and isinstance(found.get("count"), int) else None

    async def answer(self, model: str, question: Question) -> Timed:
        """One request, answered to its end. Raises `Unreachable` or `Refused`."""
        body = {
            "model": model,
            **self._prompt(question.text),
            "max_tokens": question.output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
            "cache_salt": question.salt,
        }
        path = "/v1/chat/completions" if self._chat else "/v1/completions"
        began = time.perf_counter()
        try:
            async with (
                asyncio.timeout(ANSWER_TIMEOUT_S),
                self._session.post(self.url + path, json=body) as response,
            ):
                if response.status != 200:
                    excerpt = (await response.text())[:200]
                    raise _wrong(response.status, f"{self.url}{path} answered {response.status}: {excerpt}")
                return await _timed(response, began)
        except TimeoutError:
            raise Unreachable(f"{self.url}{path} did not answer within {ANSWER_TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self.url}{path} cannot be reached ({type(error).__name__}: {error})") from error

    def _prompt(self, text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text}]} if self._chat else {"prompt": text}

    async def _json(self, path: str) -> Any:
        answer = await ask(self._session, self.url + path, what=self.url, bounds=_QUICK)
        if answer.status != 200:
            raise _wrong(answer.status, f"{self.url}{path} answered {answer.status}: {answer.excerpt}")
        try:
            return json.loads(answer.body)
        except ValueError:
            raise Refused(f"{self.url}{path} answered no JSON: {answer.excerpt}") from None


def _wrong(status: int, message: str) -> Unreachable | Refused:
    return Unreachable(message) if status >= 500 or status == 429 else Refused(message)


async def _timed(response: aiohttp.ClientResponse, began: float) -> Timed:
    first = last = None
    prompt_tokens = None
    async for line in response.content:
        chunk = line.strip().removeprefix(b"data: ")
        if not chunk.startswith(b"{"):
            continue
        found = json.loads(chunk)
        if found.get("choices"):
            last = time.perf_counter()
            first = first or last
        if isinstance(found.get("usage"), dict):
            prompt_tokens = found["usage"].get("prompt_tokens")
    if first is None or last is None:
        raise Refused(f"{response.url} answered without any token")
    return Timed(ttft_s=first - began, latency_s=last - began, prompt_tokens=prompt_tokens)
