"""A ScaledObject of KEDA as values, with what KEDA refuses in it.

In: a manifest as plain JSON. Out: a `ScaledObject`, and a problem for each trigger of type cron that KEDA refuses; one
of those stops the whole object from scaling. Defaults are KEDA's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from servingplan.errors import InputError, Problem
from servingplan.migrating.keda_cron import CronTrigger
from servingplan.migrating.robfig import Schedule, parse
from servingplan.planning.target import TargetRef

API_VERSION, KIND = "keda.sh/v1alpha1", "ScaledObject"

DEFAULT_MAXIMUM = 100
DEFAULT_COOLDOWN = timedelta(seconds=300)
DEFAULT_STABILIZATION = timedelta(seconds=300)
"""How long the HPA behind a ScaledObject waits before it follows a fall."""

PAUSED = ("autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledObject:
    """What decides when a ScaledObject scales, and to what.

    minimum: 0 where not stated. idle: replicas where no trigger is active, None where not stated. cooldown: how long
    replicas stay when the last trigger became inactive, before they go to 0 or idle; None where not stated. others:
    types of the other triggers, in order. stabilization: of the HPA's falls. formula: scaling modifiers take the place
    of the largest trigger.
    """

    namespace: str
    name: str
    target: TargetRef
    minimum: int
    maximum: int
    idle: int | None
    cooldown: timedelta | None
    fallback: int | None
    stabilization: timedelta
    paused: bool
    formula: bool
    crons: Sequence[CronTrigger]
    others: Sequence[str]

    @property
    def outside(self) -> int:
        """Replicas where no trigger is active: those of the minimum, or idle."""
        return self.minimum if self.idle is None else self.idle

    def bounded(self, replicas: int) -> int:
        """What an active trigger that asks for so many comes to."""
        return max(self.minimum, 1, min(replicas, self.maximum))


def scaled_object(body: Mapping[str, Any], namespace: str, name: str) -> tuple[ScaledObject, tuple[Problem, ...]]:
    """The values, and what KEDA refuses. Raises InputError where the manifest is no ScaledObject that can be read."""
    spec = _mapping(body, "spec", "spec")
    target = _mapping(spec, "scaleTargetRef", "spec.scaleTargetRef")
    triggers = spec.get("triggers")
    if not isinstance(triggers, list) or not all(isinstance(trigger, Mapping) for trigger in triggers):
        raise InputError(_problem("spec.triggers", "InvalidScaledObject", "is no list of triggers: state at least one"))
    crons: list[CronTrigger] = []
    refused: list[Problem] = []
    for index, trigger in enumerate(triggers):
        if trigger.get("type") == "cron":
            found = _cron(index, trigger.get("metadata"))
            crons += [found] if isinstance(found, CronTrigger) else []
            refused += [] if isinstance(found, CronTrigger) else found
    advanced = spec.get("advanced") or {}
    return (
        ScaledObject(
            namespace=namespace,
            name=name,
            target=TargetRef(
                api_version=str(target.get("apiVersion") or "apps/v1"),
                kind=str(target.get("kind") or "Deployment"),
                name=str(target.get("name") or ""),
            ),
            minimum=_whole(spec, "minReplicaCount") or 0,
            maximum=_whole(spec, "maxReplicaCount") or DEFAULT_MAXIMUM,
            idle=_whole(spec, "idleReplicaCount"),
            cooldown=_seconds(spec, "cooldownPeriod"),
            fallback=_whole(spec.get("fallback") or {}, "replicas"),
            stabilization=_stabilization(advanced),
            paused=_is_paused(body),
            formula=bool((advanced.get("scalingModifiers") or {}).get("formula")),
            crons=tuple(crons),
            others=tuple(str(trigger.get("type")) for trigger in triggers if trigger.get("type") != "cron"),
        ),
        tuple(refused),
    )


def _cron(index: int, metadata: Any) -> CronTrigger | list[Problem]:
    path = f"spec.triggers[{index}].metadata"
    stated = {key: str(value) for key, value in metadata.items()} if isinstance(metadata, Mapping) else {}
    problems: list[Problem] = []
    schedules = [_schedule(stated, key, path, problems) for key in ("start", "end")]
    zone, replicas = _zone(stated, path, problems), _desired(stated, path, problems)
    start, end = schedules
    if stated.get("start") and stated.get("start") == stated.get("end"):
        message = "start and end are the same, which KEDA refuses: state when the window ends"
        problems.append(_problem(f"{path}.end", "StartEqualsEnd", message))
    if problems or start is None or end is None or zone is None:
        return problems
    return CronTrigger(index=index, start=start, end=end, zone=zone, replicas=replicas)


def _schedule(stated: Mapping[str, str], key: str, path: str, problems: list[Problem]) -> Schedule | None:
    try:
        return parse(stated.get(key, ""))
    except ValueError as error:
        problems.append(_problem(f"{path}.{key}", "InvalidCron", f"KEDA refuses it: {error}"))
        return None


def _zone(stated: Mapping[str, str], path: str, problems: list[Problem]) -> ZoneInfo | None:
    name = stated.get("timezone", "")
    if name in available_timezones():
        return ZoneInfo(name)
    message = f"KEDA refuses it: {name!r} is no time zone of the IANA database; write for example Europe/Berlin"
    problems.append(_problem(f"{path}.timezone", "UnknownTimeZone", message))
    return None


def _desired(stated: Mapping[str, str], path: str, problems: list[Problem]) -> int:
    text = stated.get("desiredReplicas", "")
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    message = f"KEDA refuses it: {text!r} is no number of replicas above 0"
    problems.append(_problem(f"{path}.desiredReplicas", "InvalidReplicas", message))
    return 0


def _stabilization(advanced: Mapping[str, Any]) -> timedelta:
    behavior = (advanced.get("horizontalPodAutoscalerConfig") or {}).get("behavior") or {}
    stated = _seconds(behavior.get("scaleDown") or {}, "stabilizationWindowSeconds")
    return DEFAULT_STABILIZATION if stated is None else stated


def _is_paused(body: Mapping[str, Any]) -> bool:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    return any(str(annotations.get(key, "false")).lower() not in {"false", "f"} for key in PAUSED)


def _mapping(body: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    found = body.get(key)
    if not isinstance(found, Mapping):
        raise InputError(_problem(path, "InvalidScaledObject", "is missing or no object: this is no ScaledObject"))
    return found


def _whole(spec: Mapping[str, Any], key: str) -> int | None:
    value = spec.get(key)
    return value if isinstance(value, int) and value >= 0 else None


def _seconds(spec: Mapping[str, Any], key: str) -> timedelta | None:
    value = _whole(spec, key)
    return None if value is None else timedelta(seconds=value)


def _problem(path: str, reason: str, message: str) -> Problem:
    return Problem(path=path, reason=reason, message=message)


def is_scaled_object(body: Mapping[str, Any]) -> bool:
    """Whether a manifest is a ScaledObject, of any version of KEDA's API."""
    return body.get("kind") == KIND and str(body.get("apiVersion", "")).startswith("keda.sh/")
