"""One running server with vLLM's OpenAI API: what it serves, what it says of itself, one request.

In: its address and, from the environment, its key. Out: values, or an error of the tree. Every request is bounded.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from servingplan.clients.bounded import Bounds, ask
from servingplan.clients.engine_load import EngineLoad, read_load
from servingplan.errors import Refused, Unreachable

_QUICK = Bounds(timeout_s=10.0, answer_bytes=16 * 2**20)
"""What is asked beside the load. A busy server may take seconds to answer."""

KEY_VARIABLE = "OPENAI_API_KEY"
"""Where `vllm bench serve` takes the key of a server from, and so does `bench run`."""

ANSWER_TIMEOUT_S = 300.0
"""For one whole answer of the probe."""

ABORTED = "abort"
"""How vLLM says that it gave a request up. What it answered until then is no answer."""

_CONNECT_TIMEOUT_S = 30.0
_ANSWER_BYTES = 32 * 2**20

_EXCERPT_BYTES = 200
"""Of what a server says when it is not what is expected: a proxy may send a page of any size."""


class TooSlow(Unreachable):
    """No whole answer in time."""


class Denied(Refused):
    """401, 403 or 404: whatever is asked, the key, the model or the path is wrong."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One whole answer. finish: why it ended, as the server says it. tokens: of the answer, where the server counts."""

    text: str
    finish: str
    tokens: int | None


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
        began = time.perf_counter()
        async with self._posted(body, timeout_s=ANSWER_TIMEOUT_S) as response:
            return await _timed(response, began)

    async def complete(self, body: Mapping[str, Any], *, timeout_s: float) -> Answered:
        """One request, its answer as a whole. Raises `TooSlow`, `Unreachable`, `Denied` or `Refused`."""
        async with self._posted(body, timeout_s=timeout_s) as response:
            chunks, size = [], 0
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                size += len(chunk)
                if size > _ANSWER_BYTES:
                    raise Refused(f"{response.url} answered with more than {_ANSWER_BYTES // 2**20} MiB")
            answered = _answered(b"".join(chunks), str(response.url))
        if answered.finish == ABORTED:
            raise Unreachable(f"{self.url} aborted the request, as a server does that ends")
        return answered

    @asynccontextmanager
    async def _posted(self, body: Mapping[str, Any], *, timeout_s: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request, a chat where it has `messages`; all that goes wrong with it is of the tree."""
        where = self.url + ("/v1/chat/completions" if "messages" in body else "/v1/completions")
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S)  # the whole is bounded below
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.post(where, json=body, timeout=limits, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    excerpt = (await response.content.read(_EXCERPT_BYTES)).decode("utf-8", "replace")
                    raise _wrong(response.status, f"{where} answered {response.status}: {excerpt}")
                yield response
        except TimeoutError:
            raise TooSlow(f"{where} did not answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{where} cannot be reached ({type(error).__name__}: {error})") from error

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
    if status >= 500 or status == 429:
        return Unreachable(message)
    if status in {401, 403}:
        message = f"{message}: is its key set, as in {KEY_VARIABLE}?"
    return Denied(message) if status in {401, 403, 404} else Refused(message)


def _answered(body: bytes, where: str) -> Answered:
    try:
        found = json.loads(body)
        choice = found["choices"][0]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        tokens = (found.get("usage") or {}).get("completion_tokens")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        excerpt = body[:_EXCERPT_BYTES].decode("utf-8", "replace")
        raise Refused(f"{where} answered without an answer of the OpenAI API: {excerpt}") from None
    return Answered(
        # A lone surrogate, which JSON can hold, is no text that can be written down.
        text=text.encode("utf-8", "replace").decode() if isinstance(text, str) else "",
        finish=str(choice.get("finish_reason") or ""),
        tokens=tokens if isinstance(tokens, int) else None,
    )


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
