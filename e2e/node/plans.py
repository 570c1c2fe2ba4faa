"""Plans whose engine is `engine.py` in a container, and what tests see of its replicas: addresses, logs, answers."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.node.images import on_the_host
from e2e.support.eventually import eventually
from servingplan.localcluster.kubectl import Kubectl
from support.specs import document, scheduled

NOON = "2026-12-01T12:00:00+01:00"
"""A Tuesday, in the window of `served`."""

MODEL, PORT, CAPACITY = "tiny", 8000, 5
DRAIN_S = 20
"""The engines' drain timeout: longer than any stream that a test has in flight."""


def served(
    name: str,
    namespace: str,
    image: str,
    *,
    replicas: int,
    env: Mapping[str, str] | None = None,
    engine: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A plan for so many replicas on a Tuesday from 8 to 20, one of them in reserve; two at other times.

    env: of the engine (see `engine.py`). engine: further fields of it.
    """
    template = on_the_host("engine", env=[{"name": key, "value": value} for key, value in (env or {}).items()])
    fields = {
        "image": image,
        "model": "/models/tiny",
        "servedModelName": MODEL,
        "maxModelLen": 512,
        "drainTimeout": f"{DRAIN_S}s",
        "podTemplate": template,
    }
    window = {"name": "work", "days": ["Tue"], "start": "08:00", "end": "20:00"}
    window["requestsPerSecond"] = CAPACITY * (replicas - 1)
    return document(
        name,
        namespace,
        **(
            {"engine": fields | dict(engine or {}), "capacity": {"requestsPerSecond": CAPACITY}}
            | scheduled(base={"requestsPerSecond": 1}, windows=[window])
            | spec
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client got. tokens: of a stream. whole: it ended as it should."""

    status: int
    replica: str
    tokens: int
    whole: bool


def complete(
    address: str, *, tokens: int = 1, stream: bool = False, prompt: str = "a", key: str = "", timeout_s: float = 90
) -> Answer:
    """Asks for a completion on a connection of its own. Raises OSError where nobody answers."""
    connection = http.client.HTTPConnection(address, PORT, timeout=timeout_s)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    wanted = {"model": MODEL, "prompt": prompt, "max_tokens": tokens, "stream": stream}
    try:
        connection.request("POST", "/v1/completions", json.dumps(wanted), headers)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    events = text.count("data: ") if stream else 0
    whole = response.status == 200 and (not stream or text.rstrip().endswith("data: [DONE]"))
    return Answer(
        status=response.status,
        replica=response.headers.get("X-Replica", ""),
        tokens=events - whole if stream else tokens,
        whole=whole,
    )


def service_address(kubectl: Kubectl, name: str) -> str:
    """The address of a plan's Service."""
    address: str = kubectl.json("get", "service", name)["spec"]["clusterIP"]
    return address


def run_in(kubectl: Kubectl, pod: str, program: str) -> str:
    """Runs a Python program in the engine's container; what it printed."""
    return kubectl("exec", pod, "--container=engine", "--", "python3", "-c", program)


class Log:
    """What an engine says, followed from its start; it is still there when the pod is gone."""

    def __init__(self, kubectl: Kubectl, pod: str, folder: Path) -> None:
        self._file = folder / f"{pod}.log"
        command = [str(kubectl.program), *kubectl.options, "logs", "--follow", pod, "--container=engine"]
        with self._file.open("w") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def events(self, kind: str = "") -> list[Mapping[str, Any]]:
        """The events so far, of one kind where one is named."""
        # The last line may still be on its way.
        whole = [line for line in self._file.read_text().splitlines(keepends=True) if line.endswith("}\n")]
        return [event for event in map(json.loads, whole) if kind in ("", event["event"])]

    def until(self, kind: str, timeout_s: float = 60) -> Mapping[str, Any]:
        """Waits for the first event of a kind."""
        (found, *_) = eventually(
            lambda: self.events(kind), what=f"the event {kind} of an engine ({self._file})", timeout_s=timeout_s
        )
        return found

    def stop(self) -> None:
        """Follows no longer."""
        self._process.kill()
        self._process.wait()


class Streams:
    """Streams in flight, each on a connection and a thread of its own."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.answers: list[Answer] = []
        self.failures: list[str] = []

    def begin(self, address: str, count: int, *, tokens: int) -> None:
        """Starts streams of so many tokens."""
        for _ in range(count):
            thread = threading.Thread(target=self._ask, args=(address, tokens), daemon=True)
            thread.start()
            self._threads.append(thread)

    def end(self) -> list[Answer]:
        """Waits for all to end; their answers. Fails where a client got an error instead."""
        for thread in self._threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.failures, self.failures
        return self.answers

    def _ask(self, address: str, tokens: int) -> None:
        try:
            self.answers.append(complete(address, tokens=tokens, stream=True))
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{type(error).__name__}: {error}")


def refuses(address: str) -> bool:
    """Whether nothing takes connections at an address."""
    try:
        socket.create_connection((address, PORT), timeout=2).close()
    except OSError:
        return True
    return False
