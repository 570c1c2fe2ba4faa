"""A real Prometheus on the loopback that scrapes simulated engines as it would scrape pods.

Debian's package ``prometheus``, or any other on the PATH. It ends with the test, and with this process whatever
happens.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from e2e.support.eventually import eventually

PROGRAM = shutil.which("prometheus")
"""None: not installed. On Debian: ``apt-get install --no-install-recommends prometheus``."""


_END_MARK = "# EOF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One pod to scrape. labels: as a relabel rule would give them; a job of their own for each set of `job`."""

    port: int
    labels: Mapping[str, str]
    job: str = "engines"
    host: str = "127.0.0.1"


def pod(port: int, name: str, *, namespace: str = "llm", job: str = "engines", host: str = "127.0.0.1") -> Target:
    """A pod with the labels that it should have."""
    return Target(port=port, labels={"namespace": namespace, "pod": name}, job=job, host=host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """How it is served. certificate, key: PEM files for https. users: password hashes (bcrypt) by name."""

    certificate: Path | None = None
    key: Path | None = None
    users: Mapping[str, str] = field(default_factory=dict)


class Prometheus:
    """One server. A context manager; `stop` and `start` keep its data and port.

    past: what it remembers from before it starts: lines of the OpenMetrics format, samples with times, without the end
    mark. Then it keeps everything, else two hours.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scrape_every: str = "500ms",
        jobs: Sequence[str] = ("engines",),
        served: Web | None = None,
        past: Iterable[str] | None = None,
    ) -> None:
        if PROGRAM is None:
            raise AssertionError("prometheus is not on the PATH; on Debian: apt-get install prometheus")
        self._folder = folder
        self._served = served or Web()
        self._keeps = "2h" if past is None else "400d"
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs = tuple(jobs)
        folder.mkdir(parents=True, exist_ok=True)
        self.scrape()
        self._write_configuration(scrape_every)
        if past is not None:
            self._remember(past)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self._served.certificate else 'http'}://127.0.0.1:{self._port}"

    @property
    def log(self) -> Path:
        """Its log file."""
        return self._folder / "prometheus.log"

    @property
    def _query_log(self) -> Path:
        return self._folder / "queries.log"

    def scrape(self, *targets: Target) -> None:
        """Scrape these from now on, and no others; it sees the change within a second."""
        for job in self._jobs:
            groups = [
                {"targets": [f"{target.host}:{target.port}"], "labels": dict(target.labels)}
                for target in targets
                if target.job == job
            ]
            written = self._folder / f"{job}.json.new"
            written.write_text(json.dumps(groups))
            written.rename(self._folder / f"{job}.json")

    def _remember(self, past: Iterable[str]) -> None:
        openmetrics = self._folder / "past.openmetrics"
        openmetrics.write_text("\n".join((*past, _END_MARK, "")))
        promtool = shutil.which("promtool")
        assert promtool is not None, "promtool comes with the package prometheus"
        # Without large blocks it reads the file again for every two hours of it.
        command = [promtool, "tsdb", "create-blocks-from", "--max-block-duration=720h", "openmetrics"]
        command += [str(openmetrics), f"{self._folder}/data"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)

    def query(self, expression: str, at: datetime | None = None) -> list[Mapping[str, Any]]:
        """The result of a query for an instant, default: now; of a server on plain http."""
        time = {} if at is None else {"time": at.timestamp()}
        path = f"api/v1/query?{urllib.parse.urlencode({'query': expression} | time)}"
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", timeout=10) as answer:
            found: list[Mapping[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def answered(self, query: str) -> list[tuple[datetime, datetime]]:
        """The instants that a query was asked for so far, each with when the last query for it was answered."""
        lines = self._query_log.read_text().splitlines() if self._query_log.exists() else []
        answers = [json.loads(line) for line in lines]
        last: dict[datetime, datetime] = {}
        for each in answers:
            at, done = (datetime.fromisoformat(text) for text in (each["params"]["end"], each["ts"]))
            last[at] = max(last.get(at, done), done)
        asked = {datetime.fromisoformat(each["params"]["end"]) for each in answers if each["params"]["query"] == query}
        return [(at, last[at]) for at in sorted(asked)]

    def start(self) -> Prometheus:
        """Start it, and wait until it answers queries."""
        command = [
            *_ends_with_us(),
            str(PROGRAM),
            f"--config.file={self._folder}/prometheus.yml",
            f"--web.config.file={self._folder}/web.yml",
            f"--storage.tsdb.path={self._folder}/data",
            f"--web.listen-address=127.0.0.1:{self._port}",
            f"--storage.tsdb.retention.time={self._keeps}",
            "--log.level=warn",
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        eventually(self._is_ready, what=f"a ready Prometheus; log: {self.log}")
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it; harmless when it has ended."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def __enter__(self) -> Prometheus:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"Prometheus ended: {self.log.read_text()[-2000:]}"
        try:
            if self._served.certificate or self._served.users:  # listening is enough
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return True
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _write_configuration(self, scrape_every: str) -> None:
        configuration = {
            "global": {
                "scrape_interval": scrape_every,
                "scrape_timeout": scrape_every,
                "query_log_file": str(self._query_log),
            },
            "scrape_configs": [
                {
                    "job_name": job,
                    "file_sd_configs": [{"files": [f"{self._folder}/{job}.json"], "refresh_interval": "1s"}],
                }
                for job in self._jobs
            ],
        }
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        served = {}
        if self._served.certificate:
            served["tls_server_config"] = {
                "cert_file": str(self._served.certificate),
                "key_file": str(self._served.key),
            }
        if self._served.users:
            served["basic_auth_users"] = dict(self._served.users)
        (self._folder / "web.yml").write_text(yaml.safe_dump(served))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ends_with_us() -> list[str]:
    """Lets the kernel end it with this process, where util-linux can say so."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig=KILL", "--"] if setpriv else []
