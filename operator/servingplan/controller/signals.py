"""The poller: asks every source of metrics once per interval, for all plans that use it.

In: what each plan follows (a source, or its pods' own /metrics) and which pods it has. Out: a `Record` per plan, and
from it what a decision hears. Nothing here raises into the operator's loop: a source that is down, slow or lying is a
`NoSignals` with its reason, and the schedule goes on alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from servingplan.clients.engine_scrape import Endpoint, EngineScraper
from servingplan.clients.engine_series import Limits
from servingplan.clients.prometheus import PrometheusClient, QueryObserver
from servingplan.clients.rounds import Round
from servingplan.clients.sources import Source
from servingplan.controller.clock import Clock
from servingplan.controller.pod_names import pods_like
from servingplan.controller.polling import poll_for_ever
from servingplan.controller.store import Key
from servingplan.planning.plan import Objective, Plan, PrometheusSource
from servingplan.planning.reasons import Reason
from servingplan.planning.record import Record, last_heard
from servingplan.planning.signals import NOT_ASKED, Heard, NoSignals, Reading

Object = Mapping[str, Any]

Asked = str | Key
"""Who is asked in one round: a source by its name, or a plan's own pods."""

PODS_OF_A_PLAN_AT_ONCE = 8
"""So that a plan whose pods hang leaves places to the others."""

SLICE_S = 0.005
"""The longest that the event loop is kept at a stretch while a round is given to the plans."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePod:
    """A pod that serves. ip, port: where its metrics are; None where it has none, or no such port.

    born: when it was created, on the plans' clock; so that a new pod's first counts count. alike: a pattern of the
    names of all pods that its workload ever had.
    """

    name: str
    ip: str | None = None
    port: int | None = None
    born: datetime | None = None
    alike: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """What one plan follows: a source by name, or (source None) its pods' own metrics at `port` and `path`.

    port: its number, or its name in the pods. stale_after: on the plans' clock.
    """

    source: str | None
    limits: Limits = field(default_factory=Limits)
    stale_after: timedelta = timedelta(seconds=90)
    port: str = "http"
    path: str = "/metrics"


def following(plan: Plan) -> Following | None:
    """What a plan follows; None where the schedule alone decides."""
    if plan.feedback is None:
        return None
    objectives, source = plan.workload.objectives, plan.feedback.source
    limits = Limits(
        ttft=_limit_s(objectives.ttft),
        tpot=_limit_s(objectives.tpot),
        queue=_limit_s(plan.feedback.raise_when.queue_time),
    )
    stale_after = plan.feedback.stale_after
    if isinstance(source, PrometheusSource):
        return Following(source=source.name, limits=limits, stale_after=stale_after)
    return Following(source=None, limits=limits, stale_after=stale_after, port=source.port, path=source.path)


def serving_pods(pods: Iterable[Object], followed: Following, clock: Clock) -> tuple[EnginePod, ...]:
    """The pods that should answer, by name: ready ones that are not about to end. pods: as the cluster has them."""
    return tuple(sorted((_engine_pod(pod, followed, clock) for pod in pods if _serves(pod)), key=lambda one: one.name))


def _limit_s(objective: Objective | None) -> float | None:
    return None if objective is None else objective.limit.total_seconds()


def _serves(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _engine_pod(pod: Object, followed: Following, clock: Clock) -> EnginePod:
    return EnginePod(
        name=pod["metadata"]["name"],
        ip=pod.get("status", {}).get("podIP"),
        port=_port(pod, followed.port),
        born=clock.from_real(datetime.fromisoformat(pod["metadata"]["creationTimestamp"])),
        alike=pods_like(pod),
    )


def _port(pod: Object, port: str) -> int | None:
    """A port that is a number, or the one that a container gives this name."""
    if port.isdecimal():
        return int(port)
    containers = pod.get("spec", {}).get("containers", ())
    named = (stated for container in containers for stated in container.get("ports", ()) if stated.get("name") == port)
    return next((int(stated["containerPort"]) for stated in named), None)


@dataclass(slots=True)
class _Followed:
    """A plan that asked to be heard of. trouble: what was wrong in the last round; None where nothing was."""

    following: Following
    pods: Sequence[EnginePod]
    record: Record = field(default_factory=Record)
    trouble: NoSignals | None = None
    polled: bool = False


class SignalPoller:
    """Polls sources and pods. Made within the running event loop; `run` it, and `close` it.

    sources: those that an administrator allows, by name. observe: is told of every query and scrape. on_polled: is told
    of each plan for which a round brought something new.
    """

    def __init__(
        self,
        *,
        sources: Mapping[str, Source],
        clock: Clock,
        observe: QueryObserver,
        on_polled: Callable[[Key], None],
        real_now: Callable[[], datetime],
        user_agent: str = "servingplan",
    ) -> None:
        self._clock = clock
        self._on_polled = on_polled
        # One thread: the interpreter runs one at a time anyway, and the event loop then waits for no more than one.
        self._parser = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics-parser")
        self._clients = {
            name: PrometheusClient(
                name, source, parser=self._parser, observe=observe, now=real_now, user_agent=user_agent
            )
            for name, source in sources.items()
        }
        self._scraper = EngineScraper(parser=self._parser, observe=observe, now=real_now, user_agent=user_agent)
        self._followed: dict[Key, _Followed] = {}
        self._said: dict[str, Reason | None] = {}

    def heard(self, key: Key, following: Following, pods: Sequence[EnginePod], now: datetime) -> Heard:
        """What the plan's ready pods say at `now`, and follow it from now on. Never raises, never waits.

        A plan that follows another source than before starts with an empty record.
        """
        followed = self._followed.get(key)
        if followed is None or (followed.following.source, followed.following.path) != (
            following.source,
            following.path,
        ):
            followed = _Followed(following=following, pods=pods)
            self._followed[key] = followed
        followed.following, followed.pods = following, pods
        if following.source is not None and following.source not in self._clients:
            return self._unknown(following.source)
        if not followed.polled:
            return NOT_ASKED
        names = [pod.name for pod in pods]
        return last_heard(followed.record, followed.trouble, now=now, stale_after=following.stale_after, pods=names)

    def client(self, source: str) -> PrometheusClient | None:
        """The client of a source; None where the operator knows none of that name."""
        return self._clients.get(source)

    def forget(self, key: Key) -> None:
        """Follow a plan no more: it is gone, or has no feedback."""
        self._followed.pop(key, None)

    async def run(self) -> None:
        """Poll for ever, at even intervals. Who has not answered yet is not asked again, and keeps nobody else."""
        await poll_for_ever(self._due, self._round, clock=self._clock, what="ask")

    async def poll(self) -> None:
        """Ask every source that a plan follows, and the pods of plans that follow their pods, once; wait for all."""
        await asyncio.gather(*(self._round(asked, plans) for asked, plans in self._due().items()))

    async def close(self) -> None:
        """Close all connections, and end the thread."""
        for client in self._clients.values():
            await client.close()
        await self._scraper.close()
        self._parser.shutdown(wait=False, cancel_futures=True)

    # ---- one round ----

    def _due(self) -> dict[Asked, dict[Key, _Followed]]:
        """Who is to be asked, with the plans that hear of it."""
        due: dict[Asked, dict[Key, _Followed]] = {}
        for key, followed in self._followed.items():
            source = followed.following.source
            if source is None or source in self._clients:
                due.setdefault(key if source is None else source, {})[key] = followed
        return due

    async def _round(self, asked: Asked, plans: Mapping[Key, _Followed]) -> None:
        try:
            if isinstance(asked, Key):
                await self._scrape(asked, plans[asked])
            else:
                await self._ask(asked, plans)
        except Exception:  # noqa: BLE001  a defect here must not end the operator: the schedule goes on without signals
            _log.exception("a round of metrics of %s failed; it is repeated", asked)

    async def _ask(self, source: str, plans: Mapping[Key, _Followed]) -> None:
        limits = {followed.following.limits for followed in plans.values()}
        found = await self._clients[source].read(limits)
        self._say(source, found if isinstance(found, NoSignals) else None)
        slices = _Slices()
        for key, followed in plans.items():
            if isinstance(found, NoSignals):
                followed.trouble, followed.polled = found, True
            else:
                self._give(key, followed, _of_pods(found, key, followed))
            await slices.end()

    async def _scrape(self, key: Key, followed: _Followed) -> None:
        places, following = asyncio.Semaphore(PODS_OF_A_PLAN_AT_ONCE), followed.following

        async def one(pod: EnginePod) -> Reading | NoSignals:
            async with places:
                return await self._scrape_pod(pod, following)

        self._give(key, followed, await asyncio.gather(*(one(pod) for pod in followed.pods)))

    async def _scrape_pod(self, pod: EnginePod, following: Following) -> Reading | NoSignals:
        if pod.ip is None or pod.port is None:
            message = f"pod {pod.name} has no address, or not the port that the plan's scrape names"
            return NoSignals(reason=Reason.METRICS_MISSING, message=message)
        endpoint = Endpoint(pod=pod.name, ip=pod.ip, port=pod.port, path=following.path)
        return await self._scraper.read(endpoint, following.limits)

    def _give(self, key: Key, followed: _Followed, found: Collection[Reading | NoSignals]) -> None:
        """Add a round to a plan's record; instants become those of the plans' clock."""
        readings = [replace(one, at=self._clock.from_real(one.at)) for one in found if not isinstance(one, NoSignals)]
        born = {pod.name: pod.born for pod in followed.pods if pod.born is not None}
        before = followed.record.last
        followed.record = followed.record.heard(readings, self._clock.now(), born)
        followed.trouble = next((one for one in found if isinstance(one, NoSignals)), None)
        followed.polled = True
        if followed.record.last != before and self._followed.get(key) is followed:
            self._on_polled(key)

    # ---- what is wrong ----

    def _unknown(self, source: str) -> NoSignals:
        known = ", ".join(sorted(self._clients)) or "none"
        return NoSignals(
            reason=Reason.SOURCE_UNKNOWN,
            message=f"the operator knows no source {source!r} (defined: {known}); add it to its sources file",
        )

    def _say(self, source: str, trouble: NoSignals | None) -> None:
        """Log when a source begins to fail, fails otherwise, or is well again; not with every poll."""
        reason = trouble.reason if trouble is not None else None
        if reason == self._said.get(source):
            return
        self._said[source] = reason
        if trouble is not None:
            _log.warning("no signals (%s): %s; the schedule goes on", trouble.reason.value, trouble.message)
        else:
            _log.info("source %s answers", source)


class _Slices:
    """Gives the event loop back whenever it was kept for `SLICE_S`."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    async def end(self) -> None:
        if time.monotonic() - self._since_s >= SLICE_S:
            await asyncio.sleep(0)
            self._since_s = time.monotonic()


def _of_pods(found: Round, key: Key, followed: _Followed) -> list[Reading | NoSignals]:
    return [found.reading((key.namespace, pod.name), followed.following.limits) for pod in followed.pods]
