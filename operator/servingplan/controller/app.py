"""The operator process: makes every part once, runs them together, and ends them in order.

In: settings. Out: a process that watches, leads or waits to lead, reconciles, and answers its probes. The only place,
beside the simulation, where a clock is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import kopf
from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential_jitter

from servingplan import __version__
from servingplan.clients.connection import Connection
from servingplan.clients.gate import MutationGate
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.act import Actor
from servingplan.controller.apply import Applier
from servingplan.controller.events import EventRecorder
from servingplan.controller.handlers import kopf_settings, register
from servingplan.controller.health import Health, HealthServer
from servingplan.controller.leader import AlwaysLeader, Leadership, LeaseElection, own_identity
from servingplan.controller.logging import set_up_logging
from servingplan.controller.login import login_with
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.observe import Observer
from servingplan.controller.queue import KeyedQueue
from servingplan.controller.reconcile import Parts, Reconciler
from servingplan.controller.report import Reporter
from servingplan.controller.settings import LogFormat, OperatorSettings
from servingplan.controller.store import Key, Store
from servingplan.controller.wakeups import Wakeups
from servingplan.controller.watches import Watches
from servingplan.errors import ClusterError

WATCH_RESTART_MAX_S = 60.0
"""The longest pause before kopf is started again; shorter than what the liveness probe tolerates."""

WATCH_ALIVE_EVERY_S = 15.0

_log = logging.getLogger(__name__)


def run(settings: OperatorSettings) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    clock = settings.clock()
    set_up_logging(json_lines=settings.log_format is LogFormat.JSON, level=settings.log_level, clock=clock)
    asyncio.run(_run(settings))


async def _run(settings: OperatorSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics = OperatorMetrics(version=__version__)
    endpoint = load_endpoint(kubeconfig=settings.kubeconfig, context=settings.context)
    connection = Connection(endpoint, user_agent=f"servingplan/{__version__}", observe=metrics.request_done)
    try:
        async with Process(settings, connection, metrics) as process:
            await process.run_until(stop)
    finally:
        await connection.close()


class Process:
    """One operator process and everything that runs in it."""

    def __init__(self, settings: OperatorSettings, connection: Connection, metrics: OperatorMetrics) -> None:
        self._settings = settings
        self._connection = connection
        self._metrics = metrics
        self._clock = settings.clock()
        self._health = Health()
        self._identity = own_identity()
        self._leadership = self._make_leadership()
        self._client = self._make_client(self._leadership.gate)
        self._events = EventRecorder(
            client=self._client, controller="servingplan.dev/operator", instance=self._identity
        )
        self._store = Store()
        self._queue: KeyedQueue[Key] = KeyedQueue(self._reconcile, workers=settings.workers, on_failure=self._failed)
        self._wakeups: Wakeups[Key] = Wakeups(clock=self._clock, wake=self._queue.add)
        self._watches = Watches(client=self._client, store=self._store, look=self._queue.add_after)
        self._reconciler = Reconciler(self._make_parts())
        self._server = HealthServer(
            health=self._health,
            metrics=metrics.render,
            host=settings.health_host,
            port=settings.health_port,
        )

    def _make_client(self, gate: MutationGate | None) -> KubernetesClient:
        return KubernetesClient(
            session=self._connection.session,
            server=self._connection.server,
            field_manager=self._settings.field_manager,
            gate=gate,
        )

    def _make_leadership(self) -> Leadership:
        if not self._settings.leader_election:
            return AlwaysLeader()
        return LeaseElection(
            client=self._make_client(None),
            namespace=self._settings.lease_namespace or self._connection.namespace or "default",
            name=self._settings.lease_name,
            identity=self._identity,
        )

    def _make_parts(self) -> Parts:
        settings = self._settings
        applier = Applier(client=self._client, installation=settings.installation)
        return Parts(
            client=self._client,
            store=self._store,
            clock=self._clock,
            observer=Observer(
                client=self._client,
                store=self._store,
                clock=self._clock,
                installation=settings.installation,
            ),
            actor=Actor(applier=applier, clock=self._clock, field_manager=settings.field_manager),
            reporter=Reporter(
                client=self._client,
                store=self._store,
                clock=self._clock,
                events=self._events,
                metrics=self._metrics,
            ),
            wake_at=self._wakeups.schedule,
        )

    # ---- life ----

    async def __aenter__(self) -> Process:
        port = await self._server.start()
        _log.info("servingplan %s serves health and metrics on port %d", __version__, port)
        if self._clock.describe():
            _log.warning("the demo clock is on: %s; never use it on a cluster that serves", self._clock.describe())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    async def run_until(self, stop: asyncio.Event) -> None:
        """Run everything until `stop` is set, a signal ends the watch, or a part ends with an error."""
        parts = [
            self._leadership.run(on_started=self._lead, on_lost=self._follow),
            self._wakeups.run(),
            self._events.run(),
            self._relist_forever(),
            self._watch_forever(),
            self._note_health(),
        ]
        async with _together(parts) as failed:
            ended = asyncio.create_task(stop.wait())
            await asyncio.wait({ended, *failed}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            await self._queue.stop()
            await self._events.flush()
            for task in failed:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error

    def _lead(self) -> None:
        self._metrics.leading(leads=True)
        if self._health.caches_synced:
            self._start_work()

    def _start_work(self) -> None:
        self._queue.start()
        for key in sorted(self._store.plans):
            self._queue.add(key)

    def _follow(self) -> None:
        self._metrics.leading(leads=False)
        self._queue.pause()
        self._queue.cancel_running()

    async def _reconcile(self, key: Key) -> float | None:
        return await self._reconciler.reconcile(key)

    def _failed(self, key: Key, error: Exception, delay_s: float) -> None:
        self._metrics.reconcile_failed(type(error).__name__)
        if isinstance(error, ClusterError):
            _log.warning("%s: %s; again in %.0f s", key, error, delay_s)
        else:
            _log.error("%s: reconcile failed; again in %.0f s", key, delay_s, exc_info=error)

    async def _relist_forever(self) -> None:
        while True:
            try:
                await self._watches.relist(self._settings.namespaces)
            except ClusterError as error:
                _log.warning("the list of plans could not be read: %s", error)
                await asyncio.sleep(min(5.0, self._settings.relist_seconds))
                continue
            if not self._health.caches_synced:
                self._health.caches_synced = True
                if self._leadership.is_leader:
                    self._start_work()
            await asyncio.sleep(self._settings.relist_seconds)

    async def _watch_forever(self) -> None:
        """Keep kopf watching: an error ends `kopf.operator`, and it is started again with backoff."""
        pause = wait_exponential_jitter(initial=1.0, max=WATCH_RESTART_MAX_S)
        async for attempt in AsyncRetrying(retry=retry_if_exception_type(Exception), wait=pause):
            with attempt:
                self._health.watch_alive()
                await self._watch()
        # It takes the process's signals for itself while it runs, and returns when one of them came.

    async def _watch(self) -> None:
        registry = kopf.OperatorRegistry()
        register(registry, login_with(self._connection), self._watches, await self._watches.optional_kinds())
        try:
            await kopf.operator(
                registry=registry,
                settings=kopf_settings(),
                standalone=True,
                clusterwide=not self._settings.namespaces,
                namespaces=self._settings.namespaces,
            )
        except Exception as error:
            _log.warning("the watch ended: %s; it is started again", error)
            raise

    async def _note_health(self) -> None:
        while True:
            self._health.watch_alive()
            self._health.leadership_known = self._leadership.known
            await asyncio.sleep(1.0 if not self._health.leadership_known else WATCH_ALIVE_EVERY_S)


@contextlib.asynccontextmanager
async def _together(parts: list[Coroutine[Any, Any, None]]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run coroutines as tasks; cancel and await all of them at the end."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
