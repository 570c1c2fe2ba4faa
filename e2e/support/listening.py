"""Plans that listen to their engines, and what a test reads of what they made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from e2e.support.eventually import eventually
from e2e.support.loop import Loop
from e2e.support.operator import Operator
from e2e.support.plans import Object, events, until_condition, until_status
from servingplan.localcluster.kubectl import Kubectl
from support.specs import document

TWO_POLLS = 36
"""Queries of the operator; a poll has 16 signals."""

SCALE_DOWN = {"step": 1, "every": "2m", "stabilization": "5m"}


def feedback(**raise_when: Any) -> dict[str, Any]:
    """Silence of nine real seconds is none yet: a busy machine, not an engine."""
    return {"prometheus": {}, "maxExtra": 5, "staleAfter": "3m"} | ({"raiseWhen": raise_when} if raise_when else {})


def day(*windows: tuple[str, str, str, float], base: float) -> dict[str, Any]:
    """A schedule of a Tuesday: ("name", start, end, requests/s)."""
    return {
        "timeZone": "Europe/Berlin",
        "base": {"requestsPerSecond": base},
        "windows": [
            {"name": name, "days": ["Tue"], "start": start, "end": end, "requestsPerSecond": rate}
            for name, start, end, rate in windows
        ],
    }


def served(
    name: str,
    namespace: str,
    *windows: tuple[str, str, str, float],
    base: float,
    capacity: float = 2.5,
    **spec: Any,
) -> dict[str, Any]:
    """A plan with feedback."""
    fields = {
        "schedule": day(*windows, base=base),
        "capacity": {"requestsPerSecond": capacity},
        "bounds": {"minReplicas": 1, "maxReplicas": 14},
        "scaleDown": SCALE_DOWN,
        "feedback": feedback(),
    }
    return document(name, namespace, **(fields | spec))


def trail(found: Object, name: str) -> Mapping[str, str]:
    """A step of the trail of a status; nothing where there is none yet."""
    return next((step for step in found.get("decision", ()) if step["name"] == name), {})


def until_trail(kubectl: Kubectl, plan: str, name: str, reason: str, timeout_s: float = 60.0) -> Mapping[str, str]:
    """Waits until a step of a plan's trail has a reason; returns the step."""
    found = until_status(
        kubectl, plan, lambda s: trail(s, name).get("reason") == reason, what=f"{name}: {reason}", timeout_s=timeout_s
    )
    return trail(found, name)


def until_heard(kubectl: Kubectl, *names: str) -> None:
    """Waits until the arrivals of plans are known."""
    for name in names:
        until_condition(kubectl, name, "MetricsAvailable", "True", "MetricsHeard")
        until_trail(kubectl, name, "arrivals", "WithinPlan")


def notes(kubectl: Kubectl, name: str, *reasons: str) -> list[str]:
    """What events with these reasons say of a plan."""
    return [event["note"] for event in events(kubectl, name) if event["reason"] in reasons]


def until_running(operator: Operator, loop: Loop, pod: str, count: float) -> None:
    """Waits until an operator has heard that a pod runs so many requests, from Prometheus."""
    query = f'vllm:num_requests_running{{pod="{pod}"}}'

    def scraped() -> list[float]:
        return [float(each["value"][1]) for each in loop.prometheus.query(query)]

    def asked() -> float:
        found = re.search(
            r'^servingplan_signal_queries_total\{.*outcome="ok".*\} (.+)$', operator.get("/metrics"), re.M
        )
        return 0.0 if found is None else float(found.group(1))

    eventually(scraped, [count].__eq__, what=f"{count} running of {pod}")
    before = asked()
    eventually(asked, lambda now: now >= before + TWO_POLLS, what="two polls")
