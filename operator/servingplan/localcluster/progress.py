"""Shows on standard error what a build does while it takes minutes.

In: the lines of ``go build -v``. On a terminal one live line, otherwise one plain line every half minute, so that a
CI log neither fills up nor looks dead. Fast steps (a warm cache) stay silent after the first line.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import Self

PLAIN_EVERY_S = 30.0
LIVE_EVERY_S = 0.25


class BuildProgress:
    """One step that takes a while; use it as a context manager and feed it with `saw`."""

    def __init__(self, headline: str) -> None:
        self._headline = headline
        self._lines: deque[str] = deque(maxlen=15)
        self._downloaded = 0
        self._compiled = 0
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._live = sys.stderr.isatty()
        self._reporter = threading.Thread(target=self._report, name="build-progress", daemon=True)

    def __enter__(self) -> Self:
        self._say(f"{self._headline}.")
        self._reporter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._reporter.join()
        outcome = "done" if kind is None else "failed"
        self._say(f"  {outcome} after {self._elapsed()}.")

    def saw(self, line: str) -> None:
        """Takes one line of the build's output."""
        self._lines.append(line)
        if line.startswith("go: downloading "):
            self._downloaded += 1
        elif line and " " not in line:
            # With -v, go names each package as it starts to compile it.
            self._compiled += 1

    def last_lines(self) -> str:
        """The end of the output, for an error message."""
        return "\n".join(self._lines) or "(none)"

    def _report(self) -> None:
        if self._live:
            self._report_live()
            return
        while not self._ended.wait(PLAIN_EVERY_S):
            self._say(f"  {self._elapsed()}: {self._counts()}")

    def _report_live(self) -> None:
        # Imported here: rich costs more than all else in this package, and a warm cache never gets here.
        from rich.console import Console  # noqa: PLC0415

        console = Console(stderr=True)
        with console.status("") as status:
            while not self._ended.wait(LIVE_EVERY_S):
                current = self._lines[-1] if self._lines else ""
                status.update(f"{self._elapsed()}  {self._counts()}  {current}"[: console.width - 4])

    def _counts(self) -> str:
        if not self._lines:
            return "waiting"
        return f"{self._downloaded} modules downloaded, {self._compiled} packages compiled"

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        return f"{minutes}:{seconds:02d} min"

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - talk belongs on standard error
