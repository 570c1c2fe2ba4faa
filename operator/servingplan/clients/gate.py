"""Who may write: the gate that every mutating request passes immediately before it is sent.

In: the time-out of the request. Out: permission, which leadership gives and takes back. Where nothing gates
writes (a command line, the Lease itself), `OpenGate` is used.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from servingplan.errors import ClusterError


class NotLeading(ClusterError):
    """Another process leads, or may lead before the request would end: this one may not write now.

    Nothing went wrong and nothing is to be retried: the process that leads observes the same cluster.
    """


class MutationGate(Protocol):
    """Lets mutating requests through while it is certain that no other process does the same."""

    def admit(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        """Permit one request that ends within ``timeout_s`` seconds, as an asynchronous context.

        Raises `NotLeading` on entry where permission is refused, and from within the block, which is then
        cancelled, where it is lost. Raises TimeoutError where the block takes longer than ``timeout_s``.
        """


class OpenGate:
    """Always open; still bounds the time of a request."""

    def admit(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        """Permit it."""
        return asyncio.timeout(timeout_s)
