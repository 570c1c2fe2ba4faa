"""The kinds of the API: how each is called, what it holds and what a list of it shows.

Place in the flow: ``crd`` prints a definition of each, ``validation`` checks documents of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from servingplan.api.benchmark import CapacityBenchmark
from servingplan.api.evaluation import ModelEvaluation
from servingplan.api.v1alpha1 import API_VERSION, GROUP, KIND, PLURAL, VERSION, ServingPlan
from servingplan.api.wire import Wire

__all__ = [
    "API_VERSION",
    "CAPACITY_BENCHMARK",
    "GROUP",
    "KINDS",
    "MODEL_EVALUATION",
    "SERVING_PLAN",
    "VERSION",
    "Column",
    "Kind",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``; a wide one shows with ``-o wide``."""

    name: str
    type: str
    path: str
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind. noun: what a sentence calls one of it."""

    name: str
    noun: str
    plural: str
    short_name: str
    model: type[Wire]
    columns: tuple[Column, ...]


def _condition(name: str, type_: str, field: str) -> Column:
    return Column(name=name, type="string", path=f'.status.conditions[?(@.type=="{type_}")].{field}')


AGE = Column(name="Age", type="date", path=".metadata.creationTimestamp")

SERVING_PLAN = Kind(
    name=KIND,
    noun="plan",
    plural=PLURAL,
    short_name="splan",
    model=ServingPlan,
    columns=(
        Column(name="Window", type="string", path=".status.window"),
        Column(name="Desired", type="integer", path=".status.desiredReplicas"),
        Column(name="Ready replicas", type="integer", path=".status.readyReplicas"),
        Column(name="Next", type="string", path=".status.nextChange.summary"),
        _condition("Ready", "Ready", "status"),
        _condition("Reason", "Ready", "reason"),
        AGE,
        Column(name="Floor", type="integer", path=".status.floorReplicas", wide=True),
        Column(name="Reserve", type="integer", path=".status.reserveReplicas", wide=True),
        Column(name="Lead", type="string", path=".status.leadTime.effective", wide=True),
    ),
)

CAPACITY_BENCHMARK = Kind(
    name="CapacityBenchmark",
    noun="benchmark",
    plural="capacitybenchmarks",
    short_name="capbench",
    model=CapacityBenchmark,
    columns=(
        Column(name="Capacity", type="number", path=".status.capacity.requestsPerSecond"),
        Column(name="Up to", type="number", path=".status.capacity.failingRequestsPerSecond"),
        Column(name="Bound by", type="string", path=".status.bottleneck.bounds"),
        _condition("Complete", "Complete", "status"),
        _condition("Reason", "Complete", "reason"),
        AGE,
    ),
)

MODEL_EVALUATION = Kind(
    name="ModelEvaluation",
    noun="evaluation",
    plural="modelevaluations",
    short_name="meval",
    model=ModelEvaluation,
    columns=(
        Column(name="Verdict", type="string", path=".status.verdict"),
        Column(name="Baseline", type="number", path=".status.score.baseline"),
        Column(name="Variant", type="number", path=".status.score.variant"),
        Column(name="At worst", type="number", path=".status.difference.lowerBound"),
        _condition("Complete", "Complete", "status"),
        _condition("Reason", "Complete", "reason"),
        AGE,
        Column(name="Digest", type="string", path=".status.variant.digest", wide=True),
    ),
)

KINDS = (SERVING_PLAN, CAPACITY_BENCHMARK, MODEL_EVALUATION)
"""All of them, in the order in which they are printed and installed."""
