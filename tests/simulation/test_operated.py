"""The operator on virtual time: what it orders, what it remembers, and when it looks again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from planning.loop import BERLIN, berlin
from servingplan.planning.lead import Stages
from servingplan.planning.observation import History, Scale, Stage
from servingplan.planning.plan import Plan
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, NoSignals
from servingplan.simulation.operated import Operated
from servingplan.simulation.pods import Pods
from support.plans import a_plan
from support.signals import a_checked_plan, some_signals, steady

MINUTE = timedelta(minutes=1)
START = Stages(scheduling=timedelta(seconds=5), pulling=timedelta(seconds=55), engine=9 * MINUTE)


def live(
    plan: Plan,
    start: str,
    end: str,
    *,
    pods: Pods | None = None,
    heard: Callable[[Pods, datetime], Heard] | None = None,
    history: History | None = None,
) -> tuple[Operated, list[Scale]]:
    """Sleeps until time alone changes something, and with `heard` at most 15 s, from one instant to another."""
    operated, pods = Operated(plan, history=history), pods or Pods(start=START)
    now, scales = berlin(start), []
    while now < berlin(end):
        observation = pods.observed(now, None if heard is None else heard(pods, now))
        operated.step(observation, now)
        pods = pods.carried_out(operated.orders, now)
        if operated.orders.scaled is not None:
            scales.append(operated.orders.scaled)
        instants = [operated.wake_at, pods.next_change(now), None if heard is None else now + timedelta(seconds=15)]
        now = min(instant for instant in instants if instant is not None)
    return operated, scales


def levels(scales: list[Scale]) -> list[tuple[str, int]]:
    return [(f"{scale.time.astimezone(BERLIN):%a %H:%M:%S}", scale.after) for scale in scales]


def saying(in_flight: Callable[[datetime], float]) -> Callable[[Pods, datetime], Heard]:
    """All that is ready is heard; so much each of them has in flight."""

    def heard(pods: Pods, now: datetime) -> Heard:
        names = [each.name for each in pods.observed(now).in_stage(Stage.READY)]
        if not names:
            return NoSignals(reason=Reason.METRICS_AWAITED, message="nobody is ready")
        return some_signals(
            now, in_flight=dict.fromkeys(names, in_flight(now)), arrivals_2m=steady(1), arrivals_10m=steady(1)
        )

    return heard


def test_a_working_day_rises_a_lead_early_and_falls_in_steps() -> None:
    operated, scales = live(a_plan(), "2026-12-01T03:00", "2026-12-02T03:00")
    assert levels(scales) == [
        ("Tue 03:00:00", 2), ("Tue 07:48:00", 5), ("Tue 20:00:00", 4), ("Tue 20:02:00", 3), ("Tue 20:04:00", 2),
    ]  # fmt: skip
    assert operated.history.last_scale == scales[-1]
    assert [(sample.took, sample.stages) for sample in operated.history.rises.samples] == [(10 * MINUTE, START)] * 2


def test_a_target_that_is_there_is_taken_over_as_it_is() -> None:
    there = Pods(start=START).scaled(2, berlin("2026-12-01T01:00"))
    operated, scales = live(a_plan(), "2026-12-01T03:00", "2026-12-01T04:00", pods=there)
    assert scales == []
    assert operated.history.last_scale == Scale(
        time=berlin("2026-12-01T03:00"), before=2, after=2, because="taken over"
    )


def test_a_slow_rise_teaches_a_longer_lead_at_once() -> None:
    slow = replace(START, engine=14 * MINUTE)
    _, scales = live(a_plan(), "2026-12-01T03:00", "2026-12-01T09:00", pods=Pods(start=slow))
    # 15 minutes and a fifth: 18 minutes.
    assert levels(scales) == [("Tue 03:00:00", 2), ("Tue 07:42:00", 5)]


@pytest.mark.parametrize(
    ("idle_from", "left"),
    [
        pytest.param("2026-12-01T20:03", "Tue 20:03:15", id="idle twice"),
        pytest.param("2026-12-01T20:30", "Tue 20:05:00", id="when its time to drain is over"),
    ],
)
def test_a_fall_waits_until_what_leaves_may_go(idle_from: str, left: str) -> None:
    there = Pods(start=START).scaled(5, berlin("2026-12-01T12:00"))
    busy = saying(lambda now: 0.0 if now >= berlin(idle_from) else 2.0)
    _, scales = live(a_checked_plan(), "2026-12-01T19:55", "2026-12-01T20:05:10", pods=there, heard=busy)
    assert levels(scales)[0] == (left, 4)


def test_a_suspended_plan_changes_nothing_and_remembers_no_ramp() -> None:
    there = Pods(start=START).scaled(2, berlin("2026-12-01T01:00"))
    operated, scales = live(a_plan(suspend=True), "2026-12-01T07:00", "2026-12-01T07:55", pods=there)
    assert scales == []
    assert (operated.history.ramp, operated.history.last_scale, operated.orders.replicas) == (None, None, 2)


def test_a_ramp_that_was_missed_is_remembered_until_its_replicas_are_there() -> None:
    slow = replace(START, engine=24 * MINUTE)
    operated, _ = live(a_plan(), "2026-12-01T07:30", "2026-12-01T08:05", pods=Pods(start=slow))
    ramp = operated.history.ramp
    assert ramp is not None
    assert (ramp.start, ramp.needed) == (berlin("2026-12-01T08:00"), 5)
    operated, _ = live(a_plan(), "2026-12-01T07:30", "2026-12-01T08:30", pods=Pods(start=slow))
    assert operated.history.ramp is None


def test_a_second_look_at_the_same_instant_orders_nothing_more() -> None:
    operated, pods, now = Operated(a_plan()), Pods(start=START), berlin("2026-12-01T07:50")
    first = operated.step(pods.observed(now), now)
    pods = pods.carried_out(operated.orders, now)
    history = operated.history
    again = operated.step(pods.observed(now), now)
    assert (again.desired, operated.orders.scaled, operated.history) == (first.desired, None, history)


def test_before_the_first_look_nobody_knows_when_to_look_again() -> None:
    with pytest.raises(ValueError, match="step comes first"):
        _ = Operated(a_plan()).wake_at
