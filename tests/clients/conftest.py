"""A small HTTP server for what a real API server cannot be made to do: hang, drop connections, answer HTML."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.transport import ReadRetry

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

APPS = {
    "kind": "APIResourceList",
    "groupVersion": "apps/v1",
    "resources": [
        {"name": "deployments", "namespaced": True, "kind": "Deployment"},
        {"name": "deployments/scale", "namespaced": True, "kind": "Scale", "group": "autoscaling", "version": "v1"},
        {"name": "deployments/status", "namespaced": True, "kind": "Deployment"},
    ],
}


class Faulty:
    """Serves discovery properly, and everything else by the next of ``answers`` (the last one repeats)."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/apis/apps/v1":
            return web.json_response(APPS)
        self.requests.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def status(code: int, message: str, *, reason: str = "", headers: dict | None = None, **details: object) -> Answer:
    """A Status, as the API server answers."""

    async def answer(_: web.Request) -> web.Response:
        body = {"kind": "Status", "code": code, "message": message, "reason": reason, "details": details}
        return web.json_response(body, status=code, headers=headers)

    return answer


def fine(**body: object) -> Answer:
    """An object, as the API server answers."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=json.dumps(body), content_type="application/json")

    return answer


@pytest.fixture
async def faulty() -> AsyncIterator[Faulty]:
    """The server, listening."""
    served = Faulty()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.serve)
    async with TestServer(app) as server:
        served.url = str(server.make_url("/")).rstrip("/")
        yield served


@pytest.fixture
async def client(faulty: Faulty) -> AsyncIterator[KubernetesClient]:
    """A client of that server, with short waits."""
    async with aiohttp.ClientSession() as session:
        yield KubernetesClient(
            session=session,
            server=faulty.url,
            field_manager="servingplan-test",
            mutation_timeout_s=0.5,
            read_timeout_s=0.5,
            read_retry=ReadRetry(attempts=3, first_wait_s=0.001, longest_wait_s=0.002),
        )
