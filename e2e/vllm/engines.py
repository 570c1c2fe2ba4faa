"""What a plan's engine states so that the real vLLM runs on a CPU, and that engine as a process of this machine.

As much as possible is what the operator renders: its arguments, its histograms' edges, its startup probe. In a
container the same engine has the volumes of `e2e.vllm.containers`.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from e2e.support.eventually import eventually
from e2e.vllm.environment import Environment
from servingplan.planning.target import Engine
from servingplan.rendering.engine import arguments
from support.plans import an_engine

SERVED_NAME = "tiny"
MAX_MODEL_LEN, MAX_NUM_SEQS = 512, 8
LONGEST_ANSWER = 480
"""Tokens, which leave room for the prompt."""

ON_A_CPU = ("--enforce-eager", "--distributed-executor-backend=uni")
"""Nothing is compiled, and the engine is one process beside the server: up after half a minute."""

SMALL_CACHE = ("--block-size=32", "--num-gpu-blocks-override=40")
"""1,280 tokens for eight sequences of up to 512: they push one another out."""

VARIABLES: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # Several engines share the processors: with more threads, or threads bound to a core, they wait for one another.
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}
PROGRAM = ("-m", "vllm.entrypoints.cli.main", "serve")
"""What the entry point of vLLM's image is, without a script whose first line names a path."""

UP_TIMEOUT_S = 300.0


def cpu_engine(model: Path | str, *more: str, **changes: Any) -> Engine:
    """The tiny model on a CPU, with further arguments."""
    fields: dict[str, Any] = {
        "model": str(model),
        "served_model_name": SERVED_NAME,
        "max_model_len": MAX_MODEL_LEN,
        "max_num_seqs": MAX_NUM_SEQS,
        "dtype": "bfloat16",
        "extra_args": (*ON_A_CPU, *more),
    }
    return an_engine(**fields | changes)


class Server:
    """An engine as a process on the loopback, with the arguments that the operator renders. A context manager.

    replaced: further arguments, of which the last counts. log: its output. variables: further ones of its environment.
    """

    def __init__(
        self,
        environment: Environment,
        engine: Engine,
        log: Path,
        *,
        replaced: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = _free_port()
        self.log = log
        rendered = [argument for argument in arguments(engine) if not argument.startswith("--port=")]
        self._command = [str(environment.python), *PROGRAM, *rendered, f"--port={self.port}", *replaced]
        self._caches = log.parent / "caches"
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        own = {"HOME": str(self._caches), "VLLM_CACHE_ROOT": str(self._caches / "vllm")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | VARIABLES | own | self._variables,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        # The engine proper is a process of its own, which outlives a server that is killed.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def until_up(self) -> Self:
        """Wait until it is healthy, which is when it listens."""
        eventually(self._is_up, what=f"a healthy vLLM; log: {self.log}", timeout_s=UP_TIMEOUT_S)
        return self

    def terminate(self) -> float:
        """End it as Kubernetes does; the seconds until it has gone."""
        assert self._process is not None
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(UP_TIMEOUT_S)
        return time.monotonic() - begun

    def get(self, path: str) -> str:
        """The text of an answer, as of ``/metrics``."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def post(self, path: str, body: bytes) -> str:
        """The text of an answer to JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            return connection.getresponse().read().decode()

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"vLLM ended: {self.log.read_text(errors='replace')[-2000:]}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
