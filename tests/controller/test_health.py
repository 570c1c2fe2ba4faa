"""Health and metrics over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from servingplan.controller.health import WATCH_STUCK_S, Health, HealthServer
from servingplan.controller.metrics import OperatorMetrics
from servingplan.errors import UsageError


class Served:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.health = Health(monotonic=lambda: self.now_s)
        self.url = ""

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    server = HealthServer(health=made.health, metrics=OperatorMetrics(version="0.1.0").render, host="127.0.0.1", port=0)
    made.url = f"http://127.0.0.1:{await server.start()}"
    yield made
    await server.close()


async def test_a_process_that_starts_is_healthy_but_not_ready(served: Served) -> None:
    assert await served.get("/healthz") == (200, "ok\n")
    code, text = await served.get("/readyz")
    assert (code, "first list" in text) == (503, True)


async def test_ready_needs_both_caches_and_a_known_leader(served: Served) -> None:
    served.health.caches_synced = True
    code, text = await served.get("/readyz")
    assert (code, "who leads" in text) == (503, True)
    served.health.leadership_known = True
    assert await served.get("/readyz") == (200, "ok\n")


async def test_a_watch_that_is_stuck_is_neither_healthy_nor_ready_until_it_runs_again(served: Served) -> None:
    served.health.caches_synced = served.health.leadership_known = True
    served.now_s = WATCH_STUCK_S + 1
    assert (await served.get("/healthz"))[0] == 503
    assert (await served.get("/readyz"))[0] == 503
    served.health.watch_alive()
    assert (await served.get("/healthz"))[0] == 200


async def test_metrics_are_served_in_prometheus_format(served: Served) -> None:
    async with aiohttp.ClientSession() as session, session.get(served.url + "/metrics") as answer:
        assert answer.content_type == "text/plain"
        assert "servingplan_leader_status 0.0" in await answer.text()


async def test_a_port_in_use_is_said_with_the_flag(served: Served) -> None:
    port = int(served.url.rsplit(":", 1)[1])
    second = HealthServer(health=served.health, metrics=bytes, host="127.0.0.1", port=port)
    with pytest.raises(UsageError, match="--health-port"):
        await second.start()
