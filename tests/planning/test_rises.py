"""Rises: what is a sample and what is not, across restarts, losses and falls; and what is stuck."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from servingplan.planning.decision import decide
from servingplan.planning.lead import Rises, effective_lead
from servingplan.planning.observation import LOST, History, Milestones, Observation, Replica, Scale, Stage, Trouble
from servingplan.planning.plan import Lead
from servingplan.planning.reasons import Reason
from servingplan.planning.rises import advance, stuck, stuck_from
from support.plans import a_plan

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
START = datetime(2026, 12, 1, 6, 48, tzinfo=UTC)
"""Tuesday 07:48 in Berlin: twelve minutes before the working day."""


def a_replica(name, *, created, ready=None, scheduled=None, started=None, stage=None, **changes):
    found = stage or (Stage.READY if ready is not None else Stage.ENGINE)
    milestones = Milestones(scheduled=scheduled, started=started, ready=ready)
    return Replica(name=name, stage=found, since=created, node=f"on-{name}", milestones=milestones, **changes)


@dataclass(kw_only=True)
class Target:
    """A target with replicas, and an operator that looks at it and remembers rises; `crash` loses what is not noted."""

    now: datetime = START
    replicas: dict[str, Replica] = field(default_factory=dict)
    rises: Rises = field(default_factory=Rises)
    noted: Scale | None = None
    current: int = 0
    fingerprint: str = "engine-1"
    made: int = 0

    def create(self, count, *, at=None):
        """Replicas begin to start."""
        for _ in range(count):
            self.made += 1
            name = f"chat-{self.made}"
            self.replicas[name] = a_replica(name, created=(at or self.now).replace(microsecond=0))

    def verify(self, *names, at=None):
        """Replicas become ready."""
        for name in names or list(self.replicas):
            known = self.replicas[name]
            if known.milestones.ready is None:
                ready = at or self.now
                self.replicas[name] = replace(known, stage=Stage.READY, milestones=Milestones(ready=ready))

    def look(self, *, scale=None, written=False):
        """One reconcile; `scale` is the last change of replicas as it now counts, written now or found."""
        last = scale or self.noted
        observation = Observation(current=self.current, replicas=tuple(self.replicas.values()))
        self.rises = advance(
            self.rises,
            fingerprint=self.fingerprint,
            remembered=self.noted,
            last_scale=last,
            written=written,
            observation=observation,
            now=self.now,
            grain=SECOND,
        )
        self.noted = last

    def scale(self, to):
        """The operator sets replicas and notes it; the replicas of a rise appear right after."""
        scale = Scale(time=self.now, before=self.current, after=to, because="a test")
        added, self.current = to - self.current, to
        self.look(scale=scale, written=True)
        self.create(max(0, added))

    def later(self, minutes):
        """Time passes, and the operator looks."""
        self.now += minutes * MINUTE
        self.look()

    @property
    def took(self):
        return [sample.took / MINUTE for sample in self.rises.samples]


def a_target(running=2):
    target = Target()
    target.create(running, at=START - timedelta(days=1))
    target.verify(at=START - timedelta(hours=23))
    target.current = running
    target.look()
    return target


def test_a_rise_is_a_decision_up_to_the_last_of_its_replicas() -> None:
    target = a_target()
    target.scale(5)
    target.now += 9 * MINUTE
    target.verify("chat-3", "chat-4")
    target.look()
    assert (target.took, len(target.rises.running)) == ([], 1)
    target.now += 2 * MINUTE
    target.verify("chat-5")
    target.look()
    assert (target.took, target.rises.running) == ([11.0], ())


def test_a_rise_is_told_apart_by_stage() -> None:
    target = a_target()
    target.scale(3)
    target.replicas["chat-3"] = a_replica(
        "chat-3",
        created=START,
        scheduled=START + 1 * MINUTE,
        started=START + 4 * MINUTE,
        ready=START + 11 * MINUTE,
    )
    target.later(12)
    stages = target.rises.samples[0].stages
    assert (stages.scheduling, stages.pulling, stages.engine) == (1 * MINUTE, 3 * MINUTE, 7 * MINUTE)


def test_a_look_that_comes_late_measures_by_the_pods_own_time() -> None:
    target = a_target()
    target.scale(5)
    target.verify(at=START + 10 * MINUTE)
    target.later(45)
    assert target.took == [10.0]


def test_a_rise_is_counted_once_however_often_one_looks() -> None:
    target = a_target()
    target.scale(5)
    target.verify(at=START + 10 * MINUTE)
    for _ in range(3):
        target.later(11)
    assert target.took == [10.0]


@pytest.mark.parametrize("created", [True, False], ids=["after its replicas appeared", "before they did"])
def test_a_stop_between_the_write_and_its_note_loses_no_sample(created) -> None:
    target = a_target()
    target.current = 5
    target.now += 20 * SECOND
    if created:
        target.create(3, at=START + 1 * SECOND)
    target.look(scale=Scale(time=target.now, before=2, after=5, because="found after the restart"))
    if not created:
        target.create(3)
    target.verify(at=START + 10 * MINUTE)
    target.later(12)
    target.later(12)
    assert target.took == [pytest.approx(10.0, abs=0.4)]


def test_a_stop_in_the_middle_of_a_rise_loses_nothing() -> None:
    target = a_target()
    target.scale(5)
    target.later(3)
    restarted = Target(now=START + 40 * MINUTE, replicas=target.replicas, rises=target.rises, noted=target.noted)
    restarted.current = 5
    restarted.verify(at=START + 10 * MINUTE)
    restarted.look()
    assert restarted.took == [10.0]


def test_two_rises_one_after_the_other_are_two_samples() -> None:
    target = a_target()
    target.scale(4)
    target.later(6)
    target.scale(5)
    target.verify("chat-3", "chat-4", at=START + 10 * MINUTE)
    target.later(5)
    assert target.took == [10.0]
    target.verify("chat-5", at=START + 18 * MINUTE)
    target.later(8)
    assert target.took == [10.0, 12.0]


def test_a_fall_interrupts_a_rise() -> None:
    target = a_target()
    target.scale(5)
    target.later(4)
    del target.replicas["chat-5"]
    target.scale(4)
    target.verify()
    target.later(4)
    assert (target.took, target.rises.running) == ([], ())


def test_replicas_lowered_by_somebody_else_interrupt_a_rise() -> None:
    target = a_target()
    target.scale(5)
    del target.replicas["chat-5"]
    target.current = 4
    target.later(4)
    assert target.rises.running == ()


def test_another_engine_starts_anew() -> None:
    target = a_target()
    target.scale(5)
    target.verify(at=START + 10 * MINUTE)
    target.later(11)
    target.fingerprint = "engine-2"
    target.later(1)
    assert target.rises == Rises(fingerprint="engine-2")


def test_a_replica_that_comes_back_after_a_node_loss_is_no_rise() -> None:
    target = a_target(5)
    del target.replicas["chat-1"]
    target.create(1)
    target.later(10)
    target.verify()
    target.later(1)
    assert target.rises == Rises(fingerprint="engine-1")


def test_an_old_replica_that_is_lost_during_a_rise_does_not_lengthen_it() -> None:
    target = a_target()
    target.scale(5)
    target.later(8)
    del target.replicas["chat-1"]
    target.create(1)
    target.verify("chat-3", "chat-4", "chat-5", at=START + 10 * MINUTE)
    target.later(3)
    assert target.took == [10.0]


def test_a_rise_that_loses_a_replica_of_its_own_is_no_sample() -> None:
    target = a_target()
    target.scale(5)
    target.later(8)
    del target.replicas["chat-4"]
    target.create(1)
    target.later(1)
    target.verify()
    target.later(9)
    assert (target.took, target.rises.running) == ([], ())


def test_a_rise_without_replicas_of_its_own_is_no_sample() -> None:
    target = a_target(5)
    target.current = 2  # an autoscaler's minimum, which has long been exceeded
    target.now += MINUTE
    target.current = 5
    target.look(scale=Scale(time=target.now, before=2, after=5, because="floor mode"), written=True)
    target.later(6)
    assert (target.took, target.rises.running) == ([], ())


def test_what_was_taken_over_is_no_rise() -> None:
    target = a_target()
    target.look(scale=Scale(time=target.now, before=2, after=2, because="taken over"))
    assert target.rises.running == ()


def test_only_so_many_rises_are_remembered() -> None:
    target = a_target(1)
    for minutes in range(1, 26):
        target.scale(2)
        target.verify(at=target.now + minutes * MINUTE)
        target.later(30)
        del target.replicas[f"chat-{target.made}"]
        target.scale(1)
    assert target.took == [float(minutes) for minutes in range(7, 26)]


def test_from_the_second_slow_rise_on_the_ramp_is_met_without_an_edit() -> None:
    plan, margins, leads = a_plan(), [], []
    target = a_target()
    for day in range(4):  # Tuesday to Friday
        start_of_window = datetime(2026, 12, 1 + day, 7, tzinfo=UTC)
        target.now = start_of_window - timedelta(hours=1)
        lead = effective_lead(plan.lead, target.rises, target.now).lead
        learned = replace(plan, lead=Lead(declared=lead, margin=plan.lead.margin * 0, maximum=lead))
        target.look()
        observation = Observation(current=2, replicas=tuple(target.replicas.values()))
        rise = decide(learned, observation, History(), target.now).next_change
        assert rise is not None
        target.now = rise.time
        target.scale(rise.replicas)
        ready = rise.time + 15 * MINUTE  # ten were declared
        target.verify(at=ready)
        target.later(30)
        leads.append(lead / MINUTE)
        margins.append((start_of_window - ready) / MINUTE)
        for name in [f"chat-{target.made - i}" for i in range(3)]:
            del target.replicas[name]
        target.scale(2)
    assert leads == [12, 18, 18, 18]
    assert margins == [-3, 3, 3, 3]


def test_replicas_past_their_lead_are_stuck_the_one_that_is_furthest_behind_first() -> None:
    trouble = Trouble(reason=Reason.UNSCHEDULABLE, message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu")
    replicas = (
        a_replica("chat-1", created=START - timedelta(hours=5), ready=START),
        a_replica("chat-2", created=START),
        a_replica("chat-3", created=START, stage=Stage.SCHEDULING, trouble=trouble),
        a_replica("chat-4", created=START + 10 * MINUTE),
        a_replica("chat-5", created=START, stage=Stage.TERMINATING),
    )
    observation = Observation(current=4, replicas=replicas)
    found = stuck(observation, 12 * MINUTE, START + 13 * MINUTE)
    assert [each.name for each in found] == ["chat-3", "chat-2"]
    assert stuck(observation, 12 * MINUTE, START + 12 * MINUTE) == ()


@pytest.mark.parametrize("reason", sorted(LOST))
def test_a_replica_that_was_verified_once_is_no_start_that_is_stuck(reason) -> None:
    lost = a_replica("chat-1", created=START, trouble=Trouble(reason=reason, message="lost"))
    observation = Observation(current=1, replicas=(lost,))
    assert stuck(observation, 12 * MINUTE, START + timedelta(hours=9)) == ()
    assert stuck_from(observation, 12 * MINUTE, START) is None
