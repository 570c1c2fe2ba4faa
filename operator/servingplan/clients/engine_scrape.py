"""The pods' own /metrics, for plans whose engines no Prometheus scrapes.

In: addresses of pods. Out: a `Reading` each, or why there is none. A few pods at a time, each bounded in time and size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

import aiohttp

from servingplan.clients.bounded import Bounds, ask
from servingplan.clients.engine_metrics import read_metrics
from servingplan.clients.engine_series import Limits, NoReading
from servingplan.clients.prometheus import QueryObserver
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading

SCRAPE = Bounds(timeout_s=3.0, answer_bytes=4 * 2**20)
"""An engine answers within milliseconds, with 0.1 MB for each of the engines in a pod."""

PODS_AT_ONCE = 32
"""So that thousands of pods neither exhaust file descriptors nor wait for the slowest of them."""

SCRAPES = "pods"
"""The source that scrapes are counted as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one pod's engine serves its metrics. path: with the leading slash."""

    pod: str
    ip: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The address."""
        host = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"http://{host}:{self.port}{self.path}"


class EngineScraper:
    """Asks engines. Made within the running event loop; closed with `close`.

    parser: where answers are decoded, a thread of its own. now: instants of readings. observe: is told of every scrape.
    """

    def __init__(
        self,
        *,
        parser: Executor,
        observe: QueryObserver,
        now: Callable[[], datetime],
        bounds: Bounds = SCRAPE,
        user_agent: str = "servingplan",
    ) -> None:
        self._parser = parser
        self._observe = observe
        self._now = now
        self._bounds = bounds
        self._slots = asyncio.Semaphore(PODS_AT_ONCE)
        self._headers = {"User-Agent": user_agent}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(self, endpoint: Endpoint, limits: Limits) -> Reading | NoSignals:
        """What one pod says now. Never raises: what is wrong is a `NoSignals`."""
        outcome = "ok"
        try:
            async with self._slots:
                return await self._read(endpoint, limits)
        except NoReading as error:
            outcome = error.reason.value
            return error.signals
        finally:
            self._observe(source=SCRAPES, outcome=outcome)

    async def _read(self, endpoint: Endpoint, limits: Limits) -> Reading:
        what = f"pod {endpoint.pod} ({endpoint.url})"
        answer = await ask(self._connected(), endpoint.url, what=what, bounds=self._bounds)
        at = self._now()
        if answer.status >= 500 or answer.status == 429:
            raise NoReading(Reason.METRICS_UNREACHABLE, f"{what} answered {answer.status}: {answer.excerpt}")
        if answer.status != 200:
            message = f"{what} answered {answer.status}: {answer.excerpt}. Check port and path of the plan's scrape"
            raise NoReading(Reason.METRICS_REFUSED, message)
        return await asyncio.get_running_loop().run_in_executor(
            self._parser,
            lambda: read_metrics(answer.body.decode("utf-8", "replace"), pod=endpoint.pod, at=at, limits=limits),
        )

    def _connected(self) -> aiohttp.ClientSession:
        """The session, made with the first scrape: a process that ends before it has none to close."""
        if self._session is None:
            # A pod that is gone keeps no connection, and a new one may have its address: none is kept between scrapes.
            connector = aiohttp.TCPConnector(limit=PODS_AT_ONCE, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self._session
