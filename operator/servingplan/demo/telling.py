"""How a demo is told: live in a terminal, or as plain lines where nobody watches.

In: a record that grows. Out: standard error. Both tell the same.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from servingplan.demo.record import Record
from servingplan.demo.screen import Screen, feed_line, fits


class Teller(Protocol):
    """Tells what is in a record."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; what was there before is there again."""

    def show(self) -> None:
        """Tell what is new."""


class LiveTeller:
    """One screen that is drawn again and again, beside what is on the terminal otherwise."""

    def __init__(self, record: Record, console: Console, *, factor: float) -> None:
        self._screen = Screen(record, factor=factor)
        self._console = console
        self._live = Live(self._screen, console=console, screen=True, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        """Take the terminal's other screen."""
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back, and leave the last view on it where the day was played to its end."""
        self._live.stop()
        if kind is None:
            width, height = self._console.size
            # All but the line that says how to end it.
            for line in self._screen.lines(width, height)[:-1]:
                line.truncate(width, overflow="ellipsis")
                self._console.print(line, no_wrap=True, overflow="ellipsis", highlight=False)

    def show(self) -> None:
        """Draw the screen."""
        self._live.refresh()


class PlainTeller:
    """One line for each thing that happens."""

    def __init__(self, record: Record, console: Console, *, told: int = 0) -> None:
        self._record = record
        self._console = console
        self._told = told

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell the rest."""
        self.show()

    def show(self) -> None:
        """Tell the lines that are new."""
        for line in self._record.feed[self._told :]:
            self._console.print(feed_line(self._record, line), soft_wrap=True, highlight=False)
        self._told = len(self._record.feed)


def teller(record: Record, *, factor: float) -> Teller:
    """Live where both streams are a terminal that is large enough, plain otherwise."""
    console = Console(stderr=True)
    width, height = console.size
    dumb = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    if sys.stdout.isatty() and sys.stderr.isatty() and not dumb and fits(width, height):
        return LiveTeller(record, console, factor=factor)
    return plain_teller(record)


def plain_teller(record: Record, *, told: int = 0) -> PlainTeller:
    """Plain lines without colour. told: lines of the feed that were told already."""
    return PlainTeller(record, Console(stderr=True, color_system=None, force_terminal=False), told=told)
