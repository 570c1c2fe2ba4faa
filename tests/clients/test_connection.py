"""The shared connections: every request is authorized and counted, whoever sends it."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servingplan.clients.connection import Connection, _tls_context
from servingplan.clients.credentials import Credential, FixedCredential, TokenFile
from servingplan.clients.kubeconfig import Endpoint
from servingplan.controller.login import login_with


class Counted:
    def __init__(self) -> None:
        self.attempts: list[tuple[str, str, str]] = []

    def __call__(self, *, verb: str, resource: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.attempts.append((verb, resource, code))


class Guarded:
    """A server that lets one token in."""

    def __init__(self) -> None:
        self.accepts = "second"
        self.bodies: list[str] = []

    async def serve(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        ok = request.headers.get("Authorization") == f"Bearer {self.accepts}"
        return web.json_response({"agent": request.headers["User-Agent"]}, status=200 if ok else 401)


@pytest.fixture
async def guarded():
    served = Guarded()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.serve)
    async with TestServer(app) as server:
        served.url = str(server.make_url("/")).rstrip("/")
        yield served


async def test_a_token_that_was_rotated_is_read_again_and_the_request_sent_again(guarded, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    counted = Counted()
    connection = Connection(Endpoint(server=guarded.url, credentials=TokenFile(path)), observe=counted)
    async with connection.session.get(f"{guarded.url}/api/v1/pods") as answer:
        assert answer.status == 401
    path.write_text("second")
    async with connection.session.patch(f"{guarded.url}/api/v1/nodes/a", data=b"the patch") as answer:
        assert answer.status == 200
    await connection.close()
    assert guarded.bodies[-2:] == ["the patch", "the patch"]
    assert counted.attempts == [("list", "pods", "401"), ("patch", "nodes", "401"), ("patch", "nodes", "200")]


async def test_a_fixed_token_that_is_refused_is_not_sent_twice(guarded) -> None:
    source = FixedCredential(Credential(token="wrong"))
    counted = Counted()
    connection = Connection(Endpoint(server=guarded.url, credentials=source), observe=counted)
    async with connection.session.get(f"{guarded.url}/api/v1/pods") as answer:
        assert answer.status == 401
    await connection.close()
    assert len(counted.attempts) == 1


async def test_an_attempt_without_answer_is_counted() -> None:
    counted = Counted()
    connection = Connection(Endpoint(server="http://127.0.0.1:1", credentials=FixedCredential()), observe=counted)
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        await connection.session.get("http://127.0.0.1:1/api/v1/pods")
    await connection.close()
    assert counted.attempts == [("list", "pods", "none")]


async def test_kopf_may_close_its_session_and_log_in_again(guarded, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("second")
    connection = Connection(
        Endpoint(server=guarded.url, credentials=TokenFile(path), namespace="llm"), user_agent="sp/1"
    )
    login = login_with(connection)
    first = await login(logger=None)
    await first.aiohttp_session.close()
    path.write_text("third")
    guarded.accepts = "third"
    again = await login(logger=None)
    assert (again.server, again.default_namespace) == (guarded.url, "llm")
    async with again.aiohttp_session.get(f"{guarded.url}/x") as answer:
        assert (await answer.json())["agent"] == "sp/1"
    await again.aiohttp_session.close()
    async with connection.session.get(f"{guarded.url}/x") as answer:
        assert answer.status == 200
    await connection.close()


def _certificate(folder: Path) -> tuple[str, str]:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return (folder / "cert.pem").read_text(), (folder / "key.pem").read_text()


def test_certificates_are_taken_from_text_and_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = _certificate(tmp_path)
    emptied = tmp_path / "tmp"
    emptied.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(emptied))
    context = _tls_context(
        Endpoint(server="https://x", credentials=FixedCredential(), ca=certificate, certificate=certificate, key=key)
    )
    assert context.cert_store_stats()["x509_ca"] == 1
    assert list(emptied.iterdir()) == []


def test_an_insecure_server_is_not_verified_and_others_are() -> None:
    verified = _tls_context(Endpoint(server="https://x", credentials=FixedCredential()))
    insecure = _tls_context(Endpoint(server="https://x", credentials=FixedCredential(), insecure=True))
    assert verified.verify_mode is ssl.CERT_REQUIRED
    assert verified.check_hostname
    assert insecure.verify_mode is ssl.CERT_NONE
