"""From a pod to a `Replica`: how far it has come, and what keeps it from coming further.

In: live pods as plain dicts. Out: the planning layer's observation of them. Pure: the cluster was read elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from servingplan.controller.clock import Clock
from servingplan.planning.observation import Draining, Milestones, Replica, Stage, Trouble
from servingplan.planning.reasons import Reason
from servingplan.rendering.engine import ENGINE_CONTAINER
from servingplan.rendering.metadata import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, FIRST_TO_GO
from servingplan.rendering.serving import Hardware, RunningPod, digest_of
from servingplan.rendering.stated import condition_of
from servingplan.rendering.times import parse_wire_time

Object = Mapping[str, Any]

IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
TIMESTAMP_GRAIN = timedelta(seconds=1)
"""Kubernetes cuts its timestamps to whole seconds: what it says happened up to that much later."""

VOLUME_WORDS = ("volume node affinity conflict", "ReadWriteOncePod", "exceed max volume count")
"""What the scheduler says when a replica is held up by its volume rather than by its GPUs."""


IsDown = Callable[[str], bool]
"""Whether a node, by its name, is known not to be ready."""


def _nothing_known(_: str) -> bool:
    return False


def replicas(pods: Iterable[Object], clock: Clock, *, is_down: IsDown = _nothing_known) -> tuple[Replica, ...]:
    """All pods that can still become or are a replica, by name; finished ones are none."""
    alive = (pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))
    return tuple(sorted((replica(pod, clock, is_down=is_down) for pod in alive), key=lambda found: found.name))


def replica(pod: Object, clock: Clock, *, is_down: IsDown = _nothing_known) -> Replica:
    """One pod as a replica."""
    stage, trouble = _stage(pod)
    if stage in (Stage.PULLING, Stage.ENGINE):
        trouble = _loss(pod, is_down) or trouble
    return Replica(
        name=pod["metadata"]["name"],
        stage=stage,
        since=clock.from_real(datetime.fromisoformat(pod["metadata"]["creationTimestamp"])),
        node=pod.get("spec", {}).get("nodeName"),
        trouble=trouble,
        milestones=_milestones(pod, clock),
        draining=_draining(pod["metadata"].get("annotations", {})),
    )


def running_pods(pods: Iterable[Object], hardware: Callable[[str], Hardware | None]) -> tuple[RunningPod, ...]:
    """The ready pods, in no order that matters: what they run, and on what. hardware: of a node, by its name."""
    ready = (pod for pod in pods if _stage(pod)[0] is Stage.READY)
    return tuple(
        RunningPod(image=digest_of(_image_id(pod)), hardware=hardware(pod["spec"].get("nodeName", ""))) for pod in ready
    )


def _image_id(pod: Object) -> str:
    """The image that the engine runs, as its kubelet says: of the container `engine`, or the only one."""
    found = {one.get("name"): one.get("imageID", "") for one in pod.get("status", {}).get("containerStatuses", ())}
    only = next(iter(found.values())) if len(found) == 1 else ""
    image_id: str = found.get(ENGINE_CONTAINER, only)
    return image_id


def _milestones(pod: Object, clock: Clock) -> Milestones:
    """What the pod's own timestamps tell, rounded up."""
    status = pod.get("status", {})

    def since(type_: str) -> datetime | None:
        found = condition_of(status, type_)
        return _latest(found.get("lastTransitionTime"), clock) if found.get("status") == "True" else None

    starts = [_started(container) for container in status.get("containerStatuses", ())]
    started = [_latest(start, clock) for start in starts if start is not None]
    return Milestones(
        scheduled=since("PodScheduled"),
        started=max((each for each in started if each is not None), default=None)
        if len(started) == len(starts)
        else None,
        ready=since("Ready"),
    )


def _started(container: Object) -> str | None:
    """When a container first ran, as far as it still tells: the start before last is forgotten."""
    states = (container.get("lastState", {}), container.get("state", {}))
    starts = [each.get(kind, {}).get("startedAt") for each in states for kind in ("terminated", "running")]
    return next((start for start in starts if start), None)


def _latest(timestamp: str | None, clock: Clock) -> datetime | None:
    """The last instant, on the plan's clock, at which that may have been."""
    return None if timestamp is None else clock.from_real(datetime.fromisoformat(timestamp) + TIMESTAMP_GRAIN)


def _draining(annotations: Mapping[str, str]) -> Draining | None:
    """How a pod drains, by our own marks; a mark that is no instant is not ours."""
    try:
        since = parse_wire_time(annotations[DRAINING_ANNOTATION])
    except (KeyError, ValueError):
        return None
    if since.tzinfo is None:
        return None
    return Draining(since=since, released=annotations.get(DELETION_COST_ANNOTATION) == FIRST_TO_GO)


def _stage(pod: Object) -> tuple[Stage, Trouble | None]:
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return Stage.TERMINATING, None
    if condition_of(status, "Ready").get("status") == "True":
        return Stage.READY, None
    if not pod.get("spec", {}).get("nodeName"):
        return Stage.SCHEDULING, _scheduling_trouble(condition_of(status, "PodScheduled"))
    return _container_stage([*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())])


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


def _loss(pod: Object, is_down: IsDown) -> Trouble | None:
    """Why a pod that came this far goes no further: its node is gone silent, or it was ready once and is not now.

    A kubelet says that a pod is not ready before it starts the containers: who stopped being ready later was ready.
    """
    node, status = pod["spec"]["nodeName"], pod.get("status", {})
    if is_down(node):
        return Trouble(reason=Reason.NODE_NOT_READY, message=f"node {node} is not ready")
    since = condition_of(status, "Ready").get("lastTransitionTime")
    starts = [_started(container) for container in status.get("containerStatuses", ())]
    known = [start for start in starts if start is not None]
    if since is None or not known or len(known) < len(starts):
        return None
    latest = max(map(datetime.fromisoformat, known))
    if datetime.fromisoformat(since) <= latest or any(c.get("restartCount") for c in status["containerStatuses"]):
        return None
    return Trouble(reason=Reason.NOT_READY_ANY_MORE, message="it was ready before, and its readiness probe fails now")


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
