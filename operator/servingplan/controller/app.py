"""The operator process: makes every part once, runs them together, and ends them in order.

In: settings. Out: a process that watches, leads or waits to lead, reconciles, and answers its probes. The only place,
beside the simulation, where a clock is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import kopf

from servingplan import __version__
from servingplan.clients.connection import Connection
from servingplan.clients.gate import MutationGate
from servingplan.clients.kubeconfig import load_endpoint
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.clients.sources import read_sources
from servingplan.controller.act import Actor
from servingplan.controller.apply import Applier
from servingplan.controller.clock import system_now
from servingplan.controller.drain import Drainer
from servingplan.controller.events import EventRecorder
from servingplan.controller.evidence_kinds import EvidenceKey
from servingplan.controller.evidence_loop import EvidenceLoop
from servingplan.controller.handlers import kopf_settings, register
from servingplan.controller.health import Health, HealthServer
from servingplan.controller.leader import AlwaysLeader, Leadership, LeaseElection, own_identity
from servingplan.controller.learner import Learner
from servingplan.controller.ledger import LedgerKeeper
from servingplan.controller.logging import set_up_logging
from servingplan.controller.login import login_with
from servingplan.controller.metrics import OperatorMetrics
from servingplan.controller.observe import Observer
from servingplan.controller.queue import Backoff, KeyedQueue
from servingplan.controller.reconcile import Parts, Reconciler
from servingplan.controller.report import Reporter
from servingplan.controller.settings import LogFormat, OperatorSettings
from servingplan.controller.signals import SignalPoller
from servingplan.controller.store import Key, Store
from servingplan.controller.wakeups import Wakeups
from servingplan.controller.watches import Watches
from servingplan.errors import ClusterError, ServingPlanError

WATCH_RESTART = Backoff(first_s=1.0, longest_s=60.0)
"""The pauses before kopf is started again; the longest is shorter than what the liveness probe tolerates."""

WATCH_SETTLED_S = 300.0
"""A watch that ran so long was well: when it ends, the pauses begin anew with the shortest."""

WATCH_ALIVE_EVERY_S = 15.0

FLUSH_S = 3.0
"""How long the events that still wait may hold up the end of the process."""

_log = logging.getLogger(__name__)


def run(settings: OperatorSettings) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Raises ServingPlanError where it cannot start. SystemExit with code 1 where a part of it fails unexpectedly:
    what failed is then the last line of the log.
    """
    clock = settings.clock()
    set_up_logging(json_lines=settings.log_format is LogFormat.JSON, level=settings.log_level, clock=clock)
    try:
        asyncio.run(_run(settings))
    except ServingPlanError:
        raise
    except Exception as error:
        _log.critical("the operator ends: %s", error or type(error).__name__, exc_info=error)
        raise SystemExit(1) from error


async def _run(settings: OperatorSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    take_signals()
    metrics = OperatorMetrics(version=__version__)
    endpoint = load_endpoint(kubeconfig=settings.kubeconfig, context=settings.context)
    connection = Connection(endpoint, user_agent=f"servingplan/{__version__}", observe=metrics.request_done)
    try:
        async with Process(settings, connection, metrics, take_signals=take_signals) as process:
            await process.run_until(stop)
    finally:
        await connection.close()


class Process:
    """One operator process and everything that runs in it.

    take_signals: makes SIGTERM and SIGINT stop the process; called again whenever kopf took them for itself.
    """

    def __init__(
        self,
        settings: OperatorSettings,
        connection: Connection,
        metrics: OperatorMetrics,
        *,
        take_signals: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._take_signals = take_signals
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
        self._poller = self._make_poller()
        self._learner = Learner(client=self._poller.client, clock=self._clock, on_learned=self._learned)
        self._observer = Observer(
            client=self._client, store=self._store, clock=self._clock, installation=settings.installation
        )
        self._evidence = EvidenceLoop(
            client=self._client,
            clock=self._clock,
            events=self._events,
            observer=self._observer,
            installation=settings.installation,
            runner_image=settings.runner_image,
            on_failure=self._failed,
        )
        self._applier = Applier(client=self._client, installation=settings.installation)
        self._ledger = self._make_ledger()
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
            user_agent=f"servingplan/{__version__}",
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

    def _make_poller(self) -> SignalPoller:
        sources_file = self._settings.sources_file
        return SignalPoller(
            sources={} if sources_file is None else read_sources(sources_file),
            clock=self._clock,
            observe=self._metrics.query_done,
            on_polled=self._polled,
            real_now=system_now,
            user_agent=f"servingplan/{__version__}",
        )

    def _make_parts(self) -> Parts:
        settings = self._settings
        return Parts(
            client=self._client,
            store=self._store,
            clock=self._clock,
            observer=self._observer,
            actor=Actor(
                applier=self._applier,
                drainer=Drainer(client=self._client),
                clock=self._clock,
                field_manager=settings.field_manager,
            ),
            poller=self._poller,
            learner=self._learner,
            reporter=Reporter(
                client=self._client,
                store=self._store,
                clock=self._clock,
                events=self._events,
                metrics=self._metrics,
                ledger=self._ledger,
            ),
            wake_at=self._wakeups.schedule,
        )

    def _make_ledger(self) -> LedgerKeeper | None:
        settings = self._settings
        if not settings.ledger_days:
            return None
        return LedgerKeeper(
            client=self._client,
            events=self._events,
            metrics=self._metrics,
            installation=settings.installation,
            days=settings.ledger_days,
        )

    # ---- life ----

    async def __aenter__(self) -> Process:
        port = await self._server.start()
        _log.info("servingplan %s serves health and metrics on port %d", __version__, port)
        if self._clock.describe():
            _log.warning("the demo clock is on: %s; never use it on a cluster that serves", self._clock.describe())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._learner.close()
        await self._poller.close()
        await self._server.close()

    async def run_until(self, stop: asyncio.Event) -> None:
        """Run everything until `stop` is set. Raises the error of a part that ends before."""
        parts = {
            "leader election": self._leadership.run(on_started=self._lead, on_lost=self._follow),
            "wake-ups": self._wakeups.run(),
            "evidence": self._evidence.run(),
            "events": self._events.run(),
            "relist": self._relist_forever(),
            "watch": self._watch_forever(),
            "signals": self._poller.run(),
            "learning": self._learner.run(),
            "health": self._note_health(),
        }
        async with _together(parts) as running:
            ended = await _first_to_end(running, stop)
            await self._queue.stop()
            await self._evidence.stop()
            await self._flush_events()
            for part in ended:
                part.result()
                raise RuntimeError(f"the part {part.get_name()!r} ended before the process was told to stop")

    async def _flush_events(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._events.flush()
        except TimeoutError:
            _log.warning("some events were not posted before the end")

    def _lead(self) -> None:
        self._metrics.leading(leads=True)
        if self._health.caches_synced:
            self._start_work()

    def _start_work(self) -> None:
        self._verify_anew()  # another leader may have written since this one looked
        self._queue.start()
        for key in sorted(self._store.plans):
            self._queue.add(key)
        self._evidence.start()

    def _verify_anew(self) -> None:
        """Take nothing for granted that no watch tells of."""
        self._applier.verify_anew()
        if self._ledger is not None:
            self._ledger.verify_anew()

    def _follow(self) -> None:
        self._metrics.leading(leads=False)
        self._queue.pause()
        self._queue.cancel_running()
        self._evidence.pause()

    def _polled(self, key: Key) -> None:
        """A poll brought something new of a plan: look at it if that changes anything."""
        if self._leadership.is_leader and self._reconciler.changes_by_signals(key):
            self._queue.add(key)

    def _learned(self, key: Key) -> None:
        """The past of a plan taught something, or cannot be read: look at it."""
        if self._leadership.is_leader:
            self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        return await self._reconciler.reconcile(key)

    def _failed(self, key: Key | EvidenceKey, error: Exception, delay_s: float) -> None:
        self._metrics.reconcile_failed(type(error).__name__)
        if isinstance(error, ClusterError):
            _log.warning("%s: %s; again in %.0f s", key, error, delay_s)
        else:
            _log.error("%s: reconcile failed; again in %.0f s", key, delay_s, exc_info=error)

    async def _relist_forever(self) -> None:
        while True:
            self._verify_anew()
            try:
                await self._watches.relist(self._settings.namespaces)
                await self._evidence.watches.relist(self._settings.namespaces)
            except ClusterError as error:
                _log.warning("the list of plans could not be read: %s", error)
                await asyncio.sleep(min(5.0, self._settings.relist_seconds))
                continue
            if not self._health.caches_synced:
                self._health.caches_synced = True
                # What was loaded until now stays: full collections of it would hold up the event loop.
                gc.collect()
                gc.freeze()
                if self._leadership.is_leader:
                    self._start_work()
            await asyncio.sleep(self._settings.relist_seconds)

    async def _watch_forever(self) -> None:
        """Keep kopf watching: an error ends it, and it is started again with backoff."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._watch()
                reason = "it gave no reason"
            except Exception as error:  # noqa: BLE001  whatever ends the watch, without it the operator is blind
                reason = str(error) or type(error).__name__
            failures = 1 if time.monotonic() - began > WATCH_SETTLED_S else failures + 1
            delay_s = WATCH_RESTART.delay_s(failures)
            _log.warning("the watch ended: %s; it is started again in %.0f s", reason, delay_s)
            await asyncio.sleep(delay_s)

    async def _watch(self) -> None:
        optional = await self._watches.optional_kinds()
        registry = kopf.OperatorRegistry()
        register(registry, login_with(self._connection), self._watches, self._evidence.watches, optional)
        ours = asyncio.all_tasks()
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=kopf_settings(optional),
            standalone=True,
            clusterwide=not self._settings.namespaces,
            namespaces=self._settings.namespaces,
        )
        self._take_signals()
        await kopf.run_tasks(tasks, ignored=ours)

    async def _note_health(self) -> None:
        while True:
            self._health.watch_alive()
            self._health.leadership_known = self._leadership.known
            await asyncio.sleep(1.0 if not self._health.leadership_known else WATCH_ALIVE_EVERY_S)


async def _first_to_end(parts: list[asyncio.Task[None]], stop: asyncio.Event) -> list[asyncio.Task[None]]:
    """Wait for `stop`, or for parts that end before; these are returned."""
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({stopped, *parts}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    return [part for part in parts if part.done()]


@contextlib.asynccontextmanager
async def _together(parts: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run coroutines as tasks of their names; cancel and await all of them at the end."""
    tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
