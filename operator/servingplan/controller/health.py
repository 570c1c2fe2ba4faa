"""``/healthz``, ``/readyz`` and ``/metrics``, served from the operator's own event loop.

In: what the process knows about itself. Out: answers for the kubelet and Prometheus. A loop that is stuck
answers nothing, which is what a liveness probe has to see.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from servingplan.controller.metrics import CONTENT_TYPE
from servingplan.errors import UsageError

WATCH_STUCK_S = 180.0
"""Longer than the longest pause between two attempts of the watch's supervisor, so that it cannot flap."""


SHUTDOWN_S = 1.0
"""A scrape under way may end; nothing waits longer for it."""


class Health:
    """What the process knows about its own state. Seconds are monotonic."""

    def __init__(
        self, *, watch_stuck_s: float = WATCH_STUCK_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._watch_stuck_s = watch_stuck_s
        self._monotonic = monotonic
        self._watch_seen_s = monotonic()
        self.caches_synced = False
        self.leadership_known = False

    def watch_alive(self) -> None:
        """Note that the watch's supervisor runs: it watches, or it has just tried again."""
        self._watch_seen_s = self._monotonic()

    def unhealthy(self) -> str | None:
        """Say why the process is to be restarted; None where it is not."""
        silent_s = self._monotonic() - self._watch_seen_s
        if silent_s > self._watch_stuck_s:
            return f"the watch's supervisor has not run for {silent_s:.0f} s"
        return None

    def not_ready(self) -> str | None:
        """Say why the process is not ready yet; None where it is. A process that waits to lead is ready."""
        if not self.caches_synced:
            return "the first list of plans and workloads is not complete"
        if not self.leadership_known:
            return "it is not known yet who leads"
        return None


class HealthServer:
    """Serves health and metrics until closed."""

    def __init__(self, *, health: Health, metrics: Callable[[], bytes], host: str, port: int) -> None:
        self._health = health
        self._metrics = metrics
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Begin to serve and return the port. Raises UsageError where it cannot be bound."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._serve_metrics)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise UsageError(
                f"cannot serve health and metrics on {self._host}:{self._port} ({error.strerror}); "
                "choose another --health-port"
            ) from error
        self._runner = runner
        return int(runner.addresses[0][1])

    async def close(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            with suppress(RuntimeError):
                await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _: web.Request) -> web.Response:
        return _answer(self._health.unhealthy())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _answer(self._health.unhealthy() or self._health.not_ready())

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": CONTENT_TYPE})


def _answer(trouble: str | None) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)
