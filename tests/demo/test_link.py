"""The demo's access to the API server: patient where the operator would decide anew."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from servingplan.demo import link
from servingplan.demo.link import APPLY_TRIES, Link
from servingplan.errors import Unreachable

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
KINDS = {"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": ["patch"]}]}


class Overloaded(ThreadingHTTPServer):
    """Knows namespaces, and drops so many writes without an answer."""

    drops = 0
    applied = 0


class Handler(BaseHTTPRequestHandler):
    server: Overloaded

    def do_GET(self) -> None:
        self._answer(KINDS)

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.drops:
            self.server.drops -= 1
            self.close_connection = True
            return
        self.server.applied += 1
        self._answer(NAMESPACE)

    def _answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: pytest shows what matters."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Overloaded]:
    monkeypatch.setattr(link, "APPLY_PAUSE_S", 0.001)
    with Overloaded(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture
def access(server: Overloaded, tmp_path: Path) -> Iterator[Link]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    with Link(kubeconfig=file, context=None) as made:
        yield made


def test_an_apply_that_gets_no_answer_is_tried_again(server: Overloaded, access: Link) -> None:
    server.drops = APPLY_TRIES - 1
    access.apply(NAMESPACE)
    assert (server.drops, server.applied) == (0, 1)


def test_a_server_that_never_answers_is_said(server: Overloaded, access: Link) -> None:
    server.drops = APPLY_TRIES
    with pytest.raises(Unreachable, match="apply of Namespace llm"):
        access.apply(NAMESPACE)
    assert (server.drops, server.applied) == (0, 0)
