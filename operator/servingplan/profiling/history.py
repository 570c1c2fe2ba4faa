"""The history of a Prometheus: arrivals in steps of five minutes, lengths and warm prefixes, from vLLM's metrics.

In: an address, what to select, and a span. Out: `Counted`, and the queries that were asked. vLLM counts no arrivals:
they are what got a first token, plus what more waits, plus what was rejected. A gateway's own count wins, where one is
named. Synchronous, for the command line alone; the operator has its own client.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from prometheus_api_client import PrometheusConnect

from servingplan.clients.queries import arrived, bucket_rises, rise
from servingplan.errors import InputError, Problem
from servingplan.profiling.asking import Access, connected, numbers, one_series, range_of
from servingplan.profiling.lengths import Lengths, lengths_of
from servingplan.profiling.request import Step
from servingplan.profiling.tally import Counted, Tally

STEP = timedelta(minutes=5)
"""What a profile states is the busiest five minutes: a finer step would be added up again."""

_DAY = timedelta(days=1)

_INTERPOLATED = "lengths are known by the buckets of vLLM's histograms: quantiles are interpolated inside them"

LENGTHS = {"input": "vllm:request_prompt_tokens", "output": "vllm:request_generation_tokens"}
_PREFIX_HITS, _PREFIX_QUERIES = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for. query: requests/s of a gateway; None for what vLLM counts. start and end are whole steps."""

    matchers: Mapping[str, str]
    query: str | None
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was counted, and how: queries, and what people should know of them."""

    counted: Counted
    queries: tuple[str, ...]
    remarks: tuple[str, ...]


def history(access: Access, wanted: Wanted) -> History:
    """The history.

    Raises Unreachable, Refused, InputError where nothing is there, and UsageError for a token that cannot be read.
    """
    server = connected(access)
    counted, query = _counted(server, wanted)
    given, asked_given = _lengths(server, LENGTHS["input"], wanted)
    answered, asked_answered = _lengths(server, LENGTHS["output"], wanted)
    share, asked_share = _prefix_share(server, wanted)
    counted = replace(counted, input=given, output=answered, prefix_share=share)
    remarks = (_INTERPOLATED,) if given or answered else ()
    return History(counted=counted, queries=(query, *asked_given, *asked_answered, *asked_share), remarks=remarks)


def arrivals(server: PrometheusConnect, wanted: Wanted) -> tuple[list[Step], str]:
    """The requests of each step, None where nothing was kept of it, and the query.

    Raises Unreachable and Refused, and InputError where nothing is there at all.
    """
    query = wanted.query or arrived(wanted.matchers, f"{STEP.total_seconds():.0f}s")
    seconds = STEP.total_seconds()
    times = seconds if wanted.query else 1.0
    steps = [
        Step(at - seconds, seconds, None if math.isnan(value) else max(0.0, value) * times)
        for at, value in one_series(server, query, wanted.start + STEP, wanted.end, STEP, option="--query")
    ]
    if all(step.requests is None for step in steps):
        there = f"Prometheus at {server.url} has nothing of these days for {query}"
        message = f"{there}: check --match, and how long it keeps data"
        raise InputError(Problem(path="", reason="NoHistory", message=message))
    return steps, query


def _counted(server: PrometheusConnect, wanted: Wanted) -> tuple[Counted, str]:
    steps, query = arrivals(server, wanted)
    known = [place for place, step in enumerate(steps) if step.requests is not None]
    tally = Tally()
    tally.add(steps[known[0] : known[-1] + 1])
    return tally.counted, query


# ---- lengths ------------------------------------------------------------------------------------------------


def _days(wanted: Wanted) -> tuple[timedelta, datetime]:
    """How long the spans are whose rises are added up, and the end of the first."""
    span = min(_DAY, wanted.end - wanted.start)
    return span, wanted.end - (wanted.end - wanted.start) // span * span + span


def _lengths(server: PrometheusConnect, name: str, wanted: Wanted) -> tuple[Lengths | None, list[str]]:
    """Lengths from a histogram, spread evenly inside its buckets."""
    span, first = _days(wanted)
    window = f"{span.total_seconds():.0f}s"
    buckets = bucket_rises(name, wanted.matchers, window)
    total = rise(f"{name}_sum", wanted.matchers, window)
    found = range_of(server, buckets, first, wanted.end, span)
    below = {float(each["metric"]["le"]): sum(numbers(each["values"])) for each in found}
    counts = _spread(sorted(below.items()))
    tokens = _risen(server, total, wanted)
    return lengths_of(counts, total=tokens, longest=max(counts, default=0)), [buckets, total]


def _risen(server: PrometheusConnect, query: str, wanted: Wanted) -> float:
    """The rises of all spans and series, added up."""
    span, first = _days(wanted)
    return sum(sum(numbers(each["values"])) for each in range_of(server, query, first, wanted.end, span))


_PARTS = 64
"""A bucket is taken as so many lengths."""


def _spread(buckets: Sequence[tuple[float, float]]) -> Counter[int]:
    """Counts by length from cumulative buckets; what lies above the last finite edge counts there."""
    counts: Counter[int] = Counter()
    edge, before = 0.0, 0.0
    for upper, cumulative in buckets:
        inside = max(0, round(cumulative - before))
        if math.isinf(upper):
            counts[round(edge)] += inside
            break
        parts = max(1, min(_PARTS, round(upper - edge)))
        for part in range(parts):
            length = round(edge + (upper - edge) * (part + 1) / parts)
            counts[length] += inside * (part + 1) // parts - inside * part // parts
        edge, before = upper, max(before, cumulative)
    return +counts


def _prefix_share(server: PrometheusConnect, wanted: Wanted) -> tuple[float | None, list[str]]:
    """Prompt tokens that the engines' prefix caches answered."""
    span, _ = _days(wanted)
    window = f"{span.total_seconds():.0f}s"
    queries = [rise(name, wanted.matchers, window) for name in (_PREFIX_HITS, _PREFIX_QUERIES)]
    hits, asked = (_risen(server, query, wanted) for query in queries)
    return (hits / asked if asked else None), queries
