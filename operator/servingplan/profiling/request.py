"""What a log holds: requests, or how many came in a step. Made by ``formats`` and ``history``, counted by ``tally``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Request(NamedTuple):
    """One logged request; a tuple, because a log holds millions.

    at: seconds since 1970 in UTC. Tokens are None where they are not logged, tenant and priority empty. blocks: hashes
    of the prompt's blocks from its beginning on, where the log has them.
    """

    at: float
    input_tokens: int | None = None
    output_tokens: int | None = None
    tenant: str = ""
    priority: str = ""
    blocks: Sequence[Hashable] = ()


class Step(NamedTuple):
    """How many requests came in [at, at + seconds); None where nothing was recorded."""

    at: float
    seconds: float
    requests: float | None


Logged = Request | Step
