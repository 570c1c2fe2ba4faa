"""Reads the API server's audit log: who wrote what, when, and with which answer.

In: the log file of a cluster that was started with ``audit=True``. Out: `Write` values in the order of the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One mutating request that the API server answered.

    time: its arrival. user: on whose behalf, so the impersonated user where there is one; a service account is
    ``system:serviceaccount:NAMESPACE:NAME``. resource: plural, as in ``deployments``. code: the HTTP status.
    """

    time: datetime
    user: str
    user_agent: str
    verb: str
    api_group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    dry_run: bool

    @classmethod
    def parse(cls, line: str) -> Self:
        """From one line of the log."""
        event: dict[str, Any] = json.loads(line)
        target = event.get("objectRef", {})
        user = event.get("impersonatedUser") or event["user"]
        return cls(
            time=datetime.fromisoformat(event["requestReceivedTimestamp"]),
            user=user.get("username", ""),
            user_agent=event.get("userAgent", ""),
            verb=event["verb"],
            api_group=target.get("apiGroup", ""),
            resource=target.get("resource", ""),
            subresource=target.get("subresource", ""),
            namespace=target.get("namespace", ""),
            name=target.get("name", ""),
            code=event.get("responseStatus", {}).get("code", 0),
            dry_run="dryRun" in parse_qs(urlsplit(event["requestURI"]).query),
        )


class AuditLog:
    """The audit log of one cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self, *, since: datetime | None = None, user: str | None = None) -> list[Write]:
        """The writes so far, in the order of their answers; ``since`` is aware, and compared with their arrival."""
        return [
            write
            for write in self._writes()
            if (since is None or write.time >= since) and (user is None or write.user == user)
        ]

    def _writes(self) -> Iterator[Write]:
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as log:
            for line in log:
                # The server may be in the middle of the last line.
                if line.endswith("\n"):
                    yield Write.parse(line)
