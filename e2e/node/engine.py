"""A small program that behaves as vLLM's server does where the operator meets it, for containers on real nodes.

It takes vLLM's arguments, serves /health, /metrics and completions (whole, or streamed token by token), wants the key
of VLLM_API_KEY where there is one, and ends as vLLM does: at SIGTERM it refuses new requests, lets those in flight
finish for ``--shutdown-timeout`` seconds, and cuts what is left. Standard library only: it runs in whatever Python the
node has. Its answers name the pod in a header. What it does stands on standard output, one JSON document a line,
with the instant.

Environment: START_S, how long it takes to listen. TOKEN_S, how long a token takes. EXIT, ends with this code instead
of listening. A POST to /break makes /health hang from then on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLICA = os.uname().nodename
START_S = float(os.environ.get("START_S", "0"))
TOKEN_S = float(os.environ.get("TOKEN_S", "0.02"))
EXIT = os.environ.get("EXIT", "")
API_KEY = os.environ.get("VLLM_API_KEY", "")
HANG_S = 3600
BUSY_S = 0.02


def say(event: str, **more: object) -> None:
    """One line of the log."""
    print(json.dumps({"at": time.time(), "event": event, **more}), flush=True)


class Engine:
    """What is in flight, and what was counted since the start."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.hangs = False
        self.ending = False
        self.cut = False
        self._lock = threading.Lock()
        self._running = self._arrived = self._finished = self._aborted = 0

    @property
    def running(self) -> int:
        """Requests in flight."""
        return self._running

    def begin(self) -> None:
        """A request arrives."""
        with self._lock:
            self._running += 1
            self._arrived += 1

    def end(self, *, whole: bool) -> None:
        """A request is answered, or its client is gone."""
        with self._lock:
            self._running -= 1
            if whole:
                self._finished += 1
            else:
                self._aborted += 1

    def metrics(self) -> str:
        """The series that the operator needs, as vLLM names and labels them."""
        own = f'engine="0",model_name="{self.model}"'
        with self._lock:
            values = {
                f"vllm:num_requests_running{{{own}}}": self._running,
                f"vllm:num_requests_waiting{{{own}}}": 0,
                f"vllm:num_preemptions_total{{{own}}}": 0,
                f'vllm:request_success_total{{{own},finished_reason="length"}}': self._finished,
                f'vllm:request_success_total{{{own},finished_reason="abort"}}': self._aborted,
                f'vllm:time_to_first_token_seconds_bucket{{{own},le="+Inf"}}': self._arrived,
                f"vllm:time_to_first_token_seconds_count{{{own}}}": self._arrived,
                f"vllm:time_to_first_token_seconds_sum{{{own}}}": self._arrived * TOKEN_S,
            }
        return "".join(f"{name} {float(value)}\n" for name, value in values.items())


class Server(ThreadingHTTPServer):
    """Serves one engine."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, engine: Engine) -> None:
        super().__init__(("0.0.0.0", port), Handler)
        self.engine = engine

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is its own business."""


class Handler(BaseHTTPRequestHandler):
    """Answers as vLLM's API server."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        """Probes would fill the log."""

    def do_GET(self) -> None:
        """/health and /metrics."""
        if self.path == "/health":
            if self.server.engine.hangs:
                time.sleep(HANG_S)
            self._answer(200, b"")
        elif self.path == "/metrics":
            self._answer(200, self.server.engine.metrics().encode(), "text/plain; version=0.0.4")
        else:
            self._error(404, "Not Found")

    def do_POST(self) -> None:
        """/v1/completions; and /break, which vLLM has not."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/break":
            self.server.engine.hangs = True
            say("broken")
            self._answer(200, b"")
        elif self.path != "/v1/completions":
            self._error(404, "Not Found")
        elif API_KEY and self.headers.get("Authorization") != f"Bearer {API_KEY}":
            self._error(401, "Unauthorized")
        elif self.server.engine.ending:
            self._error(500, "the engine is shutting down")
        else:
            self._complete(json.loads(body))

    def _complete(self, wanted: dict[str, object]) -> None:
        engine = self.server.engine
        if wanted.get("model") != engine.model:
            self._error(404, f"The model `{wanted.get('model')}` does not exist.")
            return
        tokens = int(str(wanted.get("max_tokens", 16)))
        say("completion", prompt=wanted.get("prompt"), max_tokens=tokens)
        engine.begin()
        whole = False
        try:
            whole = self._stream(tokens) if wanted.get("stream") else self._at_once(tokens)
        finally:
            engine.end(whole=whole)

    def _at_once(self, tokens: int) -> bool:
        time.sleep(TOKEN_S * tokens)
        usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
        choice = {"index": 0, "text": "a" * tokens, "finish_reason": "length", "logprobs": None}
        answer = {"object": "text_completion", "model": self.server.engine.model, "choices": [choice], "usage": usage}
        self._answer(200, json.dumps(answer).encode())
        return True

    def _stream(self, tokens: int) -> bool:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Replica", REPLICA)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for _ in range(tokens):
            time.sleep(TOKEN_S)
            if self.server.engine.cut:
                return False
            self._event(json.dumps({"object": "text_completion", "choices": [{"index": 0, "text": "a"}]}))
        self._event("[DONE]")
        return True

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def _error(self, status: int, message: str) -> None:
        self._answer(status, json.dumps({"error": {"message": message, "code": status}}).encode())

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-Replica", REPLICA)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: list[str]) -> int:
    """Serves until SIGTERM; the exit code."""
    flags = dict(argument[2:].partition("=")[::2] for argument in arguments if argument.startswith("--"))
    say("start", arguments=arguments)
    time.sleep(START_S)
    if EXIT:
        say("exit", code=int(EXIT))
        return int(EXIT)
    engine = Engine(flags["served-model-name"])
    server = Server(int(flags["port"]), engine)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say("serving")
    ended.wait()
    _drain(engine, float(flags["shutdown-timeout"]))
    return 0


def _drain(engine: Engine, timeout_s: float) -> None:
    say("sigterm", running=engine.running)
    engine.ending = True
    until = time.monotonic() + timeout_s
    while engine.running and time.monotonic() < until:
        time.sleep(BUSY_S)
    engine.cut = True
    say("end", running=engine.running)


if __name__ == "__main__":
    # As the first process of a container it would otherwise ignore the signal while it starts.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
