"""What there is of the work of evidence: the trial pool, its Jobs, what their containers said.

In: live objects as plain dicts. Out: the states of Jobs and pool, reports and last words. Pure: the cluster was read
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from servingplan.controller.clock import Clock
from servingplan.controller.pods import replicas
from servingplan.planning.work import JobState
from servingplan.rendering.engine import ENGINE_CONTAINER
from servingplan.rendering.runner import RUNNER_CONTAINER, job_name
from servingplan.rendering.running import is_settled

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a runner's container said last. restarts: how often it was started again. code: of its last end, if any."""

    restarts: int
    code: int | None
    text: str


def is_owned(live: Object, uid: str) -> bool:
    """Whether an object belongs to the evidence of that UID."""
    return any(owner.get("uid") == uid for owner in live["metadata"].get("ownerReferences", ()))


def job_state(job: Object) -> JobState:
    """How far a Job is."""
    ended = {each["type"] for each in job.get("status", {}).get("conditions", ()) if each["status"] == "True"}
    if ended & {"Complete", "SuccessCriteriaMet"}:
        return JobState.DONE
    if ended & {"Failed", "FailureTarget"}:
        return JobState.FAILED
    return JobState.SUSPENDED if job["spec"].get("suspend") else JobState.RUNNING


def why_failed(job: Object) -> str:
    """The Job's own words for its failure; empty where it has none."""
    conditions = job.get("status", {}).get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["type"] in {"Failed", "FailureTarget"}), "")


def annotation(live: Object, name: str) -> str | None:
    """One of an object's annotations."""
    found: str | None = live["metadata"].get("annotations", {}).get(name)
    return found


def piece_of(job: Object, evidence: str, work: str) -> int | None:
    """Which piece of that work a Job is; None for one of other work."""
    beginning = job_name(evidence, work, 0)[:-1]
    rest = str(job["metadata"]["name"]).removeprefix(beginning)
    return int(rest) if job["metadata"]["name"].startswith(beginning) and rest.isdigit() else None


def last_words(pods: Iterable[Object]) -> Words | None:
    """What the runner of the newest pod said when it last ended; None before it ever did."""
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True):
        container = _container(pod, RUNNER_CONTAINER)
        states = (container.get("state", {}), container.get("lastState", {}))
        ended = next((state["terminated"] for state in states if "terminated" in state), None)
        if ended is not None:
            text = str(ended.get("message") or ended.get("reason") or "").strip()
            return Words(restarts=container.get("restartCount", 0), code=ended.get("exitCode"), text=text)
    return None


def ready_replicas(deployment: Object) -> int | None:
    """The replicas of a pool that serve; None while they are not exactly those that are asked for."""
    status, wanted = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
    counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return wanted if is_settled(deployment) and counts == {wanted} else None


def starting_words(deployment: Object | None, pods: Iterable[Object], wanted: int, clock: Clock) -> str:
    """How far a pool is, and what holds it up."""
    status = {} if deployment is None else deployment.get("status", {})
    text = f"{status.get('availableReplicas', 0)} of {wanted} replicas of the trial pool are ready"
    troubles = (replica.trouble for replica in replicas(pods, clock))
    trouble = next((trouble for trouble in troubles if trouble is not None), None)
    return text if trouble is None else f"{text}: {trouble.message}"


def image_digest(pods: Iterable[Object]) -> str | None:
    """The image that engines ran, as the first pod that says so says it."""
    found = (_container(pod, ENGINE_CONTAINER).get("imageID") for pod in pods)
    return next((image for image in found if image), None)


def node_of(pods: Iterable[Object]) -> str | None:
    """The node of the first pod that is on one."""
    return next((node for pod in pods if (node := pod.get("spec", {}).get("nodeName"))), None)


def _container(pod: Object, name: str) -> Object:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return next((each for each in statuses if each["name"] == name), {})
