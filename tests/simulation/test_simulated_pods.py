"""Replicas on virtual time: how they start, leave and are lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from servingplan.planning.drain import Mark
from servingplan.planning.lead import Stages
from servingplan.planning.observation import Draining, Stage
from servingplan.planning.reasons import Reason
from servingplan.simulation.operated import Orders
from servingplan.simulation.pods import EVICTED_AFTER, NODE_SILENT, Pods

MORNING = datetime(2026, 12, 1, 7, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
START = Stages(scheduling=10 * SECOND, pulling=50 * SECOND, engine=9 * MINUTE)


def some(count=2, **options):
    return Pods(start=START, **options).scaled(count, MORNING)


def stages(pods, now):
    return [each.stage.value for each in pods.observed(now).replicas]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many replicas there are of each kind. ready: verified, of which `serving` take new requests."""

    current: int
    ready: int
    serving: int
    starting: int
    leaving: int


def tally(pods, now):
    replicas = pods.observed(now).replicas
    return Tally(
        current=pods.current or 0,
        ready=sum(each.stage is Stage.READY for each in replicas),
        serving=len(pods.serving(now)),
        starting=sum(each.starting for each in replicas),
        leaving=sum(each.stage is Stage.TERMINATING or each.draining is not None for each in replicas),
    )


@pytest.mark.parametrize(
    ("after", "stage", "known"),
    [
        (0 * SECOND, Stage.SCHEDULING, 0),
        (10 * SECOND, Stage.PULLING, 1),
        (60 * SECOND, Stage.ENGINE, 2),
        (10 * MINUTE - SECOND, Stage.ENGINE, 2),
        (10 * MINUTE, Stage.READY, 3),
    ],
)
def test_a_replica_passes_its_stages_and_says_when(after, stage, known) -> None:
    (found,) = some(1).observed(MORNING + after).replicas
    assert (found.stage, found.since) == (stage, MORNING)
    milestones = (found.milestones.scheduled, found.milestones.started, found.milestones.ready)
    passed = (MORNING + 10 * SECOND, MORNING + MINUTE, MORNING + 10 * MINUTE)
    assert milestones == (*passed[:known], *(None,) * (3 - known))


def test_it_is_known_when_time_alone_changes_something() -> None:
    pods, instants, now = some(1), [], MORNING
    while (following := pods.next_change(now)) is not None:
        now = following
        instants.append(now - MORNING)
    assert instants == [10 * SECOND, MINUTE, 10 * MINUTE]


def test_fewer_replicas_are_those_furthest_behind_and_they_go_within_their_grace() -> None:
    pods = some(2, grace=30 * SECOND).scaled(3, MORNING + 20 * MINUTE)
    now = MORNING + 21 * MINUTE
    fewer = pods.scaled(2, now)
    assert stages(fewer, now) == ["ready", "ready", "terminating"]
    assert fewer.next_change(now) == now + 30 * SECOND
    assert stages(fewer, now + 30 * SECOND) == ["ready", "ready"]
    assert tally(fewer, now) == Tally(current=2, ready=2, serving=2, starting=0, leaving=1)


def test_one_that_drains_serves_nobody_is_ready_and_goes_first() -> None:
    now = MORNING + 20 * MINUTE
    pods = some(2)
    first = pods.observed(now).replicas[0]
    drains = Orders(replicas=2, marks=(Mark(replica=first, draining=Draining(since=now, released=False)),))
    draining = pods.carried_out(drains, now)
    assert tally(draining, now) == Tally(current=2, ready=2, serving=1, starting=0, leaving=1)
    assert [each.name for each in draining.scaled(1, now).observed(now).replicas] == ["replica-00002"]
    back = draining.carried_out(Orders(replicas=2, marks=(Mark(replica=first, draining=None),)), now)
    assert tally(back, now) == tally(pods, now)


def test_what_was_on_a_lost_node_answers_nobody_and_is_replaced_after_its_eviction() -> None:
    pods = some(3, nodes=("a", "b"))
    lost_at = MORNING + 20 * MINUTE
    lost = pods.without_node("a", lost_at)
    assert tally(lost, lost_at) == Tally(current=3, ready=3, serving=1, starting=0, leaving=0)
    silent = lost_at + NODE_SILENT
    assert lost.next_change(lost_at) == silent
    assert tally(lost, silent) == Tally(current=3, ready=1, serving=1, starting=0, leaving=0)
    troubles = [each.trouble.reason for each in lost.observed(silent).replicas if each.trouble is not None]
    assert troubles == [Reason.NODE_NOT_READY] * 2
    evicted = lost_at + EVICTED_AFTER
    assert lost.next_change(silent) == evicted
    assert tally(lost, evicted) == Tally(current=3, ready=1, serving=1, starting=2, leaving=0)
    later = lost.at(evicted + 30 * MINUTE)
    assert {(each.node, each.since) for each in later.observed(evicted + 30 * MINUTE).replicas} == {
        ("b", MORNING), ("b", evicted),
    }  # fmt: skip
    assert tally(later, evicted + 30 * MINUTE).serving == 3


def test_without_any_node_left_nothing_starts_and_it_says_so() -> None:
    pods = some(1, nodes=("a",)).without_node("a", MORNING + MINUTE).scaled(2, MORNING + 2 * MINUTE)
    waiting = pods.observed(MORNING + 60 * MINUTE).in_stage(Stage.SCHEDULING)
    assert [each.trouble.reason for each in waiting] == [Reason.UNSCHEDULABLE] * 2


def test_slower_starts_are_those_of_what_is_created_from_then_on() -> None:
    pods = replace(some(1), start=Stages(engine=20 * MINUTE)).scaled(2, MORNING)
    assert stages(pods, MORNING + 10 * MINUTE) == ["ready", "engine"]
    assert stages(pods, MORNING + 20 * MINUTE) == ["ready", "ready"]


def test_before_there_is_a_target_there_is_nothing() -> None:
    pods = Pods(start=START)
    assert pods.observed(MORNING).current is None
    assert tally(pods, MORNING) == Tally(current=0, ready=0, serving=0, starting=0, leaving=0)
    assert replace(pods, current=0).observed(MORNING).current == 0
