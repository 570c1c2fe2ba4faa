"""Work that takes long: Ctrl-C and SIGTERM stop it alike, and it can go on.

In: a coroutine. Out: its value, or `CancelledError` after the signal, once it has cleaned up.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

Value = TypeVar("Value")


async def until_terminated(work: Coroutine[Any, Any, Value]) -> Value:
    """SIGTERM stops the work as Ctrl-C does."""
    task = asyncio.ensure_future(work)
    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
