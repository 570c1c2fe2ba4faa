"""Builders of what Prometheus answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from servingplan.clients.bounded import Answer

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def element(value: str = "1", *, at: datetime = NOON, **labels: str) -> dict[str, Any]:
    """One element of an instant vector, evaluated at an instant."""
    return {"metric": labels, "value": [at.timestamp(), value]}


def vector(*elements: dict[str, Any], **more: object) -> Answer:
    """An instant vector as an answer."""
    document = {"status": "success", **more, "data": {"resultType": "vector", "result": list(elements)}}
    return Answer(status=200, content_type="application/json", body=json.dumps(document).encode())


def series(values: Sequence[tuple[float, str]] | None, **more: object) -> Answer:
    """One series over time as an answer, its instants in Unix seconds; None: there is none."""
    result = [] if values is None else [{"metric": {}, "values": values}]
    document = {"status": "success", **more, "data": {"resultType": "matrix", "result": result}}
    return Answer(status=200, content_type="application/json", body=json.dumps(document).encode())
