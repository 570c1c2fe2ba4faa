"""The keyed queue, on a real event loop. Delays are tiny; what is asserted is order and count, never duration."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from servingplan.controller.queue import Backoff, KeyedQueue

QUICK = Backoff(first_s=0.001, longest_s=0.004, jitter=0.0)


class Work:
    """Notes what is worked, and holds it until it is let go."""

    def __init__(self, *, hold: bool = False) -> None:
        self.calls: list[str] = []
        self.running: Counter[str] = Counter()
        self.most_at_once = 0
        self.most_per_key = 0
        self.fail: set[str] = set()
        self.again_after: dict[str, float] = {}
        self.go = asyncio.Event()
        if not hold:
            self.go.set()

    async def __call__(self, key: str) -> float | None:
        self.calls.append(key)
        self.running[key] += 1
        self.most_at_once = max(self.most_at_once, sum(self.running.values()))
        self.most_per_key = max(self.most_per_key, self.running[key])
        try:
            await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.running[key] -= 1
        if key in self.fail:
            raise RuntimeError(f"{key} is broken")
        return self.again_after.pop(key, None)


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_key_that_is_added_twice_before_it_is_worked_is_worked_once() -> None:
    work = Work()
    queue = KeyedQueue(work)
    queue.add("a")
    queue.add("a")
    queue.start()
    await queue.idle()
    assert work.calls == ["a"]


async def test_a_key_that_is_added_while_it_is_worked_is_worked_once_more_and_not_at_the_same_time() -> None:
    work = Work(hold=True)
    queue = KeyedQueue(work, workers=4)
    queue.start()
    queue.add("a")
    await until(lambda: work.running["a"])
    queue.add("a")
    queue.add("a")
    await asyncio.sleep(0)
    work.go.set()
    await queue.idle()
    assert work.calls == ["a", "a"]
    assert work.most_per_key == 1


async def test_no_more_keys_are_worked_at_once_than_there_are_workers() -> None:
    work = Work(hold=True)
    queue = KeyedQueue(work, workers=3)
    queue.start()
    for key in "abcdefgh":
        queue.add(key)
    await until(lambda: sum(work.running.values()) == 3)
    assert queue.depth == 5
    work.go.set()
    await queue.idle()
    assert work.most_at_once == 3
    assert sorted(work.calls) == list("abcdefgh")


async def test_a_key_that_always_fails_is_repeated_and_delays_no_other() -> None:
    work = Work()
    work.fail = {"bad"}
    failed: list[tuple[str, float]] = []
    queue = KeyedQueue(
        work, workers=1, backoff=QUICK, on_failure=lambda key, _error, delay_s: failed.append((key, delay_s))
    )
    queue.start()
    queue.add("bad")
    for index in range(20):
        queue.add(f"good-{index}")
    await until(lambda: work.calls.count("bad") >= 4)
    await queue.stop()
    assert {key for key in work.calls if key.startswith("good")} == {f"good-{index}" for index in range(20)}
    assert [delay for _, delay in failed[:4]] == [0.001, 0.002, 0.004, 0.004]


async def test_a_success_resets_the_delay() -> None:
    work = Work()
    work.fail = {"a"}
    delays: list[float] = []
    queue = KeyedQueue(work, backoff=QUICK, on_failure=lambda _key, _error, delay_s: delays.append(delay_s))
    queue.start()
    queue.add("a")
    await until(lambda: len(delays) == 2)
    work.fail.clear()
    await until(lambda: queue.failures("a") == 0)
    work.fail = {"a"}
    queue.add("a")
    await until(lambda: len(delays) >= 3)
    await queue.stop()
    assert delays[2] == 0.001


async def test_an_event_for_a_failing_key_is_acted_on_before_its_long_backoff_ends() -> None:
    work = Work()
    work.fail = {"a"}
    queue = KeyedQueue(work, backoff=Backoff(first_s=0.001, longest_s=3600.0, jitter=0.0), on_failure=lambda *_: None)
    queue.start()
    queue.add("a")
    await until(lambda: queue.failures("a") >= 3)
    work.fail.clear()
    queue.add("a")
    await until(lambda: queue.failures("a") == 0)
    await queue.stop()
    assert work.calls.count("a") == 4


async def test_a_key_that_asks_to_be_worked_again_is() -> None:
    work = Work()
    work.again_after = {"a": 0.001}
    queue = KeyedQueue(work)
    queue.start()
    queue.add("a")
    await until(lambda: len(work.calls) >= 2)
    await queue.stop()
    assert set(work.calls) == {"a"}


async def test_the_earlier_of_two_delays_counts() -> None:
    work = Work()
    queue = KeyedQueue(work)
    queue.start()
    queue.add_after("a", 0.001)
    queue.add_after("a", 3600)
    queue.add_after("b", 3600)
    queue.add_after("b", 0.001)
    await until(lambda: len(work.calls) >= 2)
    await queue.stop()
    assert sorted(work.calls) == ["a", "b"]


async def test_nothing_is_worked_before_the_start_nor_after_a_pause_and_nothing_is_lost() -> None:
    work = Work()
    queue = KeyedQueue(work)
    queue.add("a")
    await asyncio.sleep(0)
    assert work.calls == []
    queue.start()
    await queue.idle()
    queue.pause()
    queue.add("b")
    await asyncio.sleep(0)
    assert work.calls == ["a"]
    queue.start()
    await queue.idle()
    assert work.calls == ["a", "b"]


async def test_cancelled_work_is_queued_again() -> None:
    work = Work(hold=True)
    queue = KeyedQueue(work)
    queue.start()
    queue.add("a")
    await until(lambda: work.running["a"])
    queue.pause()
    queue.cancel_running()
    await queue.idle()
    assert work.calls == ["a"]
    work.go.set()
    queue.start()
    await queue.idle()
    assert work.calls == ["a", "a"]
    assert queue.failures("a") == 0


async def test_a_stray_cancellation_inside_the_work_is_a_failure_of_that_key() -> None:
    async def work(_key: str) -> None:
        raise asyncio.CancelledError

    failed: list[Exception] = []
    queue = KeyedQueue(work, backoff=QUICK, on_failure=lambda _key, error, _delay_s: failed.append(error))
    queue.start()
    queue.add("a")
    await until(lambda: len(failed) >= 2)
    await queue.stop()
    assert isinstance(failed[0], RuntimeError)


async def test_a_failure_report_that_fails_itself_does_not_lose_the_key() -> None:
    work = Work()
    work.fail = {"a"}

    def report(*_: object) -> None:
        raise ValueError("the log is full")

    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    queue = KeyedQueue(work, backoff=QUICK, on_failure=report)
    queue.start()
    queue.add("a")
    await until(lambda: work.calls.count("a") >= 3)
    assert queue.failures("a") >= 2
    await queue.stop()


async def test_stop_lets_work_end_within_its_grace() -> None:
    work = Work(hold=True)
    queue = KeyedQueue(work)
    queue.start()
    queue.add("a")
    await until(lambda: work.running["a"])
    stopping = asyncio.create_task(queue.stop(grace_s=30))
    await asyncio.sleep(0)
    work.go.set()
    await stopping
    assert work.running["a"] == 0
    queue.add("b")
    await asyncio.sleep(0)
    assert work.calls == ["a"]


async def test_stop_cancels_what_outlives_its_grace() -> None:
    work = Work(hold=True)
    queue = KeyedQueue(work)
    queue.start()
    queue.add("a")
    await until(lambda: work.running["a"])
    await queue.stop(grace_s=0.001)
    assert work.running["a"] == 0


async def test_a_discarded_key_is_not_worked() -> None:
    work = Work()
    queue = KeyedQueue(work)
    queue.add("gone")
    queue.add_after("gone too", 0.001)
    queue.add("here")
    queue.discard("gone")
    queue.discard("gone too")
    queue.add_after("later", 0.002)
    queue.start()
    await until(lambda: "later" in work.calls)
    await queue.stop()
    assert work.calls == ["here", "later"]


async def test_the_queue_keeps_nothing_of_keys_that_are_done() -> None:
    work = Work()
    queue = KeyedQueue(work)
    queue.start()
    for index in range(100):
        queue.add(f"plan-{index}")
    await queue.idle()
    assert queue._entries == {}


def test_a_queue_without_workers_is_refused() -> None:
    async def work(_key: str) -> None: ...

    with pytest.raises(ValueError, match="at least one worker"):
        KeyedQueue(work, workers=0)
