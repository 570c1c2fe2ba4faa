"""Work that takes long: Ctrl-C and SIGTERM stop it alike, and it can go on.

In: a coroutine. Out: its value; or, after the signal and once it has cleaned up, the end of the process with
`INTERRUPTED` and a word on what is kept.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from servingplan.cli.output import talk

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

Value = TypeVar("Value")


def finished(work: Coroutine[Any, Any, Value], kept_words: Callable[[], str]) -> Value:
    """The value of work that goes on where it was. kept_words: what is kept of it, and where, after it was stopped."""
    try:
        return asyncio.run(_until_terminated(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        talk(f"Stopped. {kept_words()}; the same command goes on.")
        sys.exit(INTERRUPTED)


async def _until_terminated(work: Coroutine[Any, Any, Value]) -> Value:
    """SIGTERM stops the work as Ctrl-C does."""
    task = asyncio.ensure_future(work)
    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
