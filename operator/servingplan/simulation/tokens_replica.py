"""One replica on virtual time: when each request gets its first and its last token.

In: an engine's limits, what its steps cost, requests in order of arrival. Out: an `Answer` for each. An engine
schedules its next step when the last one ends, and whoever arrives in between waits for that; with async scheduling a
step is scheduled when the one before it begins, so who arrives then waits for both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from servingplan.planning.plan import Objectives
from servingplan.simulation.tokens import EngineLimits, StepCost, TokenRequest
from servingplan.simulation.tokens_scheduler import Batch, Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a request went: the instants of its first and its last token, and how often it was computed anew."""

    asked: TokenRequest
    first_s: float
    last_s: float
    preempted: int

    @property
    def ttft_s(self) -> float:
        """Time to first token."""
        return self.first_s - self.asked.arrival_s

    @property
    def tpot_s(self) -> float:
        """Time per output token after the first; 0 where there is only one."""
        return (self.last_s - self.first_s) / max(1, self.asked.output_tokens - 1)

    @property
    def e2el_s(self) -> float:
        """End-to-end latency."""
        return self.last_s - self.asked.arrival_s

    def good(self, objectives: Objectives) -> bool:
        """Whether every limit that is stated is kept."""
        values = {"ttft": self.ttft_s, "tpot": self.tpot_s, "e2el": self.e2el_s}
        return all(values[name] <= objective.limit.total_seconds() for name, objective in objectives.stated)


class Replica:
    """An engine and its clock. in_flight: requests that wait or run. idle_s: when its last step ended."""

    def __init__(self, limits: EngineLimits, cost: StepCost) -> None:
        self._ahead = limits.async_scheduling
        self._cost = cost
        self._scheduler = Scheduler(limits)
        self._batch, self._ends_s = Batch(), math.inf
        self._next: Batch | None = None
        self._first_s: dict[int, float] = {}
        self.in_flight = 0
        self.idle_s = 0.0

    def ask(self, asked: TokenRequest) -> None:
        """A request arrives; all steps that end before it have been followed. Raises ValueError as `Scheduler.add`."""
        self._scheduler.add(asked)
        self.in_flight += 1
        if self._ends_s == math.inf:
            self._begin(asked.arrival_s)

    def advance(self, until_s: float) -> list[Answer]:
        """Follow all steps that end before that instant; the requests that end with them."""
        answers: list[Answer] = []
        while self._ends_s < until_s:
            now_s = self._ends_s
            completed = self._scheduler.complete(self._batch)
            for request in completed.began:
                self._first_s[request.number] = now_s
            for request in completed.ended:
                first_s = self._first_s.pop(request.number)
                answers.append(Answer(asked=request.asked, first_s=first_s, last_s=now_s, preempted=request.preempted))
            self.idle_s = now_s
            self._begin(now_s)
        self.in_flight -= len(answers)
        return answers

    def _begin(self, now_s: float) -> None:
        """The next step, the one that was scheduled ahead if there is any; or a pause."""
        self._batch = self._next if self._next is not None and self._next.work else self._scheduler.schedule()
        self._next, self._ends_s = None, math.inf
        if not self._batch.work:
            return
        batch = self._batch
        self._ends_s = now_s + self._cost.seconds(batch.tokens - batch.sequences, batch.sequences, batch.context)
        if self._ahead:
            self._next = self._scheduler.schedule()


def answered(requests: Iterable[TokenRequest], limits: EngineLimits, cost: StepCost) -> list[Answer]:
    """What one replica answers to requests in order of arrival, in the order in which they end."""
    replica, answers = Replica(limits, cost), []
    for asked in requests:
        answers += replica.advance(asked.arrival_s)
        replica.ask(asked)
    return answers + replica.advance(math.inf)
