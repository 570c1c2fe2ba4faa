"""Latency objectives, as plans, feedback and benchmarks state them: their wire models, and the values that they mean.

Place in the flow: part of ``v1alpha1``, ``feedback`` and ``benchmark``; whoever resolves these converts here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from servingplan.api import rules
from servingplan.api.wire import PositiveDuration, Wire
from servingplan.planning.plan import Objective, Objectives
from servingplan.planning.units import exact, parse_duration


class ObjectiveSpec(Wire):
    """A latency limit that a percentile of the requests keeps."""

    keeps: ClassVar = (rules.ONE_PERCENTILE,)

    p50: PositiveDuration | None = Field(default=None, description="Limit that half of the requests keep.")
    p90: PositiveDuration | None = Field(default=None, description="Limit that 90 % of the requests keep.")
    p95: PositiveDuration | None = Field(default=None, description="Limit that 95 % of the requests keep.")
    p99: PositiveDuration | None = Field(default=None, description="Limit that 99 % of the requests keep.")


class ObjectivesSpec(Wire):
    """What a good request is, and the share that must be good."""

    ttft: ObjectiveSpec | None = Field(default=None, description="Time to first token.")
    tpot: ObjectiveSpec | None = Field(default=None, description="Time per output token after the first.")
    e2el: ObjectiveSpec | None = Field(default=None, alias="e2el", description="End-to-end latency.")
    goodput_share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="Share of requests within all limits; the lowest percentile named where left out."
    )


def objectives(wire: ObjectivesSpec | None) -> Objectives:
    """What a good request is; a share that is not stated is the lowest percentile named."""
    if wire is None:
        return Objectives()
    found = Objectives(ttft=objective(wire.ttft), tpot=objective(wire.tpot), e2el=objective(wire.e2el))
    share = found.lowest_share if wire.goodput_share is None else exact(wire.goodput_share)
    return replace(found, goodput_share=share)


def objective(wire: ObjectiveSpec | None) -> Objective | None:
    """A limit with its percentile."""
    if wire is None:
        return None
    ((percentile, limit),) = wire.model_dump(exclude_none=True).items()
    return Objective(percentile=percentile, limit=parse_duration(limit))
