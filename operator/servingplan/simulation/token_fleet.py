"""Replicas token by token: who starts, serves and drains, and which of them a request goes to.

In: requests in order of arrival, and how many replicas are wanted from which instant on. Out: an `Answer` for each
request, and the seconds that replicas started, served and drained. The rules are those of the fluid `fleet`: a replica
that is wanted serves after its start; what starts is cancelled before what serves leaves, the newest first; who leaves
takes no more requests and ends those that it has. A raise brings back who drains before it starts another. A request
goes to the replica with the fewest in flight.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_replica import Answer, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """So many replicas from `at_s` on."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """What came of it. Seconds of replicas that started, took requests and drained, up to the last answer."""

    answers: Sequence[Answer]
    starting_s: float
    serving_s: float
    draining_s: float


class TokenFleet:
    """Replicas of one engine. The first ones that are wanted serve at once."""

    def __init__(self, limits: EngineLimits, cost: StepCost, *, start_s: float, first: Wanted) -> None:
        self._limits, self._cost, self._start_s = limits, cost, start_s
        self._now_s = first.at_s
        self._serving = [Replica(limits, cost) for _ in range(_at_least_one(first))]
        self._ready_s: deque[float] = deque()
        self._draining: list[_Draining] = []
        self._starting_sum = self._serving_sum = self._draining_sum = 0.0
        self._answers: list[Answer] = []

    def want(self, wanted: Wanted) -> None:
        """From now on, so many replicas. Raises ValueError for none."""
        self._advance(wanted.at_s)
        more = _at_least_one(wanted) - len(self._serving) - len(self._ready_s)
        while more > 0 and self._draining:
            self._bring_back()
            more -= 1
        for _ in range(more):
            self._ready_s.append(self._now_s + self._start_s)
        while more < 0 and self._ready_s:
            self._ready_s.pop()
            more += 1
        for _ in range(-more):
            self._drain_one()

    def ask(self, asked: TokenRequest) -> None:
        """A request, for the replica with the fewest in flight; of equals, the one that has served longest."""
        self._advance(asked.arrival_s)
        min(self._serving, key=_in_flight).ask(asked)

    def closed(self) -> FleetRun:
        """All requests are answered."""
        for replica in (*self._serving, *(leaving.replica for leaving in self._draining)):
            self._answers += replica.advance(math.inf)
        last_s = max((answer.last_s for answer in self._answers), default=self._now_s)
        self._pass_time(max(self._now_s, last_s))
        for leaving in self._draining:
            self._draining_sum += leaving.replica.idle_s - leaving.since_s
        return FleetRun(
            answers=self._answers,
            starting_s=self._starting_sum,
            serving_s=self._serving_sum,
            draining_s=self._draining_sum,
        )

    def _advance(self, now_s: float) -> None:
        while self._ready_s and self._ready_s[0] <= now_s:
            self._pass_time(self._ready_s[0])
            self._ready_s.popleft()
            self._serving.append(Replica(self._limits, self._cost))
        self._pass_time(now_s)
        for replica in self._serving:
            self._answers += replica.advance(now_s)
        if self._draining:
            self._follow_those_that_drain(now_s)

    def _pass_time(self, now_s: float) -> None:
        passed = now_s - self._now_s
        self._starting_sum += passed * len(self._ready_s)
        self._serving_sum += passed * len(self._serving)
        self._now_s = now_s

    def _follow_those_that_drain(self, now_s: float) -> None:
        for leaving in self._draining:
            self._answers += leaving.replica.advance(now_s)
            if not leaving.replica.in_flight:
                self._draining_sum += leaving.replica.idle_s - leaving.since_s
        self._draining = [leaving for leaving in self._draining if leaving.replica.in_flight]

    def _drain_one(self) -> None:
        """The least busy one leaves; of equals, the newest."""
        least = min(reversed(self._serving), key=_in_flight)
        self._serving.remove(least)
        if least.in_flight:
            self._draining.append(_Draining(replica=least, since_s=self._now_s))

    def _bring_back(self) -> None:
        """The one that began to drain last serves again."""
        leaving = self._draining.pop()
        self._draining_sum += self._now_s - leaving.since_s
        self._serving.append(leaving.replica)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draining:
    replica: Replica
    since_s: float


def followed(
    requests: Iterable[TokenRequest], wanted: Sequence[Wanted], limits: EngineLimits, cost: StepCost, *, start_s: float
) -> FleetRun:
    """A whole run. wanted: in order of time, the first one from before the first request on."""
    fleet = TokenFleet(limits, cost, start_s=start_s, first=wanted[0])
    changes = deque(wanted[1:])
    for asked in requests:
        while changes and changes[0].at_s <= asked.arrival_s:
            fleet.want(changes.popleft())
        fleet.ask(asked)
    for change in changes:
        fleet.want(change)
    return fleet.closed()


def _in_flight(replica: Replica) -> int:
    return replica.in_flight


def _at_least_one(wanted: Wanted) -> int:
    if wanted.replicas < 1:
        raise ValueError(f"{wanted.replicas} replicas at {wanted.at_s:g} s: somebody has to take the requests")
    return wanted.replicas
