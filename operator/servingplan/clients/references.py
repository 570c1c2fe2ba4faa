"""The coordinates of one object, and its name in sentences. Knows nothing of servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectRef:
    """Which object. namespace is empty for a kind without namespaces."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectRef:
        """Where a manifest or a live object belongs. Raises KeyError where it has no kind or name."""
        metadata = manifest["metadata"]
        return cls(
            api_version=str(manifest["apiVersion"]),
            kind=str(manifest["kind"]),
            name=str(metadata["name"]),
            namespace=str(metadata.get("namespace") or ""),
        )

    def __str__(self) -> str:
        """``Deployment llm/chat``, as errors and events name an object."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
