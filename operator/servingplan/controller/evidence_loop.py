"""Everything that works on evidence, made once per process: its watches, queue, wake-ups and reconciler.

In: events and instants. Out: reconciles, serial per object, with backoff. Beside the plans' queue, so that evidence
never holds up a plan.
"""

from __future__ import annotations

from collections.abc import Callable

from servingplan.api.referenced import RunnerDefaults
from servingplan.clients.kubernetes import KubernetesClient
from servingplan.controller.clock import Clock
from servingplan.controller.events import EventRecorder
from servingplan.controller.evidence import EvidenceReconciler
from servingplan.controller.evidence_hours import QuietHours
from servingplan.controller.evidence_kinds import EvidenceKey
from servingplan.controller.evidence_watches import EvidenceWatches
from servingplan.controller.observe import Observer
from servingplan.controller.queue import KeyedQueue
from servingplan.controller.wakeups import Wakeups

WORKERS = 2
"""Evidence takes hours: what waits a second for another object's look loses nothing."""


class EvidenceLoop:
    """Works on evidence while this process leads."""

    def __init__(
        self,
        *,
        client: KubernetesClient,
        clock: Clock,
        events: EventRecorder,
        observer: Observer,
        installation: str,
        runner_image: str | None,
        on_failure: Callable[[EvidenceKey, Exception, float], None],
    ) -> None:
        self._queue: KeyedQueue[EvidenceKey] = KeyedQueue(self._work, workers=WORKERS, on_failure=on_failure)
        self._wakeups: Wakeups[EvidenceKey] = Wakeups(clock=clock, wake=self._queue.add)
        self.watches = EvidenceWatches(client=client, look=self._queue.add_after)
        self._reconciler = EvidenceReconciler(
            client=client,
            clock=clock,
            events=events,
            installation=installation,
            defaults=RunnerDefaults(image=runner_image),
            quiet_hours=QuietHours(observer=observer, clock=clock),
            wake_at=self._wakeups.schedule,
        )

    def start(self) -> None:
        """Look at everything, from now on: we lead."""
        self._queue.start()
        for key in self.watches.keys:
            self._queue.add(key)

    def pause(self) -> None:
        """Begin nothing more, and end what goes on: we lead no more."""
        self._queue.pause()
        self._queue.cancel_running()

    async def run(self) -> None:
        """Wake objects at their instants until cancelled."""
        await self._wakeups.run()

    async def stop(self) -> None:
        """Begin nothing more, and wait for what goes on."""
        await self._queue.stop()

    async def _work(self, key: EvidenceKey) -> float | None:
        return await self._reconciler.reconcile(key)
