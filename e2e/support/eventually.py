"""Waiting in tests: as long as it takes, at most a generous while, and with what was seen last on failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

POLL_S = 0.2


def eventually(look: Callable[[], T], until: Callable[[T], Any] = bool, *, what: str, timeout_s: float = 60.0) -> T:
    """Calls ``look`` until ``until`` holds for what it returns, and returns that.

    After ``timeout_s`` the test fails with ``what`` and the last value. Errors of ``look`` are not swallowed. Where
    ``until`` is a comparison such as ``(3).__eq__``, a value that it cannot compare does not hold.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look()
        holds = until(seen)
        if holds is not NotImplemented and holds:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout_s:.0f} s; last seen: {seen!r}")
        time.sleep(POLL_S)
