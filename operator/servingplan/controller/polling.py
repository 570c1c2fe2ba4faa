"""Polling: who is asked again and again, as often as the plans' clock says, one task each.

In: who is due, and how one of them is asked. Out: rounds that keep nobody else, for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from servingplan.controller.clock import Clock

Asked = TypeVar("Asked")
Subject = TypeVar("Subject")

POLL_EVERY = timedelta(seconds=15)
"""On the plans' clock: as often as Prometheus scrapes where it was tuned for autoscaling."""

SHORTEST_POLL_S = 0.5
"""In real time: a demo's clock may run faster than servers answer."""


def interval_s(clock: Clock) -> float:
    """Real seconds from one poll to the next."""
    return max(SHORTEST_POLL_S, clock.seconds_until(clock.now() + POLL_EVERY))


async def poll_for_ever(
    due: Callable[[], Mapping[Asked, Subject]],
    ask: Callable[[Asked, Subject], Coroutine[Any, Any, None]],
    *,
    clock: Clock,
    what: str,
) -> None:
    """Ask all that are due, at even intervals. Who has not answered yet is not asked again, and keeps nobody else.

    due: who is to be asked, and for what. what: how the tasks are called, before whom they ask.
    """
    running: dict[Asked, asyncio.Task[None]] = {}
    next_s = time.monotonic()
    try:
        while True:
            running = {asked: task for asked, task in running.items() if not task.done()}
            for asked, subject in due().items():
                if asked not in running:
                    running[asked] = asyncio.create_task(ask(asked, subject), name=f"{what} {asked}")
            next_s = max(next_s + interval_s(clock), time.monotonic())
            await asyncio.sleep(next_s - time.monotonic())
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
