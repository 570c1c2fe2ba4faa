"""The stages through which kwok plays nodes and pods, as Stage objects.

A pod of ours goes: scheduled -> its timetable is drawn (``pod-timetable``) and its images are pulled -> containers run
(``pod-run``) -> ready (``pod-ready``); deleted: terminating (``pod-terminating``) -> ended (``pod-end``) -> gone
(``pod-gone``). A label makes it fail instead.

kwok draws a stage's delay anew each time that the pod changes, so a label written on a starting pod would start its
clock again. Our delays are therefore drawn once, as instants in annotations, and the stages wait for those instants.

Pure: in go ranges of seconds and label selectors, out come manifests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servingplan.localcluster import templates
from servingplan.localcluster.matching import (
    FAILS_LABEL,
    PREFIX,
    WAITING_REASON,
    Failure,
    absent,
    alive,
    annotation,
    exists,
    expression,
    fails,
    fails_not,
    label,
    not_waiting,
    phase,
    ready,
)

MANAGED_LABEL = f"{PREFIX}/kubelet"
MANAGED_VALUE = "running"
# Annotations of a pod: the instants that were drawn for it, and whether its node is stopped.
RUNS_AT = f"{PREFIX}/runs-at"
READY_AT = f"{PREFIX}/ready-at"
LOAD = f"{PREFIX}/load"
GONE_AT = f"{PREFIX}/gone-at"
NODE_STOPPED = f"{PREFIX}/node-stopped"
# The stage without which a Job's pod runs until somebody writes that it ended.
COMPLETION = "pod-completes"
# A label of the stages that hold for selected pods only.
RULE_LABEL = f"{PREFIX}/rule"

CRASHES_AFTER_MS = 1_000
# The kubelet's first back-off.
RESTARTS_AFTER = "10s"
COMPLETES_AFTER_MS = 1_000
# Longer than any cluster of ours lives.
HOLD_MS = 30 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A duration that is drawn uniformly between two bounds, in seconds."""

    at_least: float
    at_most: float

    def __post_init__(self) -> None:
        if not 0 <= self.at_least <= self.at_most:
            raise ValueError(f"a span needs 0 <= at_least <= at_most, not {self.at_least} and {self.at_most}")

    @property
    def milliseconds(self) -> tuple[int, int]:
        """Both bounds, rounded."""
        return round(self.at_least * 1000), round(self.at_most * 1000)


QUICK = Span(at_least=0.0, at_most=0.0)


def defaults() -> list[dict[str, Any]]:
    """All stages of a fresh cluster: everything is quick, nothing fails without its label."""
    return [
        _node_ready(),
        *rules(),
        _pod_run(),
        _pod_ready(),
        _pod_image_pull_fails(),
        _pod_crashes(),
        _pod_restarts(),
        completion(),
        _pod_end(),
        _pod_gone(),
        _pod_hold(),
    ]


def rules() -> list[dict[str, Any]]:
    """The stages that draw a pod's instants, for all pods that no rule of its own selects."""
    return [timetable(pull=QUICK, load=QUICK), termination(delay=QUICK)]


def timetable(*, pull: Span, load: Span, selector: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What is drawn for a pod once it is on a node: when its containers run, and when it is ready.

    pull: from scheduled to running. load: from running to ready. selector: labels of the pods that it is for; without,
    it is for all that no other timetable selects. Pods that two timetables select get either.
    """
    return _pod_stage(
        _rule_name("pod-timetable", selector),
        match=[alive(), phase("Pending"), absent(READY_AT)],
        selector=selector,
        # kwok takes a stage of weight 0 only where no other one matches.
        weight=1 if selector else 0,
        event=("Pulling", "Pulling the images of the containers"),
        metadata=templates.timetable(
            pull.milliseconds, load.milliseconds, runs_at=RUNS_AT, ready_at=READY_AT, load_key=LOAD
        ),
        status=templates.PULLING,
    )


def termination(*, delay: Span, selector: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What is drawn for a pod when it is deleted: when its containers end, at the latest after its grace period.

    selector: as for `timetable`.
    """
    return _pod_stage(
        _rule_name("pod-terminating", selector),
        match=[exists(".metadata.deletionTimestamp"), absent(GONE_AT)],
        selector=selector,
        weight=1 if selector else 0,
        event=("Killing", "Stopping the containers"),
        metadata=templates.instant(GONE_AT, delay.milliseconds),
    )


def _pod_run() -> dict[str, Any]:
    return _pod_stage(
        "pod-run",
        match=[alive(), phase("Pending"), exists(".status.startTime"), fails_not(Failure.IMAGE_PULL)],
        delay={"durationFrom": {"expressionFrom": annotation(RUNS_AT)}},
        event=("Started", "Started the containers"),
        status=templates.RUNNING,
    )


def _pod_ready() -> dict[str, Any]:
    return _pod_stage(
        "pod-ready",
        match=[alive(), phase("Running"), ready("NotIn"), fails_not(Failure.CRASH), not_waiting()],
        delay={"durationFrom": {"expressionFrom": annotation(READY_AT)}},
        status=templates.READY,
    )


def _pod_image_pull_fails() -> dict[str, Any]:
    return _pod_stage(
        "pod-image-pull-fails",
        match=[
            *(alive(), phase("Pending"), exists(".status.startTime"), fails(Failure.IMAGE_PULL)),
            expression(WAITING_REASON, "NotIn", [Failure.IMAGE_PULL]),
        ],
        event=("Failed", "Failed to pull an image: not found"),
        status=templates.IMAGE_PULL_BACK_OFF,
    )


def _pod_crashes() -> dict[str, Any]:
    return _pod_stage(
        "pod-crashes",
        match=[alive(), phase("Running"), fails(Failure.CRASH), not_waiting()],
        delay={"durationMilliseconds": CRASHES_AFTER_MS},
        event=("BackOff", "Back-off restarting failed container"),
        status=templates.CRASH_LOOP_BACK_OFF,
    )


def _pod_restarts() -> dict[str, Any]:
    still_failing = f'if {label(FAILS_LABEL)} == "{Failure.CRASH}" then "{RESTARTS_AFTER}" else "0s" end'
    return _pod_stage(
        "pod-restarts",
        match=[alive(), phase("Running"), exists(WAITING_REASON)],
        delay={"durationFrom": {"expressionFrom": still_failing}},
        metadata=templates.restart(ready_at=READY_AT, load_key=LOAD),
        status=templates.RUNNING,
    )


def completion() -> dict[str, Any]:
    """The stage by which a Job's pod that became ready ends well, a second later."""
    job = expression(".metadata.ownerReferences.[].kind", "In", ["Job"])
    return _pod_stage(
        COMPLETION,
        match=[alive(), phase("Running"), ready("In"), job],
        delay={"durationMilliseconds": COMPLETES_AFTER_MS},
        status=templates.ENDED,
    )


def _pod_end() -> dict[str, Any]:
    # Both are instants in UTC, so that the smaller text is the earlier instant.
    earlier = f"[{annotation(GONE_AT)}, .metadata.deletionTimestamp] | min"
    return _pod_stage(
        "pod-end",
        match=[
            exists(".metadata.deletionTimestamp"),
            exists(annotation(GONE_AT)),
            expression(".status.phase", "NotIn", ["Succeeded", "Failed"]),
        ],
        delay={"durationFrom": {"expressionFrom": earlier}},
        status=templates.ENDED,
    )


def _pod_gone() -> dict[str, Any]:
    stage = _pod_stage(
        "pod-gone",
        match=[
            exists(".metadata.deletionTimestamp"),
            expression(".metadata.finalizers", "DoesNotExist"),
            expression(".status.phase", "In", ["Succeeded", "Failed"]),
        ],
    )
    stage["spec"]["next"] = {"delete": True}
    return stage


def _pod_hold() -> dict[str, Any]:
    # A stage that waits replaces the one that kwok had in its queue for this pod.
    stage = _stage("pod-hold", kind="Pod", match=[exists(annotation(NODE_STOPPED))])
    stage["spec"] |= {"delay": {"durationMilliseconds": HOLD_MS}, "next": {}}
    return stage


def _node_ready() -> dict[str, Any]:
    stage = _stage("node-ready", kind="Node", match=[ready("NotIn")])
    stage["spec"]["next"] = {"patches": [{"subresource": "status", "root": "status", "template": templates.NODE_READY}]}
    return stage


def _pod_stage(
    name: str,
    *,
    match: Sequence[Mapping[str, Any]],
    selector: Mapping[str, str] | None = None,
    weight: int = 0,
    delay: Mapping[str, Any] | None = None,
    event: tuple[str, str] | None = None,
    metadata: str = "",
    status: str = "",
) -> dict[str, Any]:
    """A stage of pods whose node is not stopped: wait ``delay``, send ``event``, patch metadata and status."""
    on_live_node = expression(annotation(NODE_STOPPED), "DoesNotExist")
    stage = _stage(name, kind="Pod", match=[*match, on_live_node])
    spec = stage["spec"]
    if selector:
        spec["selector"]["matchLabels"] = dict(selector)
        stage["metadata"]["labels"] = {RULE_LABEL: "selected"}
    patches = [{"root": "metadata", "template": metadata}] if metadata else []
    if status:
        patches.append({"subresource": "status", "root": "status", "template": status})
    spec |= {"weight": weight, "next": {"patches": patches}}
    if delay:
        spec["delay"] = dict(delay)
    if event:
        reason, message = event
        kind = "Warning" if reason in {"Failed", "BackOff"} else "Normal"
        spec["next"]["event"] = {"type": kind, "reason": reason, "message": message}
    return stage


def _stage(name: str, *, kind: str, match: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": list(match)},
        },
    }


def _rule_name(name: str, selector: Mapping[str, str] | None) -> str:
    # The same selector names the same object: a rule that is set again replaces itself.
    if not selector:
        return name
    key = json.dumps(dict(selector), sort_keys=True)
    return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
