"""One heap of next changes: which plan is to be looked at when.

In: keys with the instant of their next change (`next_change_at` of a decision). Out: a call per key whose
instant has come, on the operator's clock. It decides nothing; whoever is woken schedules the next instant.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

from servingplan.controller.clock import Clock

K = TypeVar("K", bound=Hashable)

RECHECK_S = 5.0
"""Longest sleep in real seconds: wall clocks are set, and machines sleep, without telling a waiting process."""


class Wakeups(Generic[K]):
    """Calls ``wake(key)`` once at the instant that the key is scheduled for."""

    def __init__(self, *, clock: Clock, wake: Callable[[K], None], recheck_s: float = RECHECK_S) -> None:
        self._clock = clock
        self._wake = wake
        self._recheck_s = recheck_s
        self._due: dict[K, tuple[datetime, int]] = {}
        self._heap: list[tuple[datetime, int, K]] = []
        self._serial = itertools.count()
        self._changed = asyncio.Event()

    def schedule(self, key: K, when: datetime | None) -> None:
        """Wake the key at ``when`` (aware), instead of when it was scheduled before; None cancels."""
        if when is None:
            self.cancel(key)
            return
        if when.tzinfo is None:
            raise ValueError(f"{when.isoformat()} has no offset; wake-ups are instants")
        known = self._due.get(key)
        if known is not None and known[0] == when:
            return
        serial = next(self._serial)
        self._due[key] = (when, serial)
        heapq.heappush(self._heap, (when, serial, key))
        self._compact()
        self._changed.set()

    def cancel(self, key: K) -> None:
        """Do not wake the key."""
        self._due.pop(key, None)
        self._compact()

    def when(self, key: K) -> datetime | None:
        """Give the instant that the key is scheduled for, if any."""
        due = self._due.get(key)
        return due[0] if due else None

    def __len__(self) -> int:
        return len(self._due)

    def fire_due(self) -> tuple[K, ...]:
        """Wake all keys whose instant has come, in order of instants, and return them."""
        now = self._clock.now()
        woken = []
        while self._heap and (self._stale() or self._heap[0][0] <= now):
            stale = self._stale()
            _, _, key = heapq.heappop(self._heap)
            if not stale:
                del self._due[key]
                woken.append(key)
        for key in woken:
            self._wake(key)
        return tuple(woken)

    async def run(self) -> None:
        """Wake keys until cancelled."""
        while True:
            self._changed.clear()
            self.fire_due()
            try:
                async with asyncio.timeout(self._sleep_s()):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _sleep_s(self) -> float:
        if not self._heap:
            return self._recheck_s
        return min(self._recheck_s, self._clock.seconds_until(self._heap[0][0]))

    def _stale(self) -> bool:
        """Tell whether the top of the heap was cancelled or replaced."""
        _, serial, key = self._heap[0]
        due = self._due.get(key)
        return due is None or due[1] != serial

    def _compact(self) -> None:
        """Keep replaced entries, which stay in the heap until their instant, from piling up."""
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(when, serial, key) for key, (when, serial) in self._due.items()]
            heapq.heapify(self._heap)
