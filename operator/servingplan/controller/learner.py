"""The learner: what the last days of each plan's arrivals teach, from the Prometheus that remembers them.

In: plans that ask for foresight, and their pods. Out: `Learned` of each, at once when a plan comes and then once a
night, or why not. Nothing of it is kept in the cluster: after a restart it is learned again. One plan of a source at a
time, so that the source has other things to do; learning itself runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

from servingplan.clients.prometheus import PrometheusClient
from servingplan.clients.queries import Matchers, arrived
from servingplan.controller.clock import Clock
from servingplan.controller.polling import poll_for_ever
from servingplan.controller.signals import EnginePod
from servingplan.controller.store import Key
from servingplan.planning.calendar import local_date
from servingplan.planning.demand import first_instant
from servingplan.planning.learned import MINUTE, Learned, NotLearned, Past
from servingplan.planning.learning import first_day, learn
from servingplan.planning.plan import Plan, PrometheusSource
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals

AFTER_MIDNIGHT = timedelta(minutes=5)
"""The last minutes of a day are scraped and stored by then."""

SPREAD = timedelta(minutes=50)
"""Within so much after that, plans learn at times of their own: a source is not asked for all at once."""

AGAIN_AFTER = timedelta(minutes=10)
"""A source that failed is asked again; what was learned before stays in use."""

_log = logging.getLogger(__name__)


AWAITED = NotLearned(reason=Reason.HISTORY_AWAITED, message="the last days of arrivals are not read yet")
"""As after a restart: in a moment it is learned, or known why not."""


@dataclass(slots=True)
class _Pupil:
    """A plan that asks for foresight.

    start: how long a replica takes. pods: patterns of its pods' names. due: when to learn next; None while nobody
    knows what its pods are called.
    """

    plan: Plan
    start: timedelta
    pods: frozenset[str] = frozenset()
    due: datetime | None = None
    learned: Learned | None = None
    trouble: NotLearned | None = AWAITED


class Learner:
    """Learns for plans. `run` it within the event loop, and `close` it.

    client: the client of a source, by its name. on_learned: is told of each plan of which something new is known.
    """

    def __init__(
        self, *, client: Callable[[str], PrometheusClient | None], clock: Clock, on_learned: Callable[[Key], None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._on_learned = on_learned
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="learner")
        self._pupils: dict[Key, _Pupil] = {}

    def known(
        self, key: Key, plan: Plan, *, start: timedelta, pods: Sequence[EnginePod]
    ) -> tuple[Learned | None, NotLearned | None]:
        """What is learned of a plan, and why not, or why nothing newer; and learn for it from now on. Never waits.

        start: how long a replica takes. What changes of the plan itself is learned at once, everything else at night.
        """
        pupil = self._pupils.setdefault(key, _Pupil(plan=plan, start=start))
        named = frozenset(pod.alike for pod in pods) or pupil.pods
        if _taught(plan) != _taught(pupil.plan) or (named and not pupil.pods):
            pupil.due = self._clock.now()
        pupil.plan, pupil.start, pupil.pods = plan, start, named
        return pupil.learned, pupil.trouble

    def forget(self, key: Key) -> None:
        """Learn for a plan no more: it is gone, or asks for no foresight."""
        self._pupils.pop(key, None)

    async def run(self) -> None:
        """Learn for ever. A source that is slow keeps nobody else."""
        await poll_for_ever(self._due, self._lessons, clock=self._clock, what="learn from")

    async def learn(self) -> None:
        """Learn all that is due, once; wait for all."""
        await asyncio.gather(*(self._lessons(source, keys) for source, keys in self._due().items()))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ---- one lesson ----

    def _due(self) -> dict[str, list[Key]]:
        """The plans that are due, by source."""
        now, due = self._clock.now(), dict[str, list[Key]]()
        for key, pupil in sorted(self._pupils.items()):
            source = _source(pupil.plan)
            if pupil.due is not None and pupil.due <= now and source is not None:
                due.setdefault(source, []).append(key)
        return due

    async def _lessons(self, source: str, keys: Sequence[Key]) -> None:
        """One plan after the other. Where a source gives no answer at all, nobody else waits for one."""
        client, silent = self._client(source), False
        for key in keys:
            pupil = self._pupils.get(key)
            if client is None or pupil is None:
                continue  # an unknown source is told by who listens to it
            due = pupil.due
            if not silent:
                try:
                    silent = await self._lesson(key, pupil, client) is Reason.METRICS_UNREACHABLE
                except Exception:  # noqa: BLE001  a defect here must not end the operator: the other signals go on
                    _log.exception("%s: its past could not be learned; it is tried again", key)
            if pupil.due == due:
                pupil.due = self._clock.now() + AGAIN_AFTER

    async def _lesson(self, key: Key, pupil: _Pupil, client: PrometheusClient) -> Reason | None:
        """Ask for the last days of one plan and learn from them. Returns the reason for which nothing could be read."""
        now, plan, before = self._clock.now(), pupil.plan, (pupil.learned, pupil.trouble)
        day = local_date(now, plan.zone)
        begin = first_instant(plan, first_day(day))
        first, second = (self._clock.to_real(begin + n * MINUTE).timestamp() for n in (1, 2))
        found = await client.over_time(
            arrived(_matchers(key, pupil, client), f"{round((second - first) * 1000)}ms"),
            start_s=first,
            step_s=second - first,
            count=(now - begin) // MINUTE,
        )
        if isinstance(found, NoSignals):
            pupil.trouble = NotLearned(reason=Reason.HISTORY_UNREADABLE, message=found.message)
            pupil.due = now + AGAIN_AFTER
        else:
            work = partial(_learned, plan, found, begin=begin, start=pupil.start, day=day)
            pupil.learned = await asyncio.get_running_loop().run_in_executor(self._thread, work)
            pupil.trouble = None
            if _taught(pupil.plan) == _taught(plan):
                pupil.due = _night(key, plan, now)
            _log.info("%s: learned from %.1f days of arrivals", key, pupil.learned.days)
        if (pupil.learned, pupil.trouble) != before and self._pupils.get(key) is pupil:
            self._on_learned(key)
        return found.reason if isinstance(found, NoSignals) else None


def _learned(plan: Plan, counts: Sequence[float], *, begin: datetime, start: timedelta, day: date) -> Learned:
    """Runs in the learner's thread. counts: requests of each minute from `begin` on."""
    rates = array("f", (count / MINUTE.total_seconds() for count in counts))
    return learn(plan, Past(start=begin, rates=rates), start=start, day=day)


def _matchers(key: Key, pupil: _Pupil, client: PrometheusClient) -> Matchers:
    """What selects the series of the plan's pods, those that are gone included."""
    return {**client.matchers, "namespace": key.namespace, "pod": re.compile("|".join(sorted(pupil.pods)))}


def _taught(plan: Plan) -> tuple[object, ...]:
    """What of a plan says what is learned."""
    return (plan.capacity, plan.zone, plan.calendars, plan.lead, plan.foresight, _source(plan))


def _source(plan: Plan) -> str | None:
    source = None if plan.feedback is None else plan.feedback.source
    return source.name if isinstance(source, PrometheusSource) else None


def _night(key: Key, plan: Plan, now: datetime) -> datetime:
    """When a plan learns next: after its local midnight, at a time of its own that stays the same."""
    midnight = first_instant(plan, local_date(now, plan.zone) + timedelta(days=1))
    place = zlib.crc32(str(key).encode()) / 2**32
    return midnight + AFTER_MIDNIGHT + place * SPREAD
