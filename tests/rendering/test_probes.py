import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket

import pytest

from servingplan.planning.target import StartupCheck
from servingplan.rendering.probes import (
    COMPLETION_PROGRAM,
    PRE_STOP,
    STARTUP_PERIOD,
    TEARDOWN,
    grace,
    lifecycle,
    liveness_probe,
    readiness_probe,
    startup_probe,
)
from support.plans import a_full_engine, an_engine

KEY = "a-secret-key"
ONE_TOKEN = {"choices": [{"text": "!"}], "usage": {"completion_tokens": 1}}


@contextmanager
def a_server(answer):
    """A server on a free port; `answer` gets the handler and the request's JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *_):
            """Keeps the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def replying(status, body):
    def answer(handler, _request):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return answer


def vllm(served_model_name="qwen3-14b", key=None):
    """Answers as vLLM does: 401 without the key, 404 for a model that it does not serve."""

    def answer(handler, request):
        if key is not None and handler.headers.get("Authorization") != f"Bearer {key}":
            replying(401, {"error": "Unauthorized"})(handler, request)
        elif handler.path != "/v1/completions" or request["model"] != served_model_name:
            replying(404, {"error": "not found"})(handler, request)
        else:
            body = ONE_TOKEN | {"usage": {"completion_tokens": request["max_tokens"]}}
            replying(200, body)(handler, request)

    return answer


def ask(port, *, key=None, limit="5", environment=None):
    """Runs the probe's own command against that port, in this Python."""
    _, *command = startup_probe(an_engine(port=port))["exec"]["command"]
    variables = {k: v for k, v in os.environ.items() if k != "VLLM_API_KEY"} | (environment or {})
    if key is not None:
        variables["VLLM_API_KEY"] = key
    return subprocess.run(
        [sys.executable, *command[:-1], limit], env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_engine_that_completes_has_started():
    with a_server(vllm()) as port:
        assert ask(port).returncode == 0


def test_it_asks_with_the_key_from_the_environment():
    with a_server(vllm(key=KEY)) as port:
        assert ask(port, key=KEY).returncode == 0
        assert ask(port).returncode == 1


def test_a_proxy_in_the_environment_is_not_asked():
    with a_server(vllm()) as port:
        assert ask(port, environment={"http_proxy": "http://127.0.0.1:9"}).returncode == 0


def a_hanging_reply(handler, _request):
    handler.rfile.read(1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(replying(503, b"dead"), "HTTP 503: dead", id="dead engine"),
        pytest.param(replying(401, b"who are you"), "HTTP 401: who are you", id="wrong key"),
        pytest.param(vllm(served_model_name="other"), "HTTP 404", id="another model"),
        pytest.param(replying(200, b"<html>"), "not an answer of vLLM: <html>", id="something else listens"),
        pytest.param(replying(200, {"usage": None}), "not an answer of vLLM", id="no usage"),
        pytest.param(replying(200, [1]), "not an answer of vLLM", id="a list"),
        pytest.param(replying(200, {"usage": {"completion_tokens": 0}}), "0 tokens", id="no token"),
        pytest.param(replying(200, {"usage": {"completion_tokens": "x"}}), "'x' tokens", id="no number"),
        pytest.param(lambda handler, _: handler.wfile.write(b"junk\r\n"), "BadStatusLine", id="no HTTP"),
    ],
)
def test_what_is_not_a_completion_is_refused_in_one_sentence(answer, said):
    with a_server(answer) as port:
        result = ask(port, key=KEY)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert KEY not in result.stdout + result.stderr


def test_an_engine_that_never_answers_is_given_up():
    with a_server(a_hanging_reply) as port:
        result = ask(port, limit="0.3")
    assert result.returncode == 1
    assert "no completion yet" in result.stderr


def test_a_loading_engine_does_not_listen_and_that_is_what_the_event_says():
    with socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        result = ask(reserved.getsockname()[1])
    assert result.returncode == 1
    assert "no completion yet" in result.stderr
    assert "refused" in result.stderr


def test_the_probe_asks_for_the_served_name_at_the_engines_port():
    command = startup_probe(an_engine(port=9000, served_model_name="chat"))["exec"]["command"]
    assert command[0] == "python3"
    assert command[-4:-1] == [COMPLETION_PROGRAM, "9000", "chat"]


def test_the_program_gives_up_before_the_kubelet_ends_it():
    probe = startup_probe(an_engine())
    assert float(probe["exec"]["command"][-1]) < probe["timeoutSeconds"]


def test_health_is_asked_instead_where_the_plan_says_so():
    probe = startup_probe(an_engine(startup_check=StartupCheck.HEALTH))
    assert probe["httpGet"] == {"path": "/health", "port": "http"}
    assert "exec" not in probe


@pytest.mark.parametrize(
    "start_timeout",
    [timedelta(seconds=1), timedelta(seconds=95), timedelta(minutes=30), timedelta(hours=4)],
    ids=str,
)
def test_the_startup_budget_is_the_start_timeout_to_one_try(start_timeout):
    probe = startup_probe(an_engine(start_timeout=start_timeout))
    budget = timedelta(seconds=probe["failureThreshold"] * probe["periodSeconds"])
    assert timedelta(0) <= budget - start_timeout < STARTUP_PERIOD
    assert probe["timeoutSeconds"] <= probe["periodSeconds"]


def test_a_pod_leaves_the_service_long_before_it_is_restarted():
    def patience(probe):
        return probe["periodSeconds"] * probe["failureThreshold"]

    assert readiness_probe()["httpGet"] == liveness_probe()["httpGet"] == {"path": "/health", "port": "http"}
    assert patience(liveness_probe()) >= 3 * patience(readiness_probe())


def test_the_grace_holds_the_sleep_the_drain_and_the_teardown():
    assert lifecycle() == {"preStop": {"sleep": {"seconds": PRE_STOP.total_seconds()}}}
    engine = a_full_engine()
    assert grace(engine) - PRE_STOP - engine.drain_timeout == TEARDOWN == timedelta(seconds=15)
