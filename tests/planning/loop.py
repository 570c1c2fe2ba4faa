"""A small operator around `decide`: it sleeps until `next_change_at`, applies, and remembers what status remembers.

Replicas take `start_time` to be ready. Nothing else is simulated: the loop holds no rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from servingplan.planning.decision import Decision, decide
from servingplan.planning.observation import History, Observation, Scale
from servingplan.planning.plan import Plan

BERLIN = ZoneInfo("Europe/Berlin")


def berlin(text: str) -> datetime:
    """``2026-12-01T08:00`` of Berlin's clock as an instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).astimezone(UTC)


@dataclass(kw_only=True)
class Loop:
    """The operator and its target."""

    plan: Plan
    now: datetime
    current: int | None
    start_time: timedelta = timedelta(minutes=11)
    maximum: int | None = None
    history: History = field(default_factory=History)
    writes: list[Scale] = field(default_factory=list)
    verified_at: list[datetime] = field(default_factory=list)
    decisions: int = 0

    def __post_init__(self) -> None:
        self.verified_at = [self.now] * (self.current or 0)

    @property
    def ready(self) -> int:
        """How many replicas are verified now."""
        return sum(at <= self.now for at in self.verified_at)

    def scale(self, replicas: int) -> None:
        """Set replicas, as a write of anybody would: the youngest leave, new ones start now."""
        self.verified_at = self.verified_at[:replicas]
        self.verified_at += [self.now + self.start_time] * (replicas - len(self.verified_at))
        self.current = replicas

    def edit(self, **changes: object) -> None:
        """Edit the plan."""
        self.plan = replace(self.plan, **changes)  # type: ignore[arg-type]

    def decide(self) -> Decision:
        """What the plan wants now."""
        observation = Observation(current=self.current, ready=self.ready, maximum=self.maximum)
        return decide(self.plan, observation, self.history, self.now)

    def step(self) -> Decision:
        """Decide, apply and remember once."""
        self.decisions += 1
        decision = self.decide()
        last = self.history.last_scale
        if decision.desired != self.current and not decision.suspended:
            last = Scale(time=self.now, before=self.current or 0, after=decision.desired, because=decision.because)
            self.writes.append(last)
            self.scale(decision.desired)
        self.history = History(last_scale=last, ramp=decision.ramp)
        return decision

    def run(self, until: datetime, events: Mapping[datetime, Callable[[Loop], None]] | None = None) -> None:
        """Live until an instant; each event happens at its own, and the operator looks right after it."""
        left = dict(sorted((events or {}).items()))
        while True:
            for at in [at for at in left if at <= self.now]:
                left.pop(at)(self)
            decision = self.step()
            following = min(decision.next_change_at, *left, until) if left else min(decision.next_change_at, until)
            assert following > self.now or following == until
            self.now = following
            if self.now >= until:
                return

    @property
    def levels(self) -> list[tuple[str, int]]:
        """The writes as ``("Tue 07:48:00", 5)`` on Berlin's clock."""
        return [(f"{w.time.astimezone(BERLIN):%a %H:%M:%S}", w.after) for w in self.writes]

    @property
    def lowered(self) -> bool:
        """Has any write lowered replicas?"""
        return any(w.after < w.before for w in self.writes)
