"""How a demo is ended from outside: always with everything removed, and never twice.

In: signals. Out: KeyboardInterrupt while it plays, and nothing while it cleans up.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def no_more_interrupts() -> None:
    """What ends a demo is not interrupted: half of it would be left behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end a demo as Ctrl-C does: with everything removed."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
