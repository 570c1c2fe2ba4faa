"""The conditions of evidence, and its status while the work goes on and when it is over.

In: where the work stands, the status that is there. Out: the status to apply. What was found before stays in it until
there is something new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from servingplan.errors import Problem
from servingplan.planning.reasons import Reason
from servingplan.rendering.metadata import stable_hash
from servingplan.rendering.situation import Condition, Status
from servingplan.rendering.stated import condition_of
from servingplan.rendering.status import merged_conditions

Json = dict[str, Any]

VALID, COMPLETE = "Valid", "Complete"

_WORK_DIGITS = 8
"""It is part of a Job's name, and tells apart the edits of one object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where the work stands, for people.

    work: see `work_id`. problems: of the spec; then nothing else is known. result: the status' other fields once all is
    over, else None.
    """

    generation: int
    work: str
    now: datetime
    reason: Reason
    message: str
    problems: Sequence[Problem] = ()
    result: Json | None = None


def evidence_status(progress: Progress, previous: Mapping[str, Any]) -> Json:
    """The status to apply over `previous`."""
    kept = {key: value for key, value in previous.items() if key not in {"observedGeneration", "work", "conditions"}}
    found = kept if progress.result is None else progress.result
    conditions = merged_conditions(
        (_valid(progress), _complete(progress)),
        previous.get("conditions", ()),
        generation=progress.generation,
        now=progress.now,
    )
    return {"observedGeneration": progress.generation, "work": progress.work, **found, "conditions": conditions}


def work_id(document: Mapping[str, Any]) -> str:
    """Names what a spec asks for: eight digits that change with every edit but that of ``suspend``."""
    spec = {name: value for name, value in document["spec"].items() if name != "suspend"}
    return stable_hash(spec)[:_WORK_DIGITS]


def is_over(document: Mapping[str, Any]) -> bool:
    """Whether all that the spec asks for is done. An upgrade that adds a default to the spec undoes nothing."""
    status = document.get("status", {})
    same = status.get("observedGeneration") == document["metadata"]["generation"]
    done = condition_of(status, COMPLETE).get("status") == Status.TRUE.value
    return bool(done and (same or status.get("work") == work_id(document)))


def as_seen(document: Mapping[str, Any]) -> Json:
    """The status of what is over, for a spec whose edit asks for nothing else."""
    status, generation = document["status"], document["metadata"]["generation"]
    conditions = [condition | {"observedGeneration": generation} for condition in status["conditions"]]
    return {**status, "observedGeneration": generation, "conditions": conditions}


def _valid(progress: Progress) -> Condition:
    if not progress.problems:
        return Condition(type=VALID, status=Status.TRUE, reason=Reason.RESOLVED, message="the spec resolves")
    text = "; ".join(str(problem) for problem in progress.problems)
    return Condition(type=VALID, status=Status.FALSE, reason=Reason.INVALID, message=text)


def _complete(progress: Progress) -> Condition:
    over = progress.result is not None
    status = Status.TRUE if over else Status.FALSE
    return Condition(type=COMPLETE, status=status, reason=progress.reason, message=progress.message)
