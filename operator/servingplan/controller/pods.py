"""From a pod to a `Replica`: how far it has come, and what keeps it from coming further.

In: live pods as plain dicts. Out: the planning layer's observation of them. Pure: the cluster was read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from servingplan.controller.clock import Clock
from servingplan.planning.observation import Replica, Stage, Trouble
from servingplan.planning.reasons import Reason

Object = Mapping[str, Any]

IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
VOLUME_WORDS = ("volume node affinity conflict", "ReadWriteOncePod", "exceed max volume count")
"""What the scheduler says when a replica is held up by its volume rather than by its GPUs."""


def replicas(pods: Iterable[Object], clock: Clock) -> tuple[Replica, ...]:
    """All pods that can still become or are a replica, by name; finished ones are none."""
    alive = (pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    return tuple(sorted((replica(pod, clock) for pod in alive), key=lambda found: found.name))


def replica(pod: Object, clock: Clock) -> Replica:
    """One pod as a replica."""
    stage, trouble = _stage(pod)
    return Replica(
        name=pod["metadata"]["name"],
        stage=stage,
        since=clock.from_real(datetime.fromisoformat(pod["metadata"]["creationTimestamp"])),
        node=pod.get("spec", {}).get("nodeName"),
        trouble=trouble,
    )


def _stage(pod: Object) -> tuple[Stage, Trouble | None]:
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return Stage.TERMINATING, None
    if _condition(status, "Ready").get("status") == "True":
        return Stage.READY, None
    if not pod.get("spec", {}).get("nodeName"):
        return Stage.SCHEDULING, _scheduling_trouble(_condition(status, "PodScheduled"))
    return _container_stage([*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())])


def _condition(status: Object, type_: str) -> Object:
    found = (c for c in status.get("conditions", ()) if c.get("type") == type_)
    return next(found, {})


def _scheduling_trouble(scheduled: Object) -> Trouble | None:
    if scheduled.get("status") != "False" or scheduled.get("reason") != "Unschedulable":
        return None
    message = scheduled.get("message", "no node fits")
    held_by_volume = any(words in message for words in VOLUME_WORDS)
    reason = Reason.VOLUME_NOT_SHAREABLE if held_by_volume else Reason.UNSCHEDULABLE
    return Trouble(reason=reason, message=message)


def _container_stage(containers: list[Object]) -> tuple[Stage, Trouble | None]:
    """The stage of the container that is furthest behind."""
    for container in containers:
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") in IMAGE_REASONS:
            message = f"{waiting['reason']}: {waiting.get('message', container.get('image', ''))}"
            return Stage.PULLING, Trouble(reason=Reason.IMAGE_PULL, message=message)
    for container in containers:
        if crash := _crash(container):
            return Stage.ENGINE, crash
    if not containers or any("waiting" in container.get("state", {}) for container in containers):
        return Stage.PULLING, None
    return Stage.ENGINE, None


def _crash(container: Object) -> Trouble | None:
    """A container that ended and is started again, or waits to be."""
    waiting = container.get("state", {}).get("waiting", {})
    ended = container.get("lastState", {}).get("terminated") or container.get("state", {}).get("terminated")
    restarts = container.get("restartCount", 0)
    if waiting.get("reason") != "CrashLoopBackOff" and not (restarts and not container.get("ready")):
        return None
    code = f"exit code {ended['exitCode']} ({ended.get('reason', 'Error')})" if ended else "no exit code yet"
    often = "once" if restarts == 1 else f"{restarts} times"
    return Trouble(reason=Reason.ENGINE_CRASH, message=f"container {container['name']} ended {often}, {code}")
