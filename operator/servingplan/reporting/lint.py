"""What was found about a ScaledObject, as JSON.

In: a `Linted`. Out: the document of ``lint keda -o json``; docs/reference/cli.md names its fields.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from servingplan.migrating.findings import Course, Finding
from servingplan.migrating.lint import Linted
from servingplan.migrating.spans import Spans, total
from servingplan.rendering.times import wire_time
from servingplan.reporting.outlook import problem_document


def linted_document(one: Linted) -> dict[str, Any]:
    """Triggers with their hours, and findings with all their instants."""
    return {
        "scaledObject": {"namespace": one.scaled_object.namespace, "name": one.scaled_object.name},
        "from": wire_time(one.start),
        "to": wire_time(one.end),
        "triggers": [_trigger(course) for course in one.courses],
        "findings": [_finding(finding) for finding in one.findings],
    }


def _trigger(course: Course) -> dict[str, Any]:
    trigger = course.trigger
    return {
        "index": trigger.index,
        "timezone": trigger.zone.key,
        "start": trigger.start.text,
        "end": trigger.end.text,
        "desiredReplicas": trigger.replicas,
        "hoursActive": hours(course.active),
        "hoursIntended": hours(course.intended),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **problem_document(finding.problem),
        "note": finding.note,
        "times": [{"from": wire_time(span.start), "to": wire_time(span.end)} for span in finding.spans],
    }


def hours(spans: Spans) -> float:
    """Hours to a tenth."""
    return round(total(spans) / timedelta(hours=1), 1)
