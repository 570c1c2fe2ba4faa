"""Prometheus: what it says about the engines of all plans, one query per signal, and what it remembers of one.

In: an administrator's `Source`, and the limits of the plans that use it. Out: a `Round`, from which each plan takes
the readings of its pods, or `NoSignals`. A round is asked at one instant of the server's clock, and is as old as its
samples say, not as the answer.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

import aiohttp

from servingplan.clients.bounded import Answer, Bounds, ask
from servingplan.clients.engine_series import (
    HISTOGRAMS,
    NAMES,
    Latency,
    Limits,
    NoReading,
    Signal,
)
from servingplan.clients.queries import Edges, Matchers, buckets_of, edges_of, freshness, jobs_without_labels, value_of
from servingplan.clients.rounds import CLOCKS_DIFFER, Assembly, Histograms, Numbers, Round, edge_of
from servingplan.clients.sources import Authorization, Source
from servingplan.clients.vectors import Element, read_series, read_vector
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals

MAX_ANSWER_BYTES = 32 * 2**20
"""The buckets of 5,000 pods take 4 MB."""

QUERIES_AT_ONCE = 4
"""Prometheus runs 20 queries at once by default, and is not ours alone."""

MOST_POINTS = 10_080
"""Of one range query: a week of minutes. Prometheus refuses more than 11,000."""

HISTORY_TIMEOUT_S = 30.0
"""A week of minutes takes longer than what pods say now, and nobody waits for it."""

EDGES_EVERY_S = 300.0
"""Edges change with the configuration of engines. Until they are read again, bounds are wider, never wrong."""

RELABEL_RULE = """relabel_configs:
- source_labels: [__meta_kubernetes_namespace]
  target_label: namespace
- source_labels: [__meta_kubernetes_pod_name]
  target_label: pod"""
"""What a scrape job of role `pod` or `endpoints` needs so that its series say which pod they are of."""

T = TypeVar("T")


class QueryObserver(Protocol):
    """Is told of every request to a source, or to a pod."""

    def __call__(self, *, source: str, outcome: str) -> None:
        """Count one request. outcome: ``ok``, or the reason why it gave nothing."""


class PrometheusClient:
    """Asks one source. Made within the running event loop; closed with `close`.

    parser: where answers are decoded, a thread of its own. observe: is told of every query.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        *,
        parser: Executor,
        observe: QueryObserver,
        now: Callable[[], datetime],
        user_agent: str = "servingplan",
    ) -> None:
        self._name = name
        self._source = source
        self._authorization = Authorization(name, source)
        self._parser = parser
        self._observe = observe
        self._now = now
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._what = f"source {name} ({source.url})"
        self._trusted: object = None
        self._session: aiohttp.ClientSession | None = None
        self._edges: dict[Latency, dict[str, Edges]] = {}
        self._edges_read_at_s = -math.inf

    @property
    def matchers(self) -> Matchers:
        """The labels that every series must have."""
        return self._source.matchers

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(self, limits: Collection[Limits]) -> Round | NoSignals:
        """One round, for every pod that the source knows. Never raises: what is wrong is a `NoSignals`."""
        try:
            return await self._read(limits)
        except NoReading as error:
            return error.signals

    async def over_time(self, query: str, *, start_s: float, step_s: float, count: int) -> Sequence[float] | NoSignals:
        """The values of one series at `count` instants from `start_s` (Unix seconds) on, NaN where there is none.

        Never raises: what is wrong is a `NoSignals`.
        """
        values = array("f", [math.nan]) * count
        try:
            for first in range(0, count, MOST_POINTS):
                last = min(count, first + MOST_POINTS) - 1
                form = {"query": query, "step": f"{step_s:.3f}", "timeout": f"{HISTORY_TIMEOUT_S:g}s"}
                form |= {"start": f"{start_s + first * step_s:.3f}", "end": f"{start_s + last * step_s:.3f}"}
                take = partial(read_series, what=self._what)
                found = await self._ask("query_range", form, take, timeout_s=HISTORY_TIMEOUT_S)
                for at_s, value in found:
                    values[min(max(first, round((at_s - start_s) / step_s)), last)] = value
        except NoReading as error:
            return error.signals
        return values

    async def _read(self, limits: Collection[Limits]) -> Round:
        matchers = self._source.matchers
        assembly = Assembly(source=self._what, newest=self._now() + CLOCKS_DIFFER)
        stamps = await self._query(freshness(matchers), assembly.stamps)
        if stamps is None:
            raise self._nothing_there()
        unlabelled = await self._labels_missing() if stamps.unlabelled else None
        if unlabelled is not None and not stamps.by_pod:
            raise unlabelled
        at_s = stamps.evaluated_s
        buckets = await self._bucket_queries(limits, at_s)
        answers: list[Any] = await _all_or_first_error(
            [
                *(self._numbers(signal, assembly, at_s) for signal in Signal),
                *(self._histograms(*query, assembly, at_s) for query in buckets.items()),
            ]
        )
        return await self._in_thread(
            lambda: assembly.round(
                self._name,
                stamps,
                dict(zip(Signal, answers, strict=False)),
                dict(zip(buckets, answers[len(Signal) :], strict=True)),
                unlabelled.signals if unlabelled is not None else None,
            )
        )

    async def _numbers(self, signal: Signal, assembly: Assembly, at_s: float) -> Numbers:
        series = NAMES[signal][0]
        query = value_of(signal, self._source.matchers)
        return await self._query(query, lambda elements: assembly.numbers(elements, series), at_s)

    async def _histograms(self, latency: Latency, query: str, assembly: Assembly, at_s: float) -> Histograms:
        series = HISTOGRAMS[latency][0]
        return await self._query(query, lambda elements: assembly.histograms(elements, series), at_s)

    # ---- one query ----

    async def _query(self, query: str, take: Callable[[Iterator[Element]], T], at_s: float | None = None) -> T:
        """Ask, and take from the answer what is needed of it: whole answers of thousands of pods are not kept."""
        form = {"query": query, "timeout": f"{self._source.timeout:g}s"}
        if at_s is not None:
            form["time"] = f"{at_s:.3f}"
        return await self._ask(
            "query",
            form,
            lambda answer: take(read_vector(answer, what=self._what)),
            timeout_s=self._source.timeout,
        )

    async def _ask(self, endpoint: str, form: Mapping[str, str], take: Callable[[Answer], T], *, timeout_s: float) -> T:
        """Ask an endpoint of the API; `take` reads the answer, in the parser's thread."""
        outcome = "ok"
        try:
            answer = await ask(
                await self._connected(),
                f"{self._source.url}/api/v1/{endpoint}",
                what=self._what,
                bounds=Bounds(timeout_s=timeout_s, answer_bytes=MAX_ANSWER_BYTES),
                headers=self._headers | self._authorization.headers(),
                form=form,
            )
            return await self._in_thread(lambda: take(answer))
        except NoReading as error:
            outcome = error.reason.value
            raise
        finally:
            self._observe(source=self._name, outcome=outcome)

    async def _connected(self) -> aiohttp.ClientSession:
        """The connections, made anew when the certificates to trust have changed."""
        trusted = self._authorization.trusted()
        if self._session is None or trusted is not self._trusted:
            await self.close()
            connector = aiohttp.TCPConnector(limit=QUERIES_AT_ONCE, ssl=trusted if trusted is not None else True)
            self._session = aiohttp.ClientSession(connector=connector)
            self._trusted = trusted
        return self._session

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parser, work)

    # ---- buckets ----

    async def _bucket_queries(self, limits: Collection[Limits], at_s: float) -> dict[Latency, str]:
        """The query for each latency that a plan limits: the edges around the limits, and no others."""
        limited = {latency: sorted(_stated(limits, latency)) for latency in Latency}
        wanted = {latency: stated for latency, stated in limited.items() if stated}
        await self._find_edges(wanted, at_s)
        queries = {}
        for latency, stated in wanted.items():
            exposed = {name: edges for name, edges in self._edges[latency].items() if edges.series}
            if exposed:
                around = {name: edges.around(stated) for name, edges in exposed.items()}
                queries[latency] = buckets_of(around, self._source.matchers)
        return queries

    async def _find_edges(self, wanted: Collection[Latency], at_s: float) -> None:
        if at_s - self._edges_read_at_s >= EDGES_EVERY_S:
            self._edges.clear()
            self._edges_read_at_s = at_s
        for latency in wanted:
            if latency not in self._edges:
                queries = edges_of(latency, self._source.matchers)
                answers = await _all_or_first_error(self._query(query, _edges, at_s) for query in queries.values())
                self._edges[latency] = dict(zip(queries, answers, strict=True))

    # ---- what is missing ----

    def _nothing_there(self) -> NoReading:
        stated = ",".join(f'{label}="{value}"' for label, value in sorted(self._source.matchers.items()))
        return NoReading(
            Reason.METRICS_MISSING,
            f"{self._what} has no series {NAMES[Signal.RUNNING][0]}{{{stated}}}; let it scrape /metrics of the "
            "engines' port, and keep every series that begins with vllm:",
        )

    async def _labels_missing(self) -> NoReading:
        jobs = await self._query(jobs_without_labels(self._source.matchers), list)
        names = sorted({element.labels.get("job", "without a name") for element in jobs})[:3]
        return NoReading(
            Reason.LABELS_MISSING,
            f"{self._what}: {NAMES[Signal.RUNNING][0]} of job {', '.join(names) or 'unknown'} carries no label "
            f"namespace, or none named pod; add to that scrape job:\n{RELABEL_RULE}",
        )


def _edges(elements: Iterable[Element]) -> Edges:
    return Edges(series={one.labels["le"]: int(one.value) for one in elements if edge_of(one) is not None})


def _stated(limits: Collection[Limits], latency: Latency) -> set[float]:
    found = (each.of(latency) for each in limits)
    return {limit for limit in found if limit is not None}


async def _all_or_first_error(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All results; with the first error everything else is cancelled."""
    tasks = [asyncio.create_task(part) for part in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
