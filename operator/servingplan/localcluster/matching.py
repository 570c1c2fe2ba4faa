"""Conditions on a pod or node in a Stage's selector: a jq key with an operator of label selectors.

Pure; `stages` puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

PREFIX = "localcluster.servingplan.dev"
FAILS_LABEL = f"{PREFIX}/fails"


class Failure(StrEnum):
    """How a pod fails when its label ``localcluster.servingplan.dev/fails`` says so."""

    IMAGE_PULL = "ImagePullBackOff"
    CRASH = "CrashLoopBackOff"


WAITING_REASON = ".status.containerStatuses.[].state.waiting.reason"


def expression(key: str, operator: str, values: Sequence[str] = ()) -> dict[str, Any]:
    """One condition on the object, in kwok's form of a jq key with an operator of label selectors."""
    return {"key": key, "operator": operator} | ({"values": [str(value) for value in values]} if values else {})


def annotation(name: str) -> str:
    """The key of an annotation."""
    return f'.metadata.annotations["{name}"]'


def label(name: str) -> str:
    """The key of a label."""
    return f'.metadata.labels["{name}"]'


def exists(key: str) -> dict[str, Any]:
    """The key has a value."""
    return expression(key, "Exists")


def absent(name: str) -> dict[str, Any]:
    """The annotation is not there."""
    return expression(annotation(name), "DoesNotExist")


def alive() -> dict[str, Any]:
    """It is not being deleted."""
    return expression(".metadata.deletionTimestamp", "DoesNotExist")


def phase(wanted: str) -> dict[str, Any]:
    """The pod is in this phase."""
    return expression(".status.phase", "In", [wanted])


def ready(operator: str) -> dict[str, Any]:
    """Its condition Ready is (``In``) or is not (``NotIn``) True."""
    return expression('.status.conditions.[] | select( .type == "Ready" ) | .status', operator, ["True"])


def fails(failure: Failure) -> dict[str, Any]:
    """Its label asks for this failure."""
    return expression(label(FAILS_LABEL), "In", [failure])


def fails_not(failure: Failure) -> dict[str, Any]:
    """Its label does not ask for this failure."""
    return expression(label(FAILS_LABEL), "NotIn", [failure])


def not_waiting() -> dict[str, Any]:
    """No container waits."""
    return expression(WAITING_REASON, "DoesNotExist")
