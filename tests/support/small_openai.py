"""A small server with the OpenAI API, for faults that a real engine cannot be made to show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from support.fake_vllm import serving

Behaviour = Callable[[str], "str | Fault"]
"""From what is asked to what is answered."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something else than an answer. status: of the response. wait_s: before it. text: its body."""

    status: int = 500
    wait_s: float = 0.0
    text: str = "out of order"
    finish: str = "stop"


@dataclass(kw_only=True)
class SmallServer:
    """What it was asked, in order. behave may be replaced at any time."""

    behave: Behaviour
    models: tuple[str, ...] = ("tiny",)
    key: str | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)
    bodies: list[dict] = field(default_factory=list)
    list_models_status: int = 200
    closing: bool = False
    most_at_once: int = 0
    at_once: int = 0

    async def completions(self, request: web.Request) -> web.Response:
        body = await request.json()
        chat = "messages" in body
        question = body["messages"][-1]["content"] if chat else body["prompt"]
        self.asked.append(question)
        self.bodies.append(body)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            said = self.behave(question)
            if isinstance(said, Fault):
                await self.wait(said.wait_s)
                if said.status != 200:
                    return web.Response(status=said.status, text=said.text)
            text, finish = (said.text, said.finish) if isinstance(said, Fault) else (said, "stop")
        finally:
            self.at_once -= 1
        choice = {"message": {"content": text}} if chat else {"text": text}
        return web.json_response(
            {"choices": [{**choice, "finish_reason": finish}], "usage": {"completion_tokens": len(text.split())}}
        )

    async def wait(self, seconds: float) -> None:
        """A while, or until the server is closed."""
        begun = time.monotonic()
        while time.monotonic() < begun + seconds and not self.closing:
            await asyncio.sleep(min(seconds, 0.05))

    async def list_models(self, _: web.Request) -> web.Response:
        if self.list_models_status != 200:
            return web.Response(status=self.list_models_status)
        return web.json_response({"data": [{"id": name} for name in self.models]})

    @web.middleware
    async def guard(self, request: web.Request, handler) -> web.StreamResponse:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.Response(status=401, text="Unauthorized")
        return await handler(request)


@contextmanager
def small_server(behave: Behaviour, **changes) -> Iterator[SmallServer]:
    """A server that answers so."""
    server = SmallServer(behave=behave, **changes)
    app = web.Application(middlewares=[server.guard])
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_post("/v1/completions", server.completions)
    app.router.add_post("/v1/chat/completions", server.completions)
    with serving(app) as server.url:
        try:
            yield server
        finally:
            server.closing = True
