"""The process: how it starts, how it ends, and what it does where its watch or a part of it fails."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import kopf
import pytest
from kopf._core.reactor import observation

from servingplan.clients.connection import Connection
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.controller import app
from servingplan.controller.app import Process
from servingplan.controller.handlers import kopf_settings, register
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.settings import OperatorSettings
from servingplan.errors import Refused

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""
"""A server that refuses every connection."""

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    return path


@pytest.fixture
def run(kubeconfig: Path) -> Iterator[Run]:
    """Starts the real program; it is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "servingplan", "operator", "--log-format=text", "--health-host=127.0.0.1"]
        given = [f"--kubeconfig={kubeconfig}", "--health-port=0", "--no-leader-election", *options]
        process = subprocess.Popen([*command, *given], stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture
async def process(kubeconfig: Path) -> Any:
    settings = OperatorSettings(kubeconfig=kubeconfig, leader_election=False, health_host="127.0.0.1", health_port=0)
    connection = Connection(load_endpoint(kubeconfig=kubeconfig))
    yield Process(settings, connection, OperatorMetrics(version="1"), take_signals=lambda: None)
    await connection.close()


# ---- signals, and how it ends ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it_while_its_watch_waits_to_be_started_again(run: Run, number: signal.Signals) -> None:
    process = run()
    assert process.stderr is not None
    log = ""
    while "it is started again in" not in log:
        line = process.stderr.readline()
        assert line, log
        log += line
    process.send_signal(number)
    assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--kubeconfig=/nowhere/kubeconfig", 2, "/nowhere/kubeconfig"),
        ("--context=elsewhere", 2, "elsewhere"),
    ],
    ids=["no kubeconfig", "no such context"],
)
def test_what_keeps_it_from_starting_is_one_sentence(run: Run, option: str, code: int, said: str) -> None:
    process = run(option)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert said in errors
    assert len(errors.strip().splitlines()) == 1, errors


def test_a_port_that_is_taken_is_one_sentence(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = run(f"--health-port={taken.getsockname()[1]}")
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "choose another --health-port" in errors
    assert len(errors.strip().splitlines()) == 1, errors


async def ends(_: object = None) -> None:
    """A part that ends by itself."""


async def stays(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


async def fails(*_: object, **__: object) -> None:
    raise Refused("read of Lease x was refused (403)")


@pytest.mark.parametrize(
    ("part", "error"),
    [(fails, "read of Lease x was refused"), (ends, "the part 'relist' ended before the process was told to stop")],
    ids=["fails", "ends"],
)
async def test_a_part_that(
    process: Process, monkeypatch: pytest.MonkeyPatch, part: Callable[..., Any], error: str
) -> None:
    """Whatever part of it goes, the process ends with that error and leaves nothing running."""
    monkeypatch.setattr(process, "_watch_forever", stays)
    monkeypatch.setattr(process, "_relist_forever", part)
    before = asyncio.all_tasks()
    async with process:
        with pytest.raises(Exception, match=error):
            await process.run_until(asyncio.Event())
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


async def test_being_told_to_stop_is_no_error(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("_watch_forever", "_relist_forever"):
        monkeypatch.setattr(process, part, stays)
    stop, before = asyncio.Event(), asyncio.all_tasks()
    stop.set()
    async with process:
        await process.run_until(stop)
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


def test_an_unexpected_error_is_the_last_line_of_the_log_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(app, "_run", broken)
    monkeypatch.setattr(app, "set_up_logging", lambda **_: None)
    with pytest.raises(SystemExit) as ended:
        app.run(OperatorSettings())
    assert ended.value.code == 1
    assert caplog.messages == ["the operator ends: division by zero"]


async def test_events_that_cannot_be_posted_do_not_hold_up_the_end(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "FLUSH_S", 0.01)
    monkeypatch.setattr(process._events, "flush", stays)
    for part in ("_watch_forever", "_relist_forever"):
        monkeypatch.setattr(process, part, stays)
    stop = asyncio.Event()
    stop.set()
    async with process:
        await process.run_until(stop)
    assert "some events were not posted before the end" in caplog.messages


# ---- the supervised watch ----


class Supervised:
    """A watch that fails at once or runs for some time, on a clock of its own; `pauses` are those in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, process: Process, *runs_s: float) -> None:
        self.now_s, self.pauses, self._runs = 0.0, [], list(runs_s)
        self.process = process
        monkeypatch.setattr(process, "_watch", self._watch)
        monkeypatch.setattr(app.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(app.asyncio, "sleep", self._sleep)

    async def _watch(self) -> None:
        if not self._runs:
            raise asyncio.CancelledError
        self.now_s += self._runs.pop(0)
        raise RuntimeError("410 and worse")

    async def _sleep(self, delay_s: float) -> None:
        self.pauses.append(delay_s)
        self.now_s += delay_s

    async def watch(self) -> list[float]:
        with pytest.raises(asyncio.CancelledError):
            await self.process._watch_forever()
        return self.pauses


async def test_a_watch_that_fails_is_started_again_after_longer_and_longer_pauses(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = await Supervised(monkeypatch, process, *([0.0] * 9)).watch()
    assert all(one < other for one, other in pairwise(pauses[:6]))
    assert 0.8 <= pauses[0] <= 1
    assert 48 <= pauses[-1] <= 60


async def test_a_watch_that_was_well_for_long_begins_with_the_shortest_pause_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = await Supervised(monkeypatch, process, *([0.0] * 6), 3600.0).watch()
    assert pauses[-1] <= 1 < pauses[-2]


# ---- kopf ----


async def test_signals_are_taken_back_as_soon_as_kopf_has_taken_them(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    async def none() -> frozenset[str]:
        return frozenset()

    async def spawn_tasks(**_: object) -> list[object]:
        happened.append("kopf takes them")
        return []

    async def run_tasks(*_: object, **__: object) -> None:
        happened.append("kopf runs")

    monkeypatch.setattr(process._watches, "optional_kinds", none)
    monkeypatch.setattr(process, "_take_signals", lambda: happened.append("they are ours again"))
    monkeypatch.setattr(app.kopf, "spawn_tasks", spawn_tasks)
    monkeypatch.setattr(app.kopf, "run_tasks", run_tasks)
    await process._watch()
    assert happened == ["kopf takes them", "they are ours again", "kopf runs"]


def kinds_watched(optional: frozenset[str], process: Process) -> set[str]:
    registry = kopf.OperatorRegistry()
    register(registry, stays, process._watches, process._evidence.watches, optional)
    found = registry._watching.get_all_handlers()
    return {str(handler.selector.any_name or handler.selector.plural) for handler in found if handler.selector}


async def test_what_a_cluster_does_not_offer_is_not_watched(process: Process) -> None:
    always = kinds_watched(frozenset(), process)
    assert kinds_watched(frozenset({"nodes", "scaledobjects"}), process) - always == {"nodes", "scaledobjects"}
    assert always >= {"servingplans", "configmaps", "deployments", "statefulsets", "pods", "horizontalpodautoscalers"}
    assert always >= {"capacitybenchmarks", "jobs"}


async def test_that_keda_is_missing_is_no_news_and_that_anything_else_is_missing_is(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    registry = kopf.OperatorRegistry()
    register(registry, stays, process._watches, process._evidence.watches, frozenset({"scaledobjects"}))
    selectors = registry._watching.get_all_selectors()
    keda = frozenset(selector for selector in selectors if selector.any_name == "scaledobjects")
    assert keda
    for missing in (keda, selectors - keda):
        observation._disable_mismatched_selectors(resources=set(), selectors=missing)
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "servingplans" in warning


def test_kopf_posts_nothing_and_kills_nobody() -> None:
    settings = kopf_settings(frozenset({"nodes"}))
    assert settings.posting.enabled is False
    assert settings.process.ultimate_exiting_timeout is None
    assert settings.scanning.disabled is False
    assert kopf_settings(frozenset()).scanning.disabled is True


def test_it_starts_where_the_command_lines_cluster_client_is_not_installed() -> None:
    missing = "import sys; sys.modules['kubernetes'] = sys.modules['kubernetes_asyncio'] = None; "
    command = [sys.executable, "-c", f"{missing}import servingplan.controller.app"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
