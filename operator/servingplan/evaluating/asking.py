"""Asking: every question to the servers whose turn it is, a few at a time, and every answer scored.

In: what is still to be asked, and the servers. Out: answers, each as it comes. One item's failure is an answer that
counts as wrong; a server that is gone or refuses everything ends the asking, and nothing of that counts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from servingplan.clients.openai_server import Answered, Denied, OpenAIServer, TooSlow
from servingplan.errors import ClusterError, Refused, Unreachable, UsageError
from servingplan.evaluating.items import Item, digest
from servingplan.evaluating.record import TEXT_CHARACTERS, Answer, Failure, Role, Served

SEED = 0
"""Of every request. With temperature 0 nothing is drawn; a server that draws all the same draws alike."""

DETAIL_CHARACTERS = 300
PROBE = "Hi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A server and the model that is asked there."""

    server: OpenAIServer
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How is asked. concurrency: requests in flight to one server. timeout_s: of one answer. chat: prompts as chat.

    attempts, longest_wait_s: where the server is busy or does not answer, with growing random waits.
    """

    concurrency: int
    timeout_s: float
    max_tokens: int
    chat: bool
    attempts: int = 5
    longest_wait_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question to one server."""

    item: Item
    role: Role


def turns(items: Sequence[Item], known: Iterable[tuple[str, Role]], *, repeat: bool) -> tuple[Turn, ...]:
    """What is still to be asked. The baseline's second run comes after the first of all items, as a run of its own."""
    asked = set(known)
    first = [Turn(item=item, role=role) for item in items for role in (Role.BASELINE, Role.VARIANT)]
    again = [Turn(item=item, role=Role.AGAIN) for item in items if repeat]
    return tuple(turn for turn in (*first, *again) if (turn.item.id, turn.role) not in asked)


async def look(server: OpenAIServer, model: str | None, *, option: str) -> Served:
    """What the server serves. Raises UsageError where the model is another, or one of several and not said."""
    names = await server.models()
    if model is None and len(names) > 1:
        raise UsageError(f"{server.url} serves {', '.join(names)}: choose one with {option}")
    if not names or (model is not None and model not in names):
        raise UsageError(f"{server.url} serves {', '.join(names) or 'no model'}, not {model or 'one'}: see {option}")
    return Served(url=server.url, model=model or names[0], vllm=await server.version())


async def ask(todo: Sequence[Turn], sides: Mapping[Role, Side], manner: Manner, keep: Callable[[Answer], None]) -> None:
    """Ask all of it. keep: gets each answer as it comes.

    Raises `Unreachable` where a server is gone, `Denied` where it refuses whatever is asked.
    """
    lanes: dict[str, deque[Turn]] = {}
    for turn in todo:
        lanes.setdefault(sides[turn.role].server.url, deque()).append(turn)

    async def work(lane: deque[Turn]) -> None:
        while lane:
            turn = lane.popleft()
            keep(await _asked(turn, sides[turn.role], manner))

    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes.values():
                for _ in range(manner.concurrency):
                    group.create_task(work(lane))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None


async def _asked(turn: Turn, side: Side, manner: Manner) -> Answer:
    try:
        answered = await _patiently(side.server, request(turn.item, side.model, manner), manner)
    except Denied:
        raise
    except Refused as error:
        return _failed(turn, Failure.REFUSED, error)
    except Unreachable as error:
        await _still_there(turn, side, manner, error)
        return _failed(turn, Failure.TIMEOUT if isinstance(error, TooSlow) else Failure.SERVER_ERROR, error)
    return scored(turn, answered)


async def _patiently(server: OpenAIServer, body: Mapping[str, Any], manner: Manner) -> Answered:
    """The answer. A busy server is asked again; one that was too slow is not: it would be as slow again."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, Unreachable) and not isinstance(error, TooSlow)),
        stop=stop_after_attempt(manner.attempts),
        wait=wait_random_exponential(multiplier=1, max=manner.longest_wait_s),
        reraise=True,
    ):
        with attempt:
            return await server.complete(body, timeout_s=manner.timeout_s)
    raise AssertionError("the last attempt returns or raises")


async def _still_there(turn: Turn, side: Side, manner: Manner, error: Unreachable) -> None:
    """Raises the error where the server does not answer the simplest question either: then it is no item's fault.

    One that is ending, or whose engine is dead, still lists its models.
    """
    simplest = replace(turn.item, prompt=PROBE, messages=None, max_tokens=1)
    body = request(simplest, side.model, replace(manner, chat=manner.chat or turn.item.messages is not None))
    try:
        await side.server.complete(body, timeout_s=manner.timeout_s)
    except ClusterError:
        raise error from None


def request(item: Item, model: str, manner: Manner) -> dict[str, Any]:
    """The body of one request."""
    if item.messages is not None:
        asked: dict[str, Any] = {"messages": list(item.messages)}
    elif manner.chat:
        asked = {"messages": [{"role": "user", "content": item.prompt}]}
    else:
        asked = {"prompt": item.prompt}
    tokens = item.max_tokens or manner.max_tokens
    return {"model": model, **asked, "max_tokens": tokens, "temperature": 0, "seed": SEED}


def scored(turn: Turn, answered: Answered) -> Answer:
    """An answer with its score. An empty one is a failure."""
    if not answered.text.strip():
        detail = f"it ended ({answered.finish or 'without a reason'}) without any text"
        return _failed(turn, Failure.EMPTY, detail)
    found = turn.item.scorer.score(answered.text)
    return Answer(
        id=turn.item.id,
        role=turn.role,
        at=_now(),
        score=found.score,
        read=found.read[:TEXT_CHARACTERS],
        text=answered.text[:TEXT_CHARACTERS],
        digest=digest(answered.text.encode()),
        finish=answered.finish,
        tokens=answered.tokens,
    )


def _failed(turn: Turn, failure: Failure, why: object) -> Answer:
    detail = str(why)[:DETAIL_CHARACTERS]
    return Answer(id=turn.item.id, role=turn.role, at=_now(), score=0.0, failure=failure, detail=detail)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
