"""The gate that lets only the leader write.

In: renewals of the Lease, on a monotonic clock. Out: permission for single requests. A request is admitted only
if it ends before leadership could have passed on, and is cancelled when leadership is lost. A process that was
stopped finds the gate shut when it goes on: the monotonic clock went on.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable

from servingplan.clients.gate import NotLeading


def since_boot_s() -> float:
    """Seconds that go on while this process is stopped and, where the system can tell, while it sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LeaderGate:
    """Admits a request only if it ends before the leadership could have passed on."""

    def __init__(self, *, renew_within_s: float, monotonic: Callable[[], float] = since_boot_s) -> None:
        self._renew_within_s = renew_within_s
        self._monotonic = monotonic
        self._renewed_at_s = -math.inf
        self._open = False
        self._scopes: set[asyncio.Timeout] = set()

    def renew(self, at_s: float) -> None:
        """Open, or keep open, until ``at_s`` + renew_within_s on the monotonic clock."""
        self._renewed_at_s = at_s
        self._open = True

    def shut(self) -> None:
        """Shut, and cancel every request that was admitted."""
        self._open = False
        now_s = asyncio.get_running_loop().time()
        for scope in tuple(self._scopes):
            if not scope.expired():
                scope.reschedule(now_s)

    def remaining_s(self) -> float:
        """Seconds until the gate shuts by itself; 0 or less when it is shut."""
        return self._renewed_at_s + self._renew_within_s - self._monotonic() if self._open else 0.0

    @contextlib.asynccontextmanager
    async def admit(self, timeout_s: float) -> AsyncIterator[None]:
        """Permit one request that ends within ``timeout_s`` seconds; see `MutationGate`."""
        if self.remaining_s() < timeout_s:
            raise NotLeading("this process does not lead now, or not for long enough; nothing was sent")
        scope = asyncio.timeout(timeout_s)
        try:
            async with scope:
                self._scopes.add(scope)
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if not self._open:
                raise NotLeading("leadership was lost while a request was under way; it was cancelled") from None
            raise
