"""A script of some days for a plan: what arrives, when Prometheus is gone, and how fast time passes.

In: a plan. Out: what a test does to real engines and a real Prometheus, and what the simulated operator makes of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial

from e2e.support.loop import REQUEST_S
from e2e.support.prometheus import Prometheus
from servingplan.clients.queries import freshness
from servingplan.controller.clock import AcceleratedClock
from servingplan.planning.calendar import Interval
from servingplan.planning.demand import requirements
from servingplan.planning.lead import Stages
from servingplan.planning.observation import Scale
from servingplan.planning.plan import Plan
from servingplan.planning.signals import Reading
from servingplan.simulation.listening import Listening, Load
from servingplan.simulation.operated import Operated
from servingplan.simulation.pods import Pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What happens from `start` to `end`.

    arrivals: requests/s from each instant on. gone: while there is no Prometheus. starts_s: how long replicas take to
    be ready, in seconds of the machine. lingering: requests that a replica has which left the Service; none of them
    ends, so that its drain takes all the time that it may.
    """

    start: datetime
    end: datetime
    arrivals: Sequence[tuple[datetime, float]]
    gone: Sequence[Interval] = ()
    starts_s: float
    lingering: int

    def load(self, instant: datetime) -> Load:
        """What all engines do at an instant."""
        rate = next(rate for start, rate in reversed(self.arrivals) if start <= instant)
        return Load(served_per_s=rate, running=rate * REQUEST_S, lingering=self.lingering)


def as_planned(
    plan: Plan, heard: Sequence[Interval], but: Sequence[tuple[Interval, float]]
) -> list[tuple[datetime, float]]:
    """The arrivals that the plan's schedule expects, in requests/s, but for some intervals.

    heard: when somebody listens, in their order; else nothing arrives, for engines count one by one.
    """
    start, end = heard[0].start, heard[-1].end
    planned = requirements(plan, start, end)
    edges = {edge for one in (*heard, *(interval for interval, _ in but)) for edge in (one.start, one.end)}

    def rate(instant: datetime) -> float:
        if not any(instant in one for one in heard):
            return 0.0
        stated = planned.at(instant).rate
        assert stated is not None, "arrivals follow from rates, not from totals"
        return next((other for interval, other in but if instant in interval), float(stated))

    return [(instant, rate(instant)) for instant in sorted({*planned.times, *edges}) if start <= instant <= end]


def varying_clock(
    since: datetime, shows: datetime, busy: Sequence[tuple[Interval, int]], *, quiet: int
) -> AcceleratedClock:
    """A clock that goes by `quiet`, but in the busy intervals, each with its factor.

    since: a real instant, at which it shows `shows`, of the first interval. busy: disjoint, in their order.
    """
    speeds: dict[datetime, Fraction] = {}
    for interval, factor in busy:
        speeds |= {interval.start: Fraction(factor), interval.end: Fraction(quiet)}
    (start, factor), *then = speeds.items()
    begun = since - (shows - start) / int(factor)
    return AcceleratedClock(start=start, since=begun, factor=factor, then=tuple(then))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of the operator's queries: when it had all answers, and when each engine had last been read for them.

    All on the plan's clock; engines by the names of their pods, which say nothing more.
    """

    heard: datetime
    read: tuple[datetime, ...]


def rounds(prometheus: Prometheus, clock: AcceleratedClock) -> list[Round]:
    """When the operator asked a Prometheus, and what that knew then, as it tells afterwards.

    A poll each half-second of the machine has a phase that is no rule of anybody's, and a busy machine reads, and
    answers, late: the simulation is given both. What engines counted it is not.
    """
    took = {
        (each["metric"]["pod"], round(float(at), 3)): float(seconds)
        for each in prometheus.query("scrape_duration_seconds[2h]")
        for at, seconds in each["values"]
    }

    def read_by(asked: datetime, pod: str, at_s: float) -> float | None:
        """When a pod had last been read: a sample bears the time at which its scrape began, and is there at its end."""
        if at_s + took.get((pod, round(at_s, 3)), 0.0) <= asked.timestamp():
            return at_s
        before = datetime.fromtimestamp(at_s, UTC) - timedelta(milliseconds=1)
        return next((at for name, at in _stamps(prometheus, before) if name == pod), None)

    found = []
    for asked, answered in prometheus.answered(freshness({})):
        read = [read_by(asked, pod, at_s) for pod, at_s in _stamps(prometheus, asked)]
        instants = [clock.from_real(datetime.fromtimestamp(at_s, UTC)) for at_s in read if at_s is not None]
        found.append(Round(heard=clock.from_real(answered), read=tuple(instants)))
    return found


def _stamps(prometheus: Prometheus, at: datetime) -> list[tuple[str, float]]:
    """When each pod was last read, in seconds of the machine, as Prometheus says of an instant; by name."""
    return sorted((each["metric"]["pod"], float(each["value"][1])) for each in prometheus.query(freshness({}), at))


class Simulation:
    """The operator, its replicas and their engines on virtual time, through a script."""

    def __init__(self, plan: Plan, script: Script, clock: AcceleratedClock) -> None:
        assert plan.feedback is not None
        self._script, self._clock = script, clock
        self._operated, self._pods = Operated(plan), Pods(start=Stages())
        self._listening = Listening(stale_after=plan.feedback.stale_after, start=script.start)
        self._load = script.load(script.start)
        self.scales: list[Scale] = []

    def run(self, asked: Sequence[Round]) -> list[Scale]:
        """The changes of replicas until the script ends, given when the operator asked."""
        events: list[tuple[datetime, Callable[[datetime], None]]] = []
        for each in asked:
            said: list[Reading] = []
            events += [(read, partial(self._scrape, place=i, said=said)) for i, read in enumerate(each.read)]
            events.append((each.heard, partial(self._poll, said=said) if each.read else self._lose_source))
        events += [(start, self._change_load) for start, _ in self._script.arrivals]
        events += [(interval.start, self._lose_source) for interval in self._script.gone]
        now = self._script.start
        left = deque(sorted((each for each in events if each[0] >= now), key=lambda event: event[0]))
        while now < self._script.end:
            self._listening.go_on(self._pods, self._load, now)
            while left and left[0][0] <= now:
                left.popleft()[1](now)
            self._look(now)
            clock_alone = (self._operated.wake_at, self._pods.next_change(now), left[0][0] if left else None)
            now = min(instant for instant in clock_alone if instant is not None)
        return self.scales

    def _look(self, now: datetime) -> None:
        self._operated.step(self._pods.observed(now, self._listening.heard(self._pods, now)), now)
        ready = self._clock.from_real(self._clock.to_real(now) + timedelta(seconds=self._script.starts_s))
        self._pods = replace(self._pods, start=Stages(engine=ready - now)).carried_out(self._operated.orders, now)
        if self._operated.orders.scaled is not None:
            self.scales.append(self._operated.orders.scaled)

    def _scrape(self, now: datetime, *, place: int, said: list[Reading]) -> None:
        names = [pod.name for pod in self._pods.answering(now)][place : place + 1]
        said += self._listening.scrape(self._pods, self._load, now, of=names)

    def _poll(self, now: datetime, *, said: list[Reading]) -> None:
        self._listening.poll(self._pods, now, said)

    def _change_load(self, now: datetime) -> None:
        self._load = self._script.load(now)

    def _lose_source(self, _: datetime) -> None:
        self._listening.gone()
