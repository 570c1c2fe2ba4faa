"""A ModelEvaluation's spec as validated values.

In: made by ``api.resolve_evaluation`` alone (and by builders in tests). Out: read by ``rendering.evaluation``. Values
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from servingplan.planning.runner import DataFile, Runner
from servingplan.planning.target import Engine, SecretKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What answers, behind a Service. model: None where the server has one alone."""

    name: str
    port: int
    model: str | None
    api_key: SecretKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A user's program that asks both and writes a score for each item."""

    image: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A ModelEvaluation, validated.

    variant: a Server, or the engine to run beside the plan's own. baseline_digest: of what serves, as the plan tells;
    empty where it does not. minimum_score, margin: of mean scores, 0 to 1. longest: of the whole work.
    """

    namespace: str
    name: str
    baseline: Server
    baseline_digest: str
    variant: Server | Engine
    questions: DataFile | Asker
    minimum_score: Decimal
    margin: Decimal
    chat: bool
    concurrency: int
    longest: timedelta
    suspend: bool
    runner: Runner
