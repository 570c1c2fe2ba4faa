"""What the client does when the server, or what stands before it, misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from clients.conftest import Faulty, fine, status
from servingplan.clients.answers import ApplyConflict, KindNotServed, TryLater, error_from_answer
from servingplan.clients.gate import NotLeading
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.references import ObjectRef
from servingplan.clients.transport import ReadRetry, Transport, _WaitAsAsked
from servingplan.errors import Conflict, NotFound, Refused, Unreachable

CHAT = ObjectRef(api_version="apps/v1", kind="Deployment", name="chat", namespace="llm")
MANIFEST = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat", "namespace": "llm"}}


async def hang(_: web.Request) -> web.Response:
    await asyncio.sleep(30)
    return web.Response()


async def drop(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def html(_: web.Request) -> web.Response:
    return web.Response(text="<html><h1>Welcome to the proxy</h1></html>", content_type="text/html")


async def cut_short(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"kind":')
    assert request.transport is not None
    request.transport.abort()
    return response


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(hang, id="no answer"),
        pytest.param(drop, id="dropped connection"),
        pytest.param(cut_short, id="answer cut short"),
        pytest.param(html, id="HTML with 200"),
        pytest.param(status(503, "etcd leader changed"), id="503"),
        pytest.param(status(500, "internal error"), id="500"),
        pytest.param(status(429, "too many requests"), id="429"),
    ],
)
async def test_a_read_is_repeated_until_the_server_answers(client, faulty: Faulty, fault) -> None:
    faulty.answers = [fault, fault, fine(kind="Deployment")]
    assert await client.get(CHAT) == {"kind": "Deployment"}
    assert len(faulty.requests) == 3


async def test_a_read_that_stays_unanswered_is_unreachable_and_names_the_object(client, faulty: Faulty) -> None:
    faulty.answers = [drop]
    with pytest.raises(Unreachable, match="read of Deployment llm/chat"):
        await client.get(CHAT)
    assert len(faulty.requests) >= 3  # aiohttp repeats a GET itself where a kept connection was dropped


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(hang, id="no answer"),
        pytest.param(drop, id="dropped connection"),
        pytest.param(html, id="HTML with 200"),
        pytest.param(status(503, "etcd leader changed"), id="503"),
        pytest.param(status(429, "too many requests"), id="429"),
    ],
)
async def test_a_write_is_sent_once(client, faulty: Faulty, fault) -> None:
    faulty.answers = [fault, fine(kind="Deployment")]
    with pytest.raises(Unreachable, match="apply of Deployment llm/chat"):
        await client.apply(MANIFEST)
    assert len(faulty.requests) == 1


async def test_a_refusal_is_not_repeated(client, faulty: Faulty) -> None:
    faulty.answers = [status(403, 'pods is forbidden: User "x" cannot get', reason="Forbidden")]
    with pytest.raises(Refused, match="cannot get; check RBAC"):
        await client.get(CHAT)
    assert len(faulty.requests) == 1


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with aiohttp.ClientSession() as session:
        client = KubernetesClient(
            session=session,
            server="http://127.0.0.1:1",
            field_manager="x",
            read_retry=ReadRetry(attempts=1),
        )
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 cannot be reached"):
            await client.get(CHAT)


async def test_a_redirect_is_refused_rather_than_followed_with_the_token(client, faulty: Faulty) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://example.org/"})

    faulty.answers = [elsewhere]
    with pytest.raises(Refused, match="302"):
        await client.get(CHAT)


class Attempt:
    """As much of tenacity's state as the wait looks at."""

    def __init__(self, error: Exception) -> None:
        self.attempt_number = 1
        self.outcome = self
        self._error = error

    def exception(self) -> Exception:
        return self._error


@pytest.mark.parametrize(
    ("asked_s", "waits_s"), [(3.0, 3.0), (120.0, 5.0)], ids=["as the server asks", "but not for ever"]
)
def test_a_read_waits_as_long_as_the_server_asks(asked_s: float, waits_s: float) -> None:
    wait = _WaitAsAsked(ReadRetry(first_wait_s=0.1, longest_wait_s=5.0))
    assert wait(Attempt(TryLater("later", retry_after_s=asked_s))) == waits_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("1.5", 1.5), ("-3", 0.0), ("nan", 0.0), ("inf", 0.0), ("soon", 0.0), ("", 0.0)],
)
def test_a_retry_after_header_is_read_whatever_it_holds(header: str, seconds: float) -> None:
    error = error_from_answer(what="read", code=429, headers={"Retry-After": header}, body=b"")
    assert isinstance(error, TryLater)
    assert error.retry_after_s == seconds


def test_a_retry_after_date_is_a_distance() -> None:
    past = error_from_answer(what="read", code=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, body=b"")
    future = error_from_answer(
        what="read", code=503, headers={"Retry-After": "Wed, 21 Oct 2115 07:28:00 GMT"}, body=b""
    )
    assert past.retry_after_s == 0
    assert future.retry_after_s > 3600


def _answered(code: int, message: str, **details: object) -> Exception:
    body = json.dumps({"kind": "Status", "message": message, "details": details}).encode()
    return error_from_answer(what="apply of Deployment llm/chat", code=code, headers={}, body=body)


def test_an_apply_conflict_names_every_manager_once() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "field": ".spec.replicas",
            "message": 'conflict with "kubectl" using apps/v1',
        },
        {"reason": "FieldManagerConflict", "field": ".spec.paused", "message": 'conflict with "kubectl" using apps/v1'},
        {
            "reason": "FieldManagerConflict",
            "field": ".spec.replicas",
            "message": 'conflict with "keda-operator" with subresource "scale"',
        },
    ]
    error = _answered(409, "Apply failed with 3 conflicts", causes=causes)
    assert isinstance(error, ApplyConflict)
    assert error.managers == ("keda-operator", "kubectl")
    assert error.fields == (".spec.paused", ".spec.replicas")
    assert "apply of Deployment llm/chat" in str(error)


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        pytest.param(409, {}, Conflict, id="changed in between"),
        pytest.param(410, {}, Conflict, id="list too old"),
        pytest.param(404, {"name": "chat"}, NotFound, id="object missing"),
        pytest.param(404, {}, KindNotServed, id="kind missing"),
        pytest.param(422, {}, Refused, id="invalid"),
        pytest.param(400, {}, Refused, id="bad request"),
        pytest.param(401, {}, Refused, id="not logged in"),
        pytest.param(504, {}, Unreachable, id="gateway"),
    ],
)
def test_each_code_is_what_its_caller_has_to_do(code: int, details: dict, kind: type[Exception]) -> None:
    error = _answered(code, "the server said so", **details)
    assert type(error) is kind or (kind is Unreachable and isinstance(error, kind))
    assert "the server said so" in str(error)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"\xff\xfe", b"{", b'{"kind":"Status"}'])
def test_any_body_of_an_error_gives_a_sentence(body: bytes) -> None:
    assert "read of x" in str(error_from_answer(what="read of x", code=403, headers={}, body=body))


def test_a_page_of_html_is_quoted_as_text_and_shortened() -> None:
    body = b"<html><body><h1>403</h1>" + b"blocked " * 500 + b"</body></html>"
    message = str(error_from_answer(what="read of x", code=403, headers={}, body=body))
    assert "403 blocked" in message
    assert "<" not in message
    assert len(message) < 500


async def test_a_kind_that_the_server_stops_serving_is_looked_up_again(client, faulty: Faulty) -> None:
    faulty.answers = [fine(kind="Deployment"), status(404, "the server could not find the requested resource")]
    await client.get(CHAT)
    with pytest.raises(KindNotServed):
        await client.get(CHAT)
    assert client._discovery._kinds == {}


class Gate:
    """Admits, until it is lost; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.shut = False

    @contextlib.asynccontextmanager
    async def admit(self, timeout_s: float) -> AsyncIterator[None]:
        self.asked.append(timeout_s)
        if self.shut:
            raise NotLeading("shut")
        yield


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda c: c.apply(MANIFEST), id="apply"),
        pytest.param(lambda c: c.apply_status({**MANIFEST, "status": {}}), id="status"),
        pytest.param(lambda c: c.apply_scale(CHAT, replicas=1, resource_version="1"), id="scale"),
        pytest.param(lambda c: c.merge_patch_scale(CHAT, replicas=1, resource_version="1"), id="merge scale"),
        pytest.param(lambda c: c.merge_patch(CHAT, {}), id="merge"),
        pytest.param(lambda c: c.create(MANIFEST), id="create"),
        pytest.param(lambda c: c.replace(MANIFEST), id="replace"),
        pytest.param(lambda c: c.delete(CHAT), id="delete"),
    ],
)
async def test_every_write_asks_the_gate_and_sends_nothing_when_it_is_shut(faulty: Faulty, write) -> None:
    faulty.answers = [fine(kind="Deployment")]
    gate = Gate()
    async with aiohttp.ClientSession() as session:
        client = KubernetesClient(session=session, server=faulty.url, field_manager="x", gate=gate)
        await write(client)
        assert (gate.asked, len(faulty.requests)) == ([3.0], 1)
        gate.shut = True
        with pytest.raises(NotLeading):
            await write(client)
        assert len(faulty.requests) == 1


async def test_reads_do_not_ask_the_gate(faulty: Faulty) -> None:
    faulty.answers = [fine(kind="Deployment")]
    gate = Gate()
    gate.shut = True
    async with aiohttp.ClientSession() as session:
        client = KubernetesClient(session=session, server=faulty.url, field_manager="x", gate=gate)
        await client.get(CHAT)
        await client.get_scale(CHAT)
        await client.list("apps/v1", "Deployment", "llm")
    assert gate.asked == []


async def test_a_write_may_not_be_given_more_time_than_leadership_keeps_clear() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError, match="at most 3"):
            Transport(session=session, server="http://x", gate=Gate(), user_agent="x", mutation_timeout_s=3.1)
