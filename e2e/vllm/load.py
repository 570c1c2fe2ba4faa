"""Load on an address while a test goes on: clients in a process of their own, and how their requests have ended."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from e2e.vllm.clients import Connections, End, Ended

END_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many requests ended how; `losses` says what the others had instead."""

    whole: int
    cut: int
    failed: int
    hung: int
    losses: tuple[str, ...]

    @property
    def lost(self) -> int:
        """All that are not whole."""
        return self.cut + self.failed + self.hung

    def __str__(self) -> str:
        """In one line."""
        return f"{self.whole} whole, {self.cut} cut, {self.failed} failed, {self.hung} hung"


class Load:
    """Requests to `url` from the start of the ``with`` block on; at its end, those in flight are waited for.

    clients: that many, each with one request at a time; or per_s: requests/s whatever becomes of them. tokens: of the
    longest answers; the shortest have half as many.
    """

    def __init__(
        self,
        url: str,
        *,
        tokens: int,
        clients: int = 0,
        per_s: float = 0.0,
        connections: Connections = Connections.EACH,
        model: str = "tiny",
        patience_s: float = 90.0,
    ) -> None:
        load = f"--per-s={per_s}" if per_s else f"--clients={clients}"
        options = (f"--url={url}", f"--model={model}", f"--tokens={tokens}", f"--connections={connections}", load)
        self._command = (sys.executable, "-m", "e2e.vllm.clients", f"--patience-s={patience_s}", *options)
        self._ended: list[Ended] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more, and wait for those in flight. Harmless when repeated."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(END_TIMEOUT_S)
        finally:
            self._process.kill()
            self._reader.join(10)

    def ended(self) -> list[Ended]:
        """The requests that have ended so far."""
        return list(self._ended)

    def counts(self) -> Counts:
        """How those that have ended did."""
        return count(self.ended())

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            fields = json.loads(line)
            self._ended.append(Ended(**fields | {"end": End(fields["end"])}))


def count(ended: list[Ended]) -> Counts:
    """How requests ended."""
    by_end = Counter(each.end for each in ended)
    details = Counter(f"{each.end}: {each.detail}" for each in ended if each.end is not End.WHOLE)
    losses = tuple(f"{number} x {detail}" for detail, number in details.most_common(8))
    return Counts(
        whole=by_end[End.WHOLE], cut=by_end[End.CUT], failed=by_end[End.FAILED], hung=by_end[End.HUNG], losses=losses
    )
