"""What an operator hears on virtual time: engines that share a load, and a source that is asked for what they counted.

In: the replicas, the load on them, instants. Out: `Heard`, made by the very record that the operator keeps of a plan.
A source that is gone is not asked: what was read grows stale, and then its trouble is what is heard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from servingplan.planning.observation import Stage
from servingplan.planning.reasons import Reason
from servingplan.planning.record import Record, last_heard
from servingplan.planning.signals import Heard, NoSignals, Reading
from servingplan.simulation.pods import Pods

GONE = NoSignals(reason=Reason.METRICS_UNREACHABLE, message="the source does not answer")
"""What is heard while a source is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What all replicas that serve do together. served_per_s: first tokens; running, waiting: requests now.

    lingering: requests that each replica still has which has left its Service.
    """

    served_per_s: float = 0.0
    running: float = 0.0
    waiting: float = 0.0
    lingering: float = 0.0


class Listening:
    """Listens to the engines of one plan, through a source that reads them and is asked.

    Each verb is for an instant, and they come in the order of time: `go_on`, then `scrape`, `poll` and `heard`.
    """

    def __init__(self, *, stale_after: timedelta, start: datetime) -> None:
        self._stale_after = stale_after
        self._record = Record()
        self._trouble: NoSignals | None = NoSignals(reason=Reason.METRICS_AWAITED, message="nobody was asked yet")
        self._served: dict[str, float] = defaultdict(float)
        self._at = start
        self._scraped: Sequence[Reading] = ()

    def go_on(self, pods: Pods, load: Load, now: datetime) -> None:
        """Let the engines serve until `now`; the replicas and the load were these since the last time."""
        serving = pods.serving(self._at)
        seconds, self._at = (now - self._at).total_seconds(), now
        for name in serving:
            self._served[name] += load.served_per_s * seconds / len(serving)

    def scrape(self, pods: Pods, load: Load, now: datetime, *, of: Collection[str] | None = None) -> Sequence[Reading]:
        """Let the source read every replica that answers; each one that serves has its share of the load.

        of: the names of those that it reads now; None: all. Returns what it read.
        """
        serving = pods.serving(now)
        shares = {name: 1 / len(serving) for name in serving}
        names = [pod.name for pod in pods.answering(now) if of is None or pod.name in of]
        self._scraped = tuple(self._reading(name, load, shares.get(name, 0.0), now) for name in names)
        return self._scraped

    def _reading(self, name: str, load: Load, share: float, now: datetime) -> Reading:
        served = self._served[name]
        return Reading(
            pod=name,
            at=now,
            running=load.running * share if share else load.lingering,
            waiting=load.waiting * share,
            arrived=served,
            finished=served,
            preemptions=0.0,
            rejections=0.0,
        )

    def poll(self, pods: Pods, now: datetime, said: Sequence[Reading] | None = None) -> None:
        """Ask the source. said: what it tells; None: what it read last."""
        born = {pod.name: pod.created for pod in pods.answering(now)}
        self._record = self._record.heard(self._scraped if said is None else said, now, born)
        self._trouble = None

    def gone(self) -> None:
        """Have asked a source that does not answer."""
        self._trouble = GONE

    def heard(self, pods: Pods, now: datetime) -> Heard:
        """What the ready replicas say at `now`."""
        ready = [each.name for each in pods.observed(now).in_stage(Stage.READY)]
        return last_heard(self._record, self._trouble, now=now, stale_after=self._stale_after, pods=ready)
