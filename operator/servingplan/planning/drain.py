"""Drain: what a fall does to replicas, in the order that cuts no request: out of the Service, idle, first to go.

In: the replicas as they are, how many are wanted, what the engines say, and since when each one that drains was seen
idle. Out: a `Drain`: the marks to set on replicas, those that are waited for, and how far replicas may be lowered now.
Which replicas leave is `planning.victims`. Pure: `controller.drain` sets the marks on pods, `simulation.pods` on its
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from servingplan.planning.observation import Draining, Observation, Replica, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.signals import Heard, Signals
from servingplan.planning.victims import leaving, returning

SCRAPE = timedelta(seconds=15)
"""Two idle readings must lie this far apart, on the plan's clock: the interval at which engines are read. A single one
may fall between two requests of a client that still has the pod's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainingReplica:
    """A replica that drains. until: when it may leave at the latest. in_flight: None where nobody knows."""

    name: str
    since: datetime
    until: datetime
    in_flight: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a replica is to be from now on. draining: None where it serves again."""

    replica: Replica
    draining: Draining | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The first and the last of readings in a row at which a replica had nothing in flight."""

    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Where a fall stands.

    may_lower_to: replicas that may be written now, once the marks are set: what is desired as soon as all that leave
    are idle, else what runs now. draining: those that are waited for, by name. idle: what the next look is given.
    """

    may_lower_to: int
    marks: tuple[Mark, ...] = ()
    draining: tuple[DrainingReplica, ...] = ()
    idle: Mapping[str, Idle] = field(default_factory=dict)

    @property
    def wait_until(self) -> datetime | None:
        """When waiting ends by the clock alone; None where nothing is waited for."""
        return min((each.until for each in self.draining), default=None)


def drain(
    plan: Plan,
    observation: Observation,
    *,
    desired: int,
    timeout: timedelta | None,
    idle: Mapping[str, Idle],
    now: datetime,
) -> Drain:
    """The next step of a fall to `desired`; everything serves again where that is no fall.

    desired: what would be written now; what runs where nothing may be lowered. timeout: how long a replica may drain;
    None where those of such a target cannot. Where no engine is heard nobody can tell that a replica is idle, and
    waiting for the whole timeout would only repeat what preStop, vLLM's shutdown timeout and the grace period give it
    anyway.
    """
    if timeout is None:
        return Drain(may_lower_to=desired)
    if plan.feedback is None:
        return Drain(may_lower_to=desired, marks=tuple(_served_again(returning(observation))))
    current, heard = observation.current or 0, observation.heard
    in_flight = heard.in_flight if isinstance(heard, Signals) else {}
    victims = leaving(observation, desired, in_flight) if desired < current else ()
    idle = _still_idle(idle, victims, heard)
    waits = {each.name: wait for each in victims if (wait := _wait(each, timeout, idle, in_flight, now)) is not None}
    return Drain(
        may_lower_to=current if waits else desired,
        marks=(*_served_again(returning(observation, victims)), *_advanced(victims, waits, now)),
        draining=tuple(waits[name] for name in sorted(waits)),
        idle=idle,
    )


def drains(observation: Observation) -> bool:
    """Whether a replica has left its Service and is waited for."""
    return any(replica.draining is not None for replica in observation.replicas)


def _served_again(back: Sequence[Replica]) -> Iterator[Mark]:
    return (Mark(replica=each, draining=None) for each in back)


def _advanced(victims: Sequence[Replica], waits: Mapping[str, DrainingReplica], now: datetime) -> Iterator[Mark]:
    """A mark where a victim's is not what it should be: it drains, or is the first to go."""
    for victim in victims:
        known, released = victim.draining, victim.name not in waits
        if known is None or (released and not known.released):
            since = now if known is None else known.since
            yield Mark(replica=victim, draining=Draining(since=since, released=released))


def _wait(
    victim: Replica, timeout: timedelta, idle: Mapping[str, Idle], in_flight: Mapping[str, float], now: datetime
) -> DrainingReplica | None:
    """What a victim is still waited for; None where it may leave.

    A replica that is not ready takes no requests, and Kubernetes would remove it first in any case.
    """
    if victim.stage is not Stage.READY:
        return None
    since = now if victim.draining is None else victim.draining.since
    until = since + timeout
    if victim.draining is not None and (victim.draining.released or until <= now or _idle_twice(idle, victim)):
        return None
    return DrainingReplica(name=victim.name, since=since, until=until, in_flight=in_flight.get(victim.name))


def _still_idle(idle: Mapping[str, Idle], victims: Sequence[Replica], heard: Heard | None) -> dict[str, Idle]:
    """From which to which reading each draining replica is idle; one that is busy, or silent, starts again."""
    if not isinstance(heard, Signals):
        return {}
    found: dict[str, Idle] = {}
    for victim in victims:
        # A reading from before the drain began says nothing about what came in until then.
        began = victim.draining is not None and victim.draining.since <= heard.at
        if began and heard.in_flight.get(victim.name) == 0:
            first = idle[victim.name].first if victim.name in idle else heard.at
            found[victim.name] = Idle(first=first, last=heard.at)
    return found


def _idle_twice(idle: Mapping[str, Idle], victim: Replica) -> bool:
    known = idle.get(victim.name)
    return known is not None and known.last - known.first >= SCRAPE
