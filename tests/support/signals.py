"""Builders of readings and signals, and a small fleet of engines that counts as vLLM does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from servingplan.planning.observation import Excess, History, Observation, Raised
from servingplan.planning.plan import Feedback, Plan, PrometheusSource, RaiseWhen
from servingplan.planning.record import Record
from servingplan.planning.signals import Lasting, Reading, Share, Signals, Within
from support.plans import a_plan

SCRAPE = timedelta(seconds=15)


def a_feedback(**changes: Any) -> Feedback:
    """Feedback from a Prometheus, with the defaults and an in-flight limit of 40."""
    feedback = Feedback(
        source=PrometheusSource(name="default"),
        raise_when=RaiseWhen(in_flight_per_replica=Decimal(40)),
        max_extra=3,
    )
    return replace(feedback, **changes)


def a_checked_plan(**changes: Any) -> Plan:
    """The worked example with feedback."""
    return a_plan(**{"feedback": a_feedback(), **changes})


def a_reading(at: datetime, **changes: Any) -> Reading:
    """An idle engine that has counted nothing."""
    reading = Reading(
        pod="a",
        at=at,
        running=0.0,
        waiting=0.0,
        arrived=0.0,
        finished=0.0,
        preemptions=0.0,
        rejections=0.0,
        prompts=0.0,
        prompt_tokens=0.0,
        ttft=Within(below=0.0, above=0.0, count=0.0),
        tpot=Within(below=0.0, above=0.0, count=0.0),
        queue=Within(below=0.0, above=0.0, count=0.0),
    )
    return replace(reading, **changes)


def steady(value: float) -> Lasting:
    """A figure that was the same in every part of its window."""
    return Lasting(value=value, least=value)


def attained(share: float, count: float = 1000) -> Share:
    """An attainment that was the same in every half-minute, with its limit on an edge."""
    return Share(at_least=share, at_most=share, best=share, count=count)


def some_signals(at: datetime, **changes: Any) -> Signals:
    """Five calm replicas that serve the working day's 17 requests/s."""
    pods = [f"p{i}" for i in range(5)]
    signals = Signals(
        at=at,
        arrivals_2m=steady(17),
        arrivals_10m=steady(17),
        reach=timedelta(seconds=20),
        dispersion=1.0,
        rejections=steady(0),
        preemption_share=steady(0),
        waiting=steady(0),
        waiting_most=0.0,
        in_flight=dict.fromkeys(pods, 20.0),
        in_flight_mean=steady(20),
        ttft=attained(0.999),
        tpot=attained(0.999),
        queue=attained(0.999),
        prompt_mean=880.0,
        kv_usage=0.4,
        first_heard=dict.fromkeys(pods, at - timedelta(hours=1)),
    )
    return replace(signals, **changes)


@dataclass(kw_only=True)
class Fleet:
    """Engines that share `rate` requests/s evenly, and a poll of all of them every 15 s.

    capacity: what one serves; what is more than that waits. latency_s: how long a request runs.
    """

    now: datetime
    pods: int
    rate: Callable[[datetime], float]
    capacity: float = 5.0
    latency_s: float = 8.0
    prompt_tokens: float = 880.0
    record: Record = field(default_factory=Record)
    engines: dict[str, Reading] = field(default_factory=dict)
    arrived: float = 0.0

    def run(self, until: datetime, each: Callable[[Fleet], None] | None = None) -> None:
        """Live second by second; at every poll give all readings to the record, then call `each`."""
        while self.now < until:
            for _ in range(15):
                self.now += timedelta(seconds=1)
                self._second()
            self.record = self.record.heard(list(self.engines.values()), self.now)
            if each is not None:
                each(self)

    def scale(self, names: Mapping[str, Any] | list[str]) -> None:
        """Have exactly these engines; new ones begin idle."""
        self.engines = {name: self.engines.get(name, a_reading(self.now, pod=name)) for name in names}

    def _second(self) -> None:
        if not self.engines:
            self.scale([f"p{i}" for i in range(self.pods)])
        offered = self.rate(self.now) / len(self.engines)
        for name, engine in self.engines.items():
            served = min(self.capacity * 1.3, engine.waiting + offered)
            late = served if engine.waiting > self.capacity else 0.0
            self.engines[name] = replace(
                engine,
                at=self.now,
                waiting=engine.waiting + offered - served,
                running=engine.running + (served * self.latency_s - engine.running) / self.latency_s,
                arrived=engine.arrived + served,
                finished=engine.finished + served,
                prompts=(engine.prompts or 0.0) + served,
                prompt_tokens=(engine.prompt_tokens or 0.0) + served * self.prompt_tokens,
                ttft=_observed(engine.ttft, served, late),
                tpot=_observed(engine.tpot, served, late),
            )

    def signals(self) -> Any:
        """What all engines say now."""
        return self.record.signals(self.now, timedelta(seconds=90), list(self.engines))


def _observed(before: Within | None, count: float, missed: float) -> Within:
    assert before is not None
    good = before.below + count - missed
    return Within(below=good, above=good, count=before.count + count)


def an_observation(ready: int = 5, **changes: Any) -> Observation:
    """A target whose replicas are all ready."""
    return replace(Observation(current=ready, ready=ready, available=ready), **changes)


def a_raise(since: datetime, **changes: Any) -> Raised:
    """One replica raised above five."""
    return replace(Raised(extra=1, replicas=6, since=since, wanted_at=since), **changes)


def an_excess(since: datetime, **changes: Any) -> Excess:
    """24 requests/s where 18 are planned."""
    excess = Excess(since=since, seen_at=since, rate=Decimal(24), planned=Decimal(18), source="window working-day")
    return replace(excess, **changes)


def remembering(raised: Raised | None = None, excess: Excess | None = None) -> History:
    """A history of feedback alone."""
    return History(raised=raised, excess=excess)
