"""A CapacityBenchmark's spec as validated values.

In: made by ``api.resolve_benchmark`` alone (and by builders in tests). Out: read by ``rendering.benchmark``. Values
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from servingplan.planning.plan import Objectives
from servingplan.planning.runner import DataFile, Runner
from servingplan.planning.target import Engine, SecretKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What serves already, behind a Service. model, tokenizer: None where the server's own name leads to both."""

    name: str
    port: int
    replicas: int
    model: str | None
    tokenizer: str | None
    api_key: SecretKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPool:
    """A pool beside a plan's own, with that plan's engine. sizes: its replicas, ascending, one piece of work each."""

    plan: str
    engine: Engine
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A CapacityBenchmark, validated.

    quiet_hours_of: the plan whose quiet hours it keeps to. start: first rate of one replica in requests/s. longest: of
    one ramp; None where the effort says. cv: of the times between arrivals.
    """

    namespace: str
    name: str
    measured: TrialPool | Endpoint
    quiet_hours_of: str | None
    objectives: Objectives
    prompts: DataFile
    cv: Decimal
    prefix_hit_share: Decimal
    chat: bool
    effort: str
    start: Decimal | None
    longest: timedelta | None
    suspend: bool
    runner: Runner
