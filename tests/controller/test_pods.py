"""Pods as replicas: how far each has come, and what keeps it from coming further."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from servingplan.controller.clock import AcceleratedClock
from servingplan.controller.pods import replica, replicas
from servingplan.planning.observation import Stage, Trouble
from servingplan.planning.reasons import Reason
from support.live import (
    StillClock,
    condition,
    pod,
    ready_pod,
    running,
    terminated,
    unschedulable_pod,
    waiting,
)

NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
TAKEN = "0/3 nodes are available: 3 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod."
ELSEWHERE = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had volume node affinity conflict."
BACK_OFF = 'Back-off pulling image "registry.local/engine:1"'
GATED = condition("PodScheduled", "False", reason="SchedulingGated", message="waits for its gate")

UNREADY_SINCE_NOON = {**condition("Ready", "False"), "lastTransitionTime": "2026-12-01T11:00:00Z"}

CASES: dict[str, tuple[dict[str, Any], Stage, tuple[Reason, str] | None]] = {
    "just created": (pod(node=None), Stage.SCHEDULING, None),
    "held by a scheduling gate": (pod(node=None, conditions=[GATED]), Stage.SCHEDULING, None),
    "no GPU": (unschedulable_pod(NO_GPU), Stage.SCHEDULING, (Reason.UNSCHEDULABLE, NO_GPU)),
    "its volume is used by another pod": (
        unschedulable_pod(TAKEN), Stage.SCHEDULING, (Reason.VOLUME_NOT_SHAREABLE, TAKEN),
    ),
    "its volume is on another node": (
        unschedulable_pod(ELSEWHERE), Stage.SCHEDULING, (Reason.VOLUME_NOT_SHAREABLE, ELSEWHERE),
    ),
    "on a node, no container yet": (pod(), Stage.PULLING, None),
    "pulling": (pod(containers=[waiting()]), Stage.PULLING, None),
    "its image cannot be pulled": (
        pod(containers=[waiting("ImagePullBackOff", BACK_OFF)]),
        Stage.PULLING,
        (Reason.IMAGE_PULL, f"ImagePullBackOff: {BACK_OFF}"),
    ),
    "its image has no valid name, and nothing more is said": (
        pod(containers=[waiting("InvalidImageName")]),
        Stage.PULLING,
        (Reason.IMAGE_PULL, "InvalidImageName: registry.local/engine:1"),
    ),
    "one of two images cannot be pulled": (
        pod(containers=[running(), waiting("ErrImagePull", "not found", name="shipper")]),
        Stage.PULLING,
        (Reason.IMAGE_PULL, "ErrImagePull: not found"),
    ),
    "an init container is being pulled": (
        pod(initContainerStatuses=[waiting(name="fetch")], containers=[waiting("PodInitializing")]),
        Stage.PULLING,
        None,
    ),
    "an init container's image cannot be pulled": (
        pod(
            initContainerStatuses=[waiting("ErrImagePull", "no route", name="fetch")],
            containers=[waiting("PodInitializing")],
        ),
        Stage.PULLING,
        (Reason.IMAGE_PULL, "ErrImagePull: no route"),
    ),
    "an init container has ended well": (
        pod(
            phase="Running",
            initContainerStatuses=[
                {"name": "fetch", "ready": True, "restartCount": 0, "state": terminated(0, "Completed")}
            ],
            containers=[running()],
        ),
        Stage.ENGINE,
        None,
    ),
    "loading the model": (pod(phase="Running", containers=[running()]), Stage.ENGINE, None),
    "the engine crashes again and again": (
        pod(
            phase="Running",
            containers=[waiting("CrashLoopBackOff", restartCount=4, lastState=terminated(137, "OOMKilled"))],
        ),
        Stage.ENGINE,
        (Reason.ENGINE_CRASH, "container engine ended 4 times, exit code 137 (OOMKilled)"),
    ),
    "the engine has been started again": (
        pod(phase="Running", containers=[running(restartCount=1, lastState=terminated(1))]),
        Stage.ENGINE,
        (Reason.ENGINE_CRASH, "container engine ended once, exit code 1 (Error)"),
    ),
    "the engine has just ended": (
        pod(phase="Running", containers=[running(state=terminated(2), restartCount=2)]),
        Stage.ENGINE,
        (Reason.ENGINE_CRASH, "container engine ended 2 times, exit code 2 (Error)"),
    ),
    "ready": (ready_pod(), Stage.READY, None),
    "ready again after a restart": (
        pod(
            phase="Running",
            conditions=[condition("Ready", "True")],
            containers=[running(ready=True, restartCount=3, lastState=terminated(1))],
        ),
        Stage.READY,
        None,
    ),
    "not ready yet": (
        pod(phase="Running", conditions=[condition("Ready", "False")], containers=[running()]), Stage.ENGINE, None,
    ),
    "not ready any more": (
        pod(phase="Running", conditions=[UNREADY_SINCE_NOON], containers=[running()]),
        Stage.ENGINE,
        (Reason.NOT_READY_ANY_MORE, "it was ready before, and its readiness probe fails now"),
    ),
    "not ready since it was started again": (
        pod(phase="Running", conditions=[UNREADY_SINCE_NOON], containers=[running(restartCount=1)]),
        Stage.ENGINE,
        (Reason.ENGINE_CRASH, "container engine ended once, no exit code yet"),
    ),
    "on a node that is down": (
        pod(phase="Running", node="down", conditions=[UNREADY_SINCE_NOON], containers=[running()]),
        Stage.ENGINE,
        (Reason.NODE_NOT_READY, "node down is not ready"),
    ),
    "pulling on a node that is down": (
        pod(node="down"), Stage.PULLING, (Reason.NODE_NOT_READY, "node down is not ready"),
    ),
    "ready, as far as a node that is down has told": (ready_pod(node="down"), Stage.READY, None),
    "being deleted while ready": ({**ready_pod(), "metadata": pod(deleted=True)["metadata"]}, Stage.TERMINATING, None),
    "being deleted while it crashes": (
        pod(deleted=True, containers=[waiting("CrashLoopBackOff", restartCount=1)]), Stage.TERMINATING, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pod_is_at_a_stage_and_says_what_holds_it_up(case: tuple[Any, Stage, tuple[Reason, str] | None]) -> None:
    live, stage, trouble = case
    found = replica(live, StillClock(), is_down="down".__eq__)
    expected = None if trouble is None else Trouble(reason=trouble[0], message=trouble[1])
    assert (found.stage, found.trouble) == (stage, expected)


def test_a_pod_keeps_its_name_and_node() -> None:
    found = replica(ready_pod("chat-7", node="node-3"), StillClock())
    assert (found.name, found.node) == ("chat-7", "node-3")
    assert replica(pod(node=None), StillClock()).node is None


def test_finished_pods_are_no_replicas_and_the_others_come_by_name() -> None:
    """An evicted pod stays in the list as Failed until the garbage collector takes it."""
    pods = [ready_pod("c"), pod("evicted", phase="Failed", reason="Evicted"), pod("b"), pod("done", phase="Succeeded")]
    assert [found.name for found in replicas(pods, StillClock())] == ["b", "c"]


def test_since_is_on_the_plan_s_clock() -> None:
    start = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
    clock = AcceleratedClock(start=start, since=datetime(2026, 12, 1, 6, 47, tzinfo=UTC), factor=Fraction(60))
    assert replica(pod(), clock).since == start + timedelta(minutes=60)
