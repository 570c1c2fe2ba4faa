"""The wire of feedback: where signals come from, and which of them may raise replicas.

Place in the flow: part of ``v1alpha1``; ``resolve`` turns it into ``planning.plan.Feedback``. A plan names a source
that whoever installs the operator has defined; it states no address and no query.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema

from servingplan.api import rules
from servingplan.api.objectives import ObjectiveSpec
from servingplan.api.wire import PATH_PATTERN, PORT_PATTERN, Name, Replicas, Wire, ruled
from servingplan.planning.units import DURATION_PATTERN

_AUTO_OR: dict[str, Any] = {"x-kubernetes-int-or-string": True}

Waiting = Annotated[Any, WithJsonSchema(_AUTO_OR | ruled(rules.AUTO_OR_NUMBER))]
InFlight = Annotated[Any, WithJsonSchema(_AUTO_OR | ruled(rules.AUTO_OR_AMOUNT))]
"""The rules alone judge them: a union would give one problem for each of its members."""

StaleAfter = Annotated[
    str,
    Field(max_length=32, pattern=DURATION_PATTERN, json_schema_extra=ruled(rules.POSITIVE_DURATION, rules.STALE_LIMIT)),
]


class PrometheusSpec(Wire):
    """A Prometheus of the operator's installation."""

    source: Name = Field(default="default", description="Its name, as whoever installed the operator defined it.")


class ScrapeSpec(Wire):
    """The pods' own metrics, where there is no Prometheus."""

    port: Annotated[str, Field(min_length=1, max_length=15, pattern=PORT_PATTERN)] = Field(
        default="http", description="Name or number of the pods' port."
    )
    path: Annotated[str, Field(max_length=253, pattern=PATH_PATTERN)] = Field(
        default="/metrics", description="Path of the metrics."
    )


class RaiseWhenSpec(Wire):
    """Which signals may raise, and from which values on."""

    arrivals: bool = Field(default=True, description="More requests arrive than the schedule expects.")
    in_flight_per_replica: InFlight = Field(
        default=None,
        description="Requests running and waiting per replica, from which on one more is added; auto is 85 % of those "
        "at capacity, as the plan's benchmark measured them. Off where left out, and with auto without a benchmark.",
    )
    tpot_breach: bool = Field(default=True, description="The TPOT objective is not kept.")
    ttft_breach: bool = Field(default=True, description="The TTFT objective is not kept while requests wait.")
    waiting_per_replica: Waiting = Field(
        default="auto",
        description="Requests waiting per replica; auto is half of the queue that the TTFT objective allows, 0 is off.",
    )
    queue_time: ObjectiveSpec | None = Field(
        default=None, description="Time in the queue; it confirms other signals and raises nothing by itself."
    )
    preemption_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.05, description="Preemptions per finished request; 0 is off."
    )
    rejections: bool = Field(default=True, description="Requests are refused by admission.")


class ForesightSpec(Wire):
    """Replicas for what arrivals of the last days and minutes say of the next ones."""

    miss_price: Annotated[float, Field(ge=0.1, le=100_000)] = Field(
        default=20,
        description="What it is worth not to miss any request, as a multiple of the replica-hours that serving them "
        "takes; with 20, missing 1 % of them costs as much as 20 % more replicas. More is more head room.",
    )


class FeedbackSpec(Wire):
    """The check against reality. It raises above the plan, and never lowers below it."""

    keeps: ClassVar = (rules.ONE_SIGNAL_SOURCE, rules.FORESIGHT_HAS_A_PAST)

    prometheus: PrometheusSpec | None = Field(default=None, description="Signals from a Prometheus.")
    scrape: ScrapeSpec | None = Field(default=None, description="Signals from the pods themselves.")
    raise_when: RaiseWhenSpec = Field(default=RaiseWhenSpec(), description="What may raise.")
    foresight: ForesightSpec | None = Field(
        default=None, description="Raise by what the last days say too; needs prometheus. Off where left out."
    )
    max_extra: Replicas = Field(default=3, description="Most replicas above what the schedule asks for.")
    stale_after: StaleAfter = Field(default="90s", description="Readings that are older do not count.")
