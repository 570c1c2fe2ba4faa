"""One run of the ramp: one rate, one seed, what came of it.

In: made by ``seen`` from a measurement, or read back from a file. Out: read by ``level``, ``search`` and
``bottleneck``. Plain numbers alone, so that a ramp can be kept as JSON and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servingplan.benchmarking.goodput import Block


class VoidReason(StrEnum):
    """Why a run says nothing about the server. Documented, one by one, in docs/reference/bench-json.md."""

    DISPATCH_RATE = "DispatchRate"
    DISPATCH_LAG = "DispatchLag"
    CLIENT_BUSY = "ClientBusy"
    OUTPUT_TOKENS = "OutputTokens"
    INPUT_TOKENS = "InputTokens"
    WARM_CACHE = "WarmCache"
    COLD_CACHE = "ColdCache"
    COMPILATION = "Compilation"
    OTHER_REQUESTS = "OtherRequests"
    NEIGHBOUR = "Neighbour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """One reason why a run does not count."""

    reason: VoidReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A quantity over the requests of the window; seconds."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What the engine's own metrics said in the window.

    waiting, waiting_for_capacity: means. waiting_early, waiting_late: means of the first and last third. running_p50,
    running_high (95th percentile): requests. kv_p90: 0 to 1. preemptions, finished, rejections: counted in the window.
    prefix_hit_share: of prompt tokens; None without prompts. iteration_tokens: shares of iterations by the upper edge
    of their number of tokens, in order. api_cores: processor time of the API server per second. queue_s, inference_s,
    latency_s: means of finished requests, as the engine counts them.
    """

    waiting: float
    waiting_for_capacity: float | None
    waiting_early: float
    waiting_late: float
    running_p50: float
    running_high: float
    kv_p90: float | None
    preemptions: float
    finished: float
    arrived: float
    rejections: float
    prefix_hit_share: float | None
    iteration_tokens: tuple[tuple[float, float], ...]
    api_cores: float | None
    queue_s: float | None
    inference_s: float | None
    latency_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """The fixed probe before and after a run: median seconds a request."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What the client did. dispatch_rate: requests/s over the whole run. lag_p99: seconds. cores: None where unknown.

    input_tokens, output_tokens: means of all answered requests of the run, which are compared with what was sent.
    silence: the longest time without a token while requests were in flight, in the window, in seconds; None where the
    result does not tell. silences: how many of at least `validity.STALL_S`.
    """

    dispatch_rate: float
    lag_p99: float
    cores: float | None
    silence: float | None
    silences: int
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one run saw in its window. misses: requests that missed each limit, by objective, and ``failed``.

    others: requests on the server that were not the run's; None without its metrics. tokens: means a request.
    """

    sent: int
    failed: int
    misses: dict[str, int]
    ttft: Spread | None
    tpot: Spread | None
    e2el: Spread | None
    itl_median: float | None
    input_tokens: float
    input_tokens_p95: float
    output_tokens: float
    in_flight_mean: float
    in_flight_p99: float
    client: Client
    engine: Engine | None
    probes: Probes | None
    others: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measurement at `rate` requests/s. took_s: everything it took, probes included.

    blocks: counts of the window, empty where unfinished. extended: its window was twice as long. queue_rises: more and
    more waited through the window. unfinished: the server was still behind when the run had to end.
    unjudged: rules that could not be judged, because something was not readable.
    """

    rate: float
    seed: int
    extended: bool = False
    took_s: float
    window_s: float
    blocks: tuple[Block, ...]
    voids: tuple[Void, ...] = ()
    unjudged: tuple[VoidReason, ...] = ()
    queue_rises: bool = False
    unfinished: bool = False
    seen: Seen | None = None

    @property
    def counts(self) -> bool:
        """Whether it says something about the server."""
        return not self.voids


def engine_mean(seen: Sequence[Seen], value: Callable[[Engine], float | None]) -> float | None:
    """The mean over the runs whose engine was readable and says it; None where none is."""
    found = [number for one in seen if one.engine is not None and (number := value(one.engine)) is not None]
    return float(np.mean(found)) if found else None
