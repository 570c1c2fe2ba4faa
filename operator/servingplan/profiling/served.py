"""What a Prometheus kept of some days that were served: arrivals, how well they were served, and replicas.

In: an address, what to select, a span of whole hours, the limits of the objectives. Out: `Served`, by step and by hour,
with None where nothing was kept. Synchronous, for the command line alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_api_client import PrometheusConnect

from servingplan.clients.queries import bucket_engines, bucket_rises
from servingplan.profiling.asking import Access, connected, one_series, range_of
from servingplan.profiling.history import STEP, Wanted, arrivals

HOUR = timedelta(hours=1)

HISTOGRAMS: Mapping[str, str] = {
    "ttft": "vllm:time_to_first_token_seconds",
    "tpot": "vllm:request_time_per_output_token_seconds",
    "e2el": "vllm:e2e_request_latency_seconds",
}
"""Histograms of requests by objective. Older engines count tokens in the place of requests for `tpot`: not these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Requests of an hour that kept a limit: at least and at most so many, of how many.

    Equal where the limit is an edge of the histogram.
    """

    at_least: float
    at_most: float
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Requests by step of `step_s` seconds from `start` on, and by hour those within each limit; None: nothing kept.

    replicas: at the beginning of each step; empty where none were asked for. queries: of arrivals and replicas.
    """

    start: datetime
    step_s: int
    requests: Sequence[float | None]
    within: Mapping[str, Sequence[Within | None]]
    replicas: Sequence[float | None]
    queries: Sequence[str]


def served(access: Access, wanted: Wanted, limits: Mapping[str, timedelta], replicas: str | None) -> Served:
    """Ask for all of it. replicas: PromQL of one series, None where they are known otherwise.

    Raises Unreachable, Refused, InputError where no arrivals are there, and UsageError for a token that cannot be read.
    """
    server = connected(access)
    steps, query = arrivals(server, wanted)
    within = {name: _within(server, HISTOGRAMS[name], limit, wanted) for name, limit in limits.items()}
    counted = [] if replicas is None else _replicas(server, replicas, wanted)
    return Served(
        start=wanted.start,
        step_s=round(STEP.total_seconds()),
        requests=[step.requests for step in steps],
        within=within,
        replicas=counted,
        queries=(query, *(() if replicas is None else (replicas,))),
    )


def _replicas(server: PrometheusConnect, query: str, wanted: Wanted) -> list[float | None]:
    values = one_series(server, query, wanted.start, wanted.end - STEP, STEP, option="--replicas")
    return [None if math.isnan(value) else value for _, value in values]


def _within(server: PrometheusConnect, histogram: str, limit: timedelta, wanted: Wanted) -> list[Within | None]:
    """By hour, read at edges that all engines of the hour have: at others a sum is of some of them alone."""
    window = f"{HOUR.total_seconds():.0f}s"
    rises = _by_edge(server, bucket_rises(histogram, wanted.matchers, window), wanted)
    engines = _by_edge(server, bucket_engines(histogram, wanted.matchers, window), wanted)
    return [
        _between({edge: rise for edge, rise in of_hour.items() if having.get(edge) == max(having.values())}, limit)
        for of_hour, having in zip(rises, engines, strict=True)
    ]


def _by_edge(server: PrometheusConnect, query: str, wanted: Wanted) -> list[dict[float, float]]:
    """By hour, a value for each edge."""
    edges: list[dict[float, float]] = [{} for _ in range(round((wanted.end - wanted.start) / HOUR))]
    for series in range_of(server, query, wanted.start + HOUR, wanted.end, HOUR):
        edge = float(series["metric"]["le"])
        for at, text in series["values"]:
            hour = round((float(at) - wanted.start.timestamp()) / HOUR.total_seconds()) - 1
            if math.isfinite(value := float(text)):
                edges[hour][edge] = value
    return edges


def _between(edges: Mapping[float, float], limit: timedelta) -> Within | None:
    """Cumulative counts by edge, read at a limit."""
    if math.inf not in edges:
        return None
    count, limit_s = edges[math.inf], limit.total_seconds()
    below = max((edge for edge in edges if edge <= limit_s), default=None)
    above = min(edge for edge in edges if edge >= limit_s)
    return Within(
        at_least=0.0 if below is None else min(edges[below], count), at_most=min(edges[above], count), count=count
    )
