"""What a ModelEvaluation says to the plans that ask for it.

Place in the flow: in, a ModelEvaluation as the cluster or a file has it, however little of it is there; out, the part
of it that decides. ``references`` reads it here, ``resolve`` puts it into the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servingplan.planning.acceptance import Evaluation, Verdict

WAITS_FOR_A_PERSON = frozenset({"Suspended", "RunnerFailed"})
"""Reasons of the condition Complete after which no result comes by itself."""


def evaluation(live: Mapping[str, Any]) -> Evaluation:
    """What it measured, its verdict, and whether one is still to come.

    A status that speaks of an earlier spec, as just after an edit, says nothing of this one, and neither does a verdict
    that stands there while the work goes on again.
    """
    metadata, status = _fields(live.get("metadata")), _fields(live.get("status"))
    if status.get("observedGeneration") != metadata.get("generation", status.get("observedGeneration")):
        return Evaluation()
    conditions = _conditions(status)
    complete, valid = conditions.get("Complete", {}), conditions.get("Valid", {})
    if complete.get("status") != "True":
        # What status has beside the conditions is of the work before.
        refused = valid.get("status") == "False"
        waits = refused or complete.get("reason") in WAITS_FOR_A_PERSON
        return Evaluation(moving=not waits, state=_words(valid if refused else complete))
    difference, verdict = _fields(status.get("difference")), status.get("verdict")
    return Evaluation(
        variant=_text(_fields(status.get("variant")).get("digest")),
        verdict=Verdict(verdict) if isinstance(verdict, str) and verdict in set(Verdict) else None,
        moving=False,
        state=_words(complete),
        items=_count(difference.get("items")),
        needed=_count(difference.get("needed")),
    )


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = status.get("conditions")
    entries = [_fields(entry) for entry in listed] if isinstance(listed, list) else []
    return {str(entry.get("type")): entry for entry in entries}


def _words(condition: Mapping[str, Any]) -> str:
    """``RunnerFailed: the message``; empty where there is no condition."""
    return ": ".join(filter(None, (_text(condition.get("reason")), _text(condition.get("message")))))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
