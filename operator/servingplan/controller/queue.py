"""The keyed queue: which plans are to be reconciled, each at most once at a time.

In: keys, from watch events, wake-ups and relists. Out: calls of one work function. A key is in the queue at most
once, is never worked twice at the same time, and is worked again when it was added meanwhile. Failures of one
key delay that key alone. It knows nothing of plans or clusters. For use within one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays after failures of a key: first_s * 2^(failures - 1), at most longest_s, less up to ``jitter``.

    first_s is also the shortest distance between a failure and the next attempt, whatever adds the key.
    """

    first_s: float = 1.0
    longest_s: float = 300.0
    jitter: float = 0.2

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row."""
        doubled = self.first_s * 2.0 ** min(failures - 1, 32)
        return min(self.longest_s, doubled) * (1 - self.jitter * random.random())  # noqa: S311  no secret


@dataclass(slots=True, kw_only=True)
class _Entry:
    """What the queue knows of one key; forgotten when nothing of it is left to know."""

    queued: bool = False
    running: bool = False
    again: bool = False  # added while running
    failures: int = 0
    not_before_s: float = 0.0  # loop time
    timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        return not (self.queued or self.running or self.again or self.failures or self.timer)


class KeyedQueue(Generic[K]):
    """Works keys, serially per key, at most ``workers`` at a time, between `start` and `pause` or `stop`.

    work: called with a key; returns the seconds after which to work the key again, or None. Its exceptions are
    failures of that key. on_failure: told key, exception and the delay until the next attempt, for logs and
    metrics.
    """

    def __init__(
        self,
        work: Callable[[K], Awaitable[float | None]],
        *,
        workers: int = 4,
        backoff: Backoff | None = None,
        on_failure: Callable[[K, Exception, float], None] | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"a queue needs at least one worker, not {workers}")
        self._work = work
        self._workers = workers
        self._backoff = backoff or Backoff()
        self._on_failure = on_failure
        self._entries: dict[K, _Entry] = {}
        self._ready: deque[K] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = False

    def add(self, key: K) -> None:
        """Work the key soon; while it is being worked: once more afterwards."""
        self.add_after(key, 0.0)

    def add_after(self, key: K, delay_s: float) -> None:
        """Work the key after ``delay_s`` real seconds, or earlier where it is added earlier."""
        entry = self._entries.setdefault(key, _Entry())
        now_s = asyncio.get_running_loop().time()
        due_s = max(now_s + delay_s, entry.not_before_s)
        if due_s > now_s:
            self._set_timer(key, entry, due_s)
        elif entry.running:
            entry.again = True
        else:
            self._enqueue(key, entry)

    def discard(self, key: K) -> None:
        """Forget the key, its delays and failures; work on it that has begun goes on."""
        entry = self._entries.get(key)
        if entry is None:
            return
        self._clear_timer(entry)
        entry.queued = entry.again = False
        entry.failures, entry.not_before_s = 0, 0.0
        self._drop_if_idle(key, entry)

    def start(self) -> None:
        """Begin, or go on, to work what is queued. Keys may be added before."""
        self._started = True
        self._pump()

    def pause(self) -> None:
        """Begin no more work. What runs goes on; what is queued is kept for `start`."""
        self._started = False

    async def stop(self, grace_s: float = 5.0) -> None:
        """Begin no more work, forget delays, wait ``grace_s`` seconds for what runs, then cancel it."""
        self.pause()
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for entry in self._entries.values():
            self._clear_timer(entry)

    async def idle(self) -> None:
        """Wait until nothing runs and nothing can run now; delayed keys do not count."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def cancel_running(self) -> None:
        """Cancel the work that runs, for loss of leadership; its keys are queued again."""
        for task in list(self._tasks):
            task.cancel()

    @property
    def depth(self) -> int:
        """How many keys are ready and wait for a worker."""
        return sum(entry.queued for entry in self._entries.values())

    def failures(self, key: K) -> int:
        """How often the key failed in a row."""
        entry = self._entries.get(key)
        return entry.failures if entry else 0

    # ---- inside ----

    def _enqueue(self, key: K, entry: _Entry) -> None:
        self._clear_timer(entry)
        if not entry.queued:
            entry.queued = True
            self._ready.append(key)
        self._pump()

    def _set_timer(self, key: K, entry: _Entry, due_s: float) -> None:
        if entry.queued:
            return
        if entry.timer is not None and entry.timer.when() <= due_s:
            return
        self._clear_timer(entry)
        entry.timer = asyncio.get_running_loop().call_at(due_s, self._timer_fired, key)

    def _timer_fired(self, key: K) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.timer = None
        if entry.running:
            entry.again = True
        else:
            self._enqueue(key, entry)

    def _pump(self) -> None:
        while self._started and self._ready and len(self._tasks) < self._workers:
            key = self._ready.popleft()
            entry = self._entries.get(key)
            if entry is None or not entry.queued or entry.running:
                continue
            entry.queued, entry.running = False, True
            task = asyncio.get_running_loop().create_task(self._run(key, entry), name=f"work {key}")
            self._tasks.add(task)
            task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._pump()

    async def _run(self, key: K, entry: _Entry) -> None:
        try:
            again_after_s = await self._work(key)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # not ours: something that the work awaited was cancelled
                self._failed(key, entry, RuntimeError(f"work on {key} ended by a stray cancellation: {error}"))
                return
            self._finished(key, entry, again_after_s=0.0)
            raise
        except Exception as error:  # noqa: BLE001  one key's failure, of whatever kind, is that key's alone
            self._failed(key, entry, error)
        else:
            entry.failures, entry.not_before_s = 0, 0.0
            self._finished(key, entry, again_after_s=again_after_s)

    def _failed(self, key: K, entry: _Entry, error: Exception) -> None:
        entry.failures += 1
        delay_s = self._backoff.delay_s(entry.failures)
        entry.not_before_s = asyncio.get_running_loop().time() + min(self._backoff.first_s, delay_s)
        self._finished(key, entry, again_after_s=delay_s)
        if self._on_failure is None:
            _log.error("work on %s failed; next attempt in %.1f s", key, delay_s, exc_info=error)
        else:
            self._on_failure(key, error, delay_s)

    def _finished(self, key: K, entry: _Entry, *, again_after_s: float | None) -> None:
        entry.running = False
        if entry.again:
            entry.again = False
            self.add(key)
        if again_after_s is not None:
            self.add_after(key, again_after_s)
        self._drop_if_idle(key, entry)

    def _clear_timer(self, entry: _Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None

    def _drop_if_idle(self, key: K, entry: _Entry) -> None:
        if entry.idle and self._entries.get(key) is entry:
            del self._entries[key]
