"""A latency limit on the wire, as objectives and feedback state it.

Place in the flow: part of ``v1alpha1`` and ``feedback``.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from servingplan.api import rules
from servingplan.api.wire import PositiveDuration, Wire


class ObjectiveSpec(Wire):
    """A latency limit that a percentile of the requests keeps."""

    keeps: ClassVar = (rules.ONE_PERCENTILE,)

    p50: PositiveDuration | None = Field(default=None, description="Limit that half of the requests keep.")
    p90: PositiveDuration | None = Field(default=None, description="Limit that 90 % of the requests keep.")
    p95: PositiveDuration | None = Field(default=None, description="Limit that 95 % of the requests keep.")
    p99: PositiveDuration | None = Field(default=None, description="Limit that 99 % of the requests keep.")
