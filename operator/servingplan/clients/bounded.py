"""One request to a server that may misbehave: bounded in time and size, redirects not followed.

In: an address, headers and limits. Out: the answer as bytes, or `NoReading` with a reason. For sources of metrics,
which must never hold the operator up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from servingplan.clients.engine_series import NoReading
from servingplan.planning.reasons import Reason

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The longest that a request may take, in seconds, and the largest answer, in bytes after decompression."""

    timeout_s: float
    answer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. content_type: without parameters."""

    status: int
    content_type: str
    body: bytes

    @property
    def excerpt(self) -> str:
        """The beginning of the body for a message, in one line."""
        return " ".join(self.body[:_SHOWN_CHARACTERS].decode("utf-8", "replace").split()) or "nothing"


async def ask(
    session: aiohttp.ClientSession,
    url: str,
    *,
    what: str,
    bounds: Bounds,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> Answer:
    """GET an address, or POST a form to it. what: the phrase that messages begin with.

    Raises `NoReading`: no connection, no answer in time, too large, a redirect.
    """
    try:
        async with (
            asyncio.timeout(bounds.timeout_s),
            session.request(
                "GET" if form is None else "POST",
                url,
                headers=headers,
                data=form,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None),  # bounded above, reading the body included
            ) as response,
        ):
            if 300 <= response.status < 400:
                raise _redirected(what, response)
            return Answer(
                status=response.status,
                content_type=response.content_type,
                body=await _body(response, what, bounds.answer_bytes),
            )
    except TimeoutError:
        raise NoReading(Reason.METRICS_UNREACHABLE, f"{what} did not answer within {bounds.timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoReading(
            Reason.METRICS_UNREACHABLE, f"{what} cannot be reached ({type(error).__name__}: {error})"
        ) from error


def _redirected(what: str, response: aiohttp.ClientResponse) -> NoReading:
    target = response.headers.get("Location", "nowhere")[:_SHOWN_CHARACTERS]
    message = (
        f"{what} redirects ({response.status}) to {target}, which is not followed with its credentials; "
        "name the final address"
    )
    return NoReading(Reason.METRICS_REFUSED, message)


async def _body(response: aiohttp.ClientResponse, what: str, limit: int) -> bytes:
    too_large = NoReading(Reason.METRICS_INVALID, f"{what} answered with more than {limit // 2**20} MiB")
    if response.content_length is not None and response.content_length > limit:
        response.close()  # rather than read it to keep the connection
        raise too_large
    chunks, size = [], 0
    async for chunk in response.content.iter_chunked(256 * 1024):
        size += len(chunk)
        if size > limit:
            response.close()
            raise too_large
        chunks.append(chunk)
    return b"".join(chunks)
