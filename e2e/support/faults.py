"""Faults between the operator and the API server: a proxy that holds, drops and breaks, and stops at a single write.

`Proxy` stands between a real operator process and the API server. `CountingGate` and `one_process` run the operator's
own parts inside the test, so that a process can end exactly before or after its n-th write.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from servingplan import __version__
from servingplan.clients.connection import Connection
from servingplan.clients.gate import MutationGate
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.act import Actor
from servingplan.controller.apply import Applier
from servingplan.controller.clock import Clock, system_now
from servingplan.controller.drain import Drainer
from servingplan.controller.events import EventRecorder
from servingplan.controller.leader import own_identity
from servingplan.controller.learner import Learner
from servingplan.controller.ledger import LedgerKeeper
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.observe import Observer
from servingplan.controller.reconcile import Parts, Reconciler
from servingplan.controller.report import Reporter
from servingplan.controller.signals import SignalPoller
from servingplan.controller.store import Key, Store
from servingplan.controller.watches import Watches
from servingplan.localcluster.kubectl import Kubectl
from servingplan.rendering.metadata import DEFAULT_INSTALLATION, field_manager

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_LINE = 1 << 22
"""Of a watch: one object."""
NOT_FORWARDED = frozenset({"Host", "Connection", "Transfer-Encoding", "Content-Length", "Accept-Encoding"})


@dataclass(slots=True, kw_only=True)
class Passed:
    """One request on its way. code: of the answer, None while there is none."""

    method: str
    path: str
    at_s: float
    watches: bool = False
    code: int | None = None

    @property
    def writes(self) -> bool:
        """True for what changes something, but for the Lease."""
        return self.method in WRITES and "/leases" not in self.path


@dataclass(slots=True, kw_only=True)
class Held:
    """A request that waits in the proxy. `arrived`: it is there; `release`: send it on, late; `answered`: it was."""

    wanted: Callable[[Passed], bool]
    arrived: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)
    passed: Passed | None = None


class Proxy:
    """A proxy in front of one API server, for one operator; a context manager. `kubeconfig` leads through it."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._config = json.loads(kubeconfig.read_text())
        self._cluster = self._config["clusters"][0]["cluster"]
        self._upstream = self._cluster["server"]
        self._ca = load_endpoint(kubeconfig=kubeconfig).ca
        self.kubeconfig = folder / f"proxied-{time.monotonic_ns()}.kubeconfig"
        self.requests: list[Passed] = []
        self._holds: list[Held] = []
        self._watches: dict[asyncio.Task[None], web.StreamResponse] = {}
        self._connections: set[asyncio.Transport] = set()
        self._reachable = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        port = self._call(self._start())
        self._cluster.pop("certificate-authority-data", None)
        self._cluster["server"] = f"http://127.0.0.1:{port}"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps(self._config))
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._holds:
            held.release.set()
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def writes(self) -> list[Passed]:
        """Every mutating request so far, but for the Lease."""
        return [passed for passed in self.requests if passed.writes]

    def hold(self, wanted: Callable[[Passed], bool]) -> Held:
        """Keep the next request that is wanted until it is released."""
        held = Held(wanted=wanted)
        self._holds.append(held)
        return held

    def cut(self) -> None:
        """Make the API server unreachable: every connection breaks, and no new one gets an answer."""
        self._reachable = False
        self._call(self._abort())

    def mend(self) -> None:
        """Make it reachable again."""
        self._reachable = True

    def break_watches(self, code: int) -> int:
        """Send an ERROR event with a status code on every watch and end it; returns how many there were."""
        return self._call(self._break(code))

    # ---- inside the proxy's own thread ----

    def _call(self, work: Awaitable[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(_awaited(work), self._loop).result(timeout=30)

    async def _start(self) -> int:
        tls = ssl.create_default_context(cadata=self._ca)
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls), read_bufsize=LONGEST_LINE, auto_decompress=False
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    async def _stop(self) -> None:
        await self._abort()
        for task in list(self._watches):
            task.cancel()
        await self._runner.cleanup()
        await self._session.close()

    async def _abort(self) -> None:
        for transport in list(self._connections):
            transport.abort()

    async def _break(self, code: int) -> int:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "broken by a test",
            "code": code,
        }
        line = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
        broken = list(self._watches.items())
        for task, response in broken:
            await response.write(line)
            task.cancel()
        return len(broken)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None or not self._reachable:
            if transport is not None:
                transport.abort()
            raise web.HTTPServiceUnavailable
        self._connections.add(transport)
        try:
            passed = Passed(
                method=request.method,
                path=request.path,
                at_s=time.monotonic(),
                watches=request.query.get("watch", "") in {"true", "1"},
            )
            self.requests.append(passed)
            return await self._forward(request, passed)
        finally:
            self._connections.discard(transport)

    async def _forward(self, request: web.Request, passed: Passed) -> web.StreamResponse:
        body = await request.read()
        held = next((one for one in self._holds if one.passed is None and one.wanted(passed)), None)
        if held is not None:
            held.passed = passed
            held.arrived.set()
            await asyncio.get_running_loop().run_in_executor(None, held.release.wait)
        headers = {name: value for name, value in request.headers.items() if name not in NOT_FORWARDED}
        async with self._session.request(
            request.method,
            self._upstream + request.raw_path,
            data=body or None,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            passed.code = answer.status
            kept = {name: value for name, value in answer.headers.items() if name not in NOT_FORWARDED}
            if passed.watches and answer.status == 200:
                return await self._stream(request, answer, kept)
            content = await answer.read()
        if held is not None:
            held.answered.set()
        return web.Response(status=passed.code, headers=kept, body=content)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers=headers)
        await response.prepare(request)
        copying = asyncio.create_task(_copy(answer, response))
        self._watches[copying] = response
        try:
            await asyncio.wait({copying})
        finally:
            self._watches.pop(copying, None)
            copying.cancel()
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def _copy(answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    with contextlib.suppress(ConnectionError, aiohttp.ClientError):
        async for line in answer.content:
            await response.write(line)


# ---- the operator's parts inside the test ----


class Interrupted(BaseException):
    """The process ended here; nothing of the operator may catch it."""


class CountingGate:
    """Lets writes through and counts them, up to one at which the process ends.

    end_at: the number of that write, from 1; None for none. sent: it still reaches the API server, but its answer is
    never seen. after_write: called after each write.
    """

    def __init__(
        self,
        *,
        end_at: int | None = None,
        sent: bool = False,
        after_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._end_at = end_at
        self._sent = sent
        self._after_write = after_write
        self.writes = 0

    @contextlib.asynccontextmanager
    async def admit(self, timeout_s: float) -> AsyncIterator[None]:
        """As `MutationGate`."""
        self.writes += 1
        ends = self.writes == self._end_at
        if ends and not self._sent:
            raise Interrupted
        async with asyncio.timeout(timeout_s):
            yield
        if self._after_write is not None:
            await self._after_write()
        if ends:
            raise Interrupted


class JumpingClock:
    """Real time that jumps forward when told to: what came before a jump keeps the time that it had."""

    def __init__(self) -> None:
        self._jumps: list[tuple[datetime, timedelta]] = []

    def jump(self, to: datetime) -> None:
        """Show an instant (aware) from now on."""
        now = system_now()
        self._jumps.append((now, to - now))

    def now(self) -> datetime:
        """As `Clock`."""
        return self.from_real(system_now())

    def seconds_until(self, instant: datetime) -> float:
        """As `Clock`."""
        return max(0.0, (instant - self.now()).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        """As `Clock`; by the last jump."""
        return instant - self._jumps[-1][1]

    def from_real(self, instant: datetime) -> datetime:
        """As `Clock`."""
        ahead = [by for since, by in self._jumps if since <= instant]
        return (instant + (ahead or [self._jumps[0][1]])[-1]).astimezone(UTC)

    def describe(self) -> str:
        """As `Clock`; the same after a jump."""
        return "jumps"


async def one_process(kubeconfig: Path, key: Key, clock: Clock, gate: MutationGate, *, ledger_days: int = 35) -> None:
    """What a fresh operator process does for one plan, until nothing is left to do now. Raises `Interrupted`."""
    connection = Connection(load_endpoint(kubeconfig=kubeconfig), user_agent=f"servingplan/{__version__}")
    try:
        client = KubernetesClient(
            session=connection.session,
            server=connection.server,
            field_manager=field_manager(DEFAULT_INSTALLATION),
            gate=gate,
        )
        await _reconcile_until_quiet(client, key, clock, ledger_days)
    finally:
        await connection.close()


async def _reconcile_until_quiet(client: KubernetesClient, key: Key, clock: Clock, ledger_days: int) -> None:
    store = Store()
    events = EventRecorder(client=client, controller="servingplan.dev/operator", instance=own_identity())
    metrics = OperatorMetrics(version=__version__)
    ledger = LedgerKeeper(
        client=client, events=events, metrics=metrics, installation=DEFAULT_INSTALLATION, days=ledger_days
    )
    reporter = Reporter(client=client, store=store, clock=clock, events=events, metrics=metrics, ledger=ledger)
    poller = SignalPoller(
        sources={},
        clock=clock,
        observe=metrics.query_done,
        on_polled=lambda _key: None,
        real_now=system_now,
    )
    learner = Learner(client=poller.client, clock=clock, on_learned=lambda _key: None)
    parts = Parts(
        client=client,
        store=store,
        clock=clock,
        observer=Observer(client=client, store=store, clock=clock, installation=DEFAULT_INSTALLATION),
        actor=Actor(
            applier=Applier(client=client, installation=DEFAULT_INSTALLATION),
            drainer=Drainer(client=client),
            clock=clock,
            field_manager=field_manager(DEFAULT_INSTALLATION),
        ),
        poller=poller,
        learner=learner,
        reporter=reporter,
        wake_at=lambda _key, _instant: None,
    )
    await Watches(client=client, store=store, look=lambda _key, _after_s: None).relist((key.namespace,))
    reconciler = Reconciler(parts)
    try:
        await _until_quiet(reconciler, key, events)
    finally:
        learner.close()
        await poller.close()


async def _until_quiet(reconciler: Reconciler, key: Key, events: EventRecorder) -> None:
    while True:
        again_s = await reconciler.reconcile(key)
        # Events are posted beside the reconcile; here as early as possible, which is the hardest order.
        await events.flush()
        if again_s is None or again_s >= 1:
            return
        await asyncio.sleep(again_s)


def until_stopped(process: subprocess.Popen[Any]) -> None:
    """Send SIGSTOP and wait until the process has stopped."""
    process.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"T", "t"}:
        time.sleep(0.001)


class ReplicaLog:
    """Every value of the Deployment's replicas as the API server tells it, with the real time, in seconds."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        watch = f"/apis/apps/v1/namespaces/{namespace}/deployments?watch=true"
        command = [str(kubectl.program), *kubectl.options, "get", "--raw", watch]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.seen: list[tuple[float, int]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            replicas = json.loads(line)["object"]["spec"]["replicas"]
            if not self.seen or self.seen[-1][1] != replicas:
                self.seen.append((time.monotonic(), replicas))

    @property
    def levels(self) -> list[int]:
        """The values, in order."""
        return [value for _, value in self.seen]

    def falls(self) -> dict[tuple[int, int], list[float]]:
        """When replicas were lowered, by the values before and after."""
        found: dict[tuple[int, int], list[float]] = {}
        for (_, before), (at_s, after) in itertools.pairwise(self.seen):
            if after < before:
                found.setdefault((before, after), []).append(at_s)
        return found

    def end(self) -> None:
        """Stop watching."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
