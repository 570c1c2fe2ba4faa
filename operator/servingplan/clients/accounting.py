"""What a request counts as: verb, resource and status code, with few distinct values.

In: method, path and query as sent, by this package or by kopf. Out: calls of an observer per attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

NO_ANSWER = "none"
"""The code of an attempt that ended without an answer."""

_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_CORE_DEPTH, _GROUP_DEPTH = 2, 3  # /api/v1/..., /apis/<group>/<version>/...


class RequestObserver(Protocol):
    """Is told of every attempt of a request."""

    def __call__(self, *, verb: str, resource: str, code: str, seconds: float) -> None:
        """Count one attempt. code: the status, or ``none``; resource: as in ``deployments.apps/scale``."""


def describe_request(method: str, path: str, query: Mapping[str, str]) -> tuple[str, str]:
    """Name verb and resource as the API server's audit log does: ``("patch", "deployments.apps/scale")``."""
    parts = [part for part in path.split("/") if part]
    depth = {"api": _CORE_DEPTH, "apis": _GROUP_DEPTH}.get(parts[0] if parts else "", 0)
    if not depth or len(parts) <= depth:
        return _WRITES.get(method, "get"), "discovery"
    group = parts[1] if depth == _GROUP_DEPTH else ""
    rest = parts[depth:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    subresource = f"/{rest[2]}" if len(rest) > 2 else ""
    resource = f"{rest[0]}{'.' if group else ''}{group}{subresource}"
    return _verb(method, named=len(rest) > 1, watch=query.get("watch", "") in {"true", "1"}), resource


def _verb(method: str, *, named: bool, watch: bool) -> str:
    if method in _WRITES:
        return _WRITES[method]
    if watch:
        return "watch"
    return "get" if named else "list"
