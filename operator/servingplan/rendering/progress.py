"""Progress: how far replicas have come and what holds them up, in the words that conditions share.

In: an observation, or the `Situation` around it. Out: phrases. Nothing in them changes by itself: instants are absolute
and in the plan's zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from servingplan.planning.observation import Observation, Replica, Stage, Trouble
from servingplan.planning.reasons import Reason
from servingplan.planning.rises import stuck
from servingplan.rendering.situation import Situation
from servingplan.rendering.times import local_time

NAMES_SHOWN = 3

REMEDIES: Mapping[Reason, str] = {
    Reason.UNSCHEDULABLE: "Add or free a node that it fits on",
    Reason.IMAGE_PULL: "Correct the image, its pull secret, or the way to its registry",
    Reason.ENGINE_CRASH: "Its log says why: kubectl logs POD --previous",
    Reason.QUOTA_REFUSED: "Raise the namespace's quota, or free some of it",
    Reason.VOLUME_NOT_SHAREABLE: "Give it a volume that every node can mount",
    Reason.NODE_NOT_READY: "Kubernetes replaces it in about 5m, or as soon as the node is deleted",
    Reason.NOT_READY_ANY_MORE: "Its log says why: kubectl logs POD",
}
"""What to do about what holds a replica up; the runbook says more."""


def progress(observation: Observation, needed: int) -> str:
    """``2 of 5 ready; 2 in stage engine, 1 in stage scheduling``."""
    stages: Counter[Stage] = Counter(replica.stage for replica in observation.replicas if replica.starting)
    text = ", ".join(f"{stages[stage]} in stage {stage}" for stage in Stage if stages[stage])
    return f"{observation.ready} of {needed} ready" + (f"; {text}" if text else "")


def hold_up(s: Situation) -> str:
    """What holds up the replica that is furthest behind, by name, and what to do; else which starts are stuck.

    To follow a phrase: it begins with a full stop. Empty where nothing is known to hold anything up.
    """
    if s.observation is None:
        return ""
    if s.observation.trouble is not None:
        return f". {_with_remedy(s.observation.trouble)}"
    for replica in _by_progress(s.observation.replicas):
        if replica.trouble is not None:
            return f". {replica.name}: {_with_remedy(replica.trouble, replica.name)}"
    late = stuck_replicas(s)
    return f". {_stuck_words(late, s.plan.zone)}" if late and s.plan is not None else ""


def stuck_replicas(s: Situation) -> tuple[Replica, ...]:
    """The replicas that have been starting for longer than any start that was seen, furthest behind first."""
    if s.observation is None or s.decision is None:
        return ()
    return stuck(s.observation, s.decision.learned.proven, s.now)


def first_trouble(observation: Observation) -> Trouble | None:
    """What the cluster says about the target, or about the replica that is furthest behind."""
    troubles = [observation.trouble, *(replica.trouble for replica in _by_progress(observation.replicas))]
    return next((trouble for trouble in troubles if trouble is not None), None)


def _stuck_words(late: Sequence[Replica], zone: ZoneInfo) -> str:
    """Which, in which stage, and since when the one that is named first has been starting."""
    names = ", ".join(f"{replica.name} ({replica.stage})" for replica in late[:NAMES_SHOWN])
    more = len(late) - NAMES_SHOWN
    others = f" and {more} more" if more > 0 else ""
    return f"{names}{others} not verified, the first since {local_time(late[0].since, zone)}"


def _with_remedy(trouble: Trouble, pod: str = "POD") -> str:
    words = f"{trouble.reason}: {trouble.message}".rstrip(".")
    return f"{words}. {REMEDIES[trouble.reason].replace('POD', pod)}" if trouble.reason in REMEDIES else words


def _by_progress(replicas: Sequence[Replica]) -> list[Replica]:
    return sorted(replicas, key=lambda replica: replica.progress)
