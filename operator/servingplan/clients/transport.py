"""One request to the API server: sent, bounded in time, its answer parsed or turned into an error.

In: method, path, query and body. Out: parsed JSON. Reads are repeated where the server is unreachable or
asks for patience; a write is sent once, through the gate: only its caller knows whether it is still wanted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

from servingplan.clients.answers import TryLater, error_from_answer
from servingplan.clients.gate import MutationGate
from servingplan.errors import Unreachable

MUTATION_TIMEOUT_S = 3.0
"""The longest a write may take. Leadership keeps this much clear before a deadline."""

READ_TIMEOUT_S = 15.0
"""A page of 500 objects from a busy server takes seconds; a hung connection must not hold a worker longer."""

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A page of 500 objects of the largest size that etcd stores stays below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRetry:
    """How reads are repeated: at most ``attempts``, with jittered exponential waits in seconds.

    longest_wait_s also limits what a Retry-After header may ask for: callers back off by themselves.
    """

    attempts: int = 4
    first_wait_s: float = 0.2
    longest_wait_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. what: the phrase that errors begin with."""

    method: str
    path: str
    what: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"


class _WaitAsAsked(wait_base):
    """What the server asked for, or a jittered exponential wait where that is longer."""

    def __init__(self, retry: ReadRetry) -> None:
        self._longest_s = retry.longest_wait_s
        self._usual = wait_random_exponential(multiplier=retry.first_wait_s, max=retry.longest_wait_s)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, TryLater) else 0.0
        return min(self._longest_s, max(asked_s, self._usual(retry_state)))


class Transport:
    """Sends requests over a shared aiohttp session. Owns neither the session nor the gate."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        server: str,
        gate: MutationGate,
        user_agent: str,
        mutation_timeout_s: float = MUTATION_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
        read_retry: ReadRetry | None = None,
    ) -> None:
        if not 0 < mutation_timeout_s <= MUTATION_TIMEOUT_S:
            raise ValueError(f"a write may take at most {MUTATION_TIMEOUT_S} s, not {mutation_timeout_s}")
        self._session = session
        self._server = server.rstrip("/")
        self._gate = gate
        self._user_agent = user_agent
        self._mutation_timeout_s = mutation_timeout_s
        self._read_timeout_s = read_timeout_s
        self._read_retry = read_retry or ReadRetry()

    async def read(self, request: Request) -> dict[str, Any]:
        """Send a request that changes nothing; repeated while unreachable. Raises ClusterError."""
        attempts = AsyncRetrying(
            stop=stop_after_attempt(self._read_retry.attempts),
            wait=_WaitAsAsked(self._read_retry),
            retry=retry_if_exception_type(Unreachable),
            reraise=True,
        )
        return await attempts(self._read_once, request)

    async def write(self, request: Request) -> dict[str, Any]:
        """Send a mutating request once. Raises NotLeading where the gate is shut, else ClusterError."""
        try:
            async with self._gate.admit(self._mutation_timeout_s):
                return await self._exchange(request)
        except TimeoutError as error:
            raise self._no_answer(request, self._mutation_timeout_s) from error

    async def _read_once(self, request: Request) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._read_timeout_s):
                return await self._exchange(request)
        except TimeoutError as error:
            raise self._no_answer(request, self._read_timeout_s) from error

    def _no_answer(self, request: Request, seconds: float) -> Unreachable:
        return Unreachable(f"{request.what}: {self._server} did not answer within {seconds:g} s")

    async def _exchange(self, request: Request) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        payload = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            payload = json.dumps(request.body, separators=(",", ":")).encode()
        try:
            async with self._session.request(
                request.method,
                self._server + request.path,
                params=request.query,
                data=payload,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None),  # bounded by the caller
            ) as response:
                body = await _bounded(response, request.what)
                return _parsed(request, response, body)
        except aiohttp.ClientError as error:
            raise Unreachable(
                f"{request.what}: {self._server} cannot be reached ({type(error).__name__}: {error})"
            ) from error


async def _bounded(response: aiohttp.ClientResponse, what: str) -> bytes:
    if response.content_length is not None and response.content_length > MAX_ANSWER_BYTES:
        raise Unreachable(f"{what}: the answer of {response.content_length} bytes is too large to be one")
    return await response.read()


def _parsed(request: Request, response: aiohttp.ClientResponse, body: bytes) -> dict[str, Any]:
    if response.status >= 300:
        raise error_from_answer(what=request.what, code=response.status, headers=response.headers, body=body)
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise Unreachable(
            f"{request.what}: {response.url.origin()} answered {response.status} with "
            f"{response.content_type} instead of JSON; is it a Kubernetes API server, or a proxy before one?"
        )
    return parsed
