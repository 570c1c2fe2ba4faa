"""What every evidence kind states alike: the Job that works, and the file that it reads.

In: made by ``api.referenced`` alone (and by builders in tests). Out: read by ``rendering.runner``. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMapFile:
    """A file in a ConfigMap."""

    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFile:
    """A file on a persistent volume. path: relative to its root."""

    claim_name: str
    path: str


DataFile = ConfigMapFile | ClaimFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """The Job that works. claim: keeps its work; None where an empty directory does."""

    image: str
    resources: Mapping[str, Any]
    claim: str | None
