"""Victims: who leaves on a fall and who comes back on a raise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from servingplan.planning.observation import Draining, Milestones, Observation, Replica, Stage
from servingplan.planning.victims import leaving, returning

MORNING = datetime(2026, 12, 1, 7, tzinfo=UTC)


def a_replica(name, *, stage=Stage.READY, node=None, ready_at=MORNING, draining_since=None):
    draining = None if draining_since is None else Draining(since=draining_since, released=False)
    unplaced = stage is Stage.SCHEDULING
    return Replica(
        name=name,
        stage=stage,
        since=MORNING - timedelta(minutes=10),
        node=None if unplaced else node or f"on-{name}",
        milestones=Milestones(ready=ready_at if stage is Stage.READY else None),
        draining=draining,
    )


def observed(*replicas, current=None):
    return Observation(current=len(replicas) if current is None else current, replicas=replicas)


def names(replicas):
    return [each.name for each in replicas]


@pytest.mark.parametrize(
    ("replicas", "in_flight", "order"),
    [
        pytest.param(
            [a_replica("a"), a_replica("b"), a_replica("c")],
            {"a": 3, "b": 0, "c": 7},
            ["b", "a"],
            id="least busy first",
        ),
        pytest.param(
            [a_replica("a"), a_replica("b"), a_replica("c")], {"b": 40, "c": 0}, ["c", "b"], id="unknown is busiest"
        ),
        pytest.param(
            [
                a_replica("a"),
                a_replica("b", stage=Stage.ENGINE),
                a_replica("c", stage=Stage.PULLING),
                a_replica("d", stage=Stage.SCHEDULING),
            ],
            {"a": 0},
            ["d", "c", "b"],
            id="what is not ready goes before what is idle, as in a ReplicaSet",
        ),
        pytest.param(
            [a_replica("a"), a_replica("b", draining_since=MORNING)], {"a": 0, "b": 9}, ["b"], id="draining first"
        ),
        pytest.param(
            [a_replica("a", draining_since=MORNING), a_replica("b", stage=Stage.ENGINE)],
            {"a": 0},
            ["b"],
            id="no drain can spare a replica that is not ready",
        ),
        pytest.param(
            [a_replica("a", node="n1"), a_replica("b", node="n2"), a_replica("c", node="n2")],
            {},
            ["b"],
            id="equally busy: from the node with more",
        ),
        pytest.param(
            [a_replica("a"), a_replica("b", ready_at=MORNING + timedelta(hours=1))], {}, ["b"], id="then the newest"
        ),
        pytest.param([a_replica("b"), a_replica("a")], {}, ["a"], id="then by name"),
        pytest.param(
            [a_replica("a"), a_replica("b", stage=Stage.TERMINATING)], {}, [], id="what is ending has left already"
        ),
    ],
)
def test_who_leaves(replicas, in_flight, order) -> None:
    active = [each for each in replicas if each.stage is not Stage.TERMINATING]
    observation = observed(*replicas, current=len(active))
    stay = len(active) - len(order)
    for shuffled in permutations(replicas):
        found = leaving(observed(*shuffled, current=observation.current), stay, in_flight)
        assert names(found) == order


@pytest.mark.parametrize(
    ("current", "there", "stay", "leave"),
    [
        pytest.param(5, 5, 3, 2, id="a fall by two"),
        pytest.param(5, 5, 5, 0, id="no fall"),
        pytest.param(4, 4, 6, 0, id="a raise"),
        pytest.param(5, 4, 4, 0, id="one is missing already"),
        pytest.param(5, 6, 4, 1, id="a rolling update has one to spare"),
        pytest.param(2, 2, 0, 2, id="to nothing"),
    ],
)
def test_how_many_leave(current, there, stay, leave) -> None:
    replicas = [a_replica(f"chat-{i}") for i in range(there)]
    assert len(leaving(observed(*replicas, current=current), stay, {})) == leave


def test_what_drains_and_does_not_leave_comes_back() -> None:
    a = a_replica("a", draining_since=MORNING)
    b = a_replica("b", draining_since=MORNING)
    ending = a_replica("c", stage=Stage.TERMINATING, draining_since=MORNING)
    observation = observed(b, a, a_replica("d"), ending, current=3)
    assert names(returning(observation)) == ["a", "b"]
    assert names(returning(observation, (a,))) == ["b"]
