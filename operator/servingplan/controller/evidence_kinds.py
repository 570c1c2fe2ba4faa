"""The evidence kinds: what each of them adds to the one reconciler that does the work of all.

In: an evidence object and the plans that it names. Out: an `EvidenceWork`, which says what to run piece by piece, and
what was found. A new kind is a class like `BenchmarkWork` and an entry in `EVIDENCE_KINDS`. No I/O in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from servingplan.api.benchmark_report import bench_report
from servingplan.api.evaluation_report import evaluation_report
from servingplan.api.kinds import CAPACITY_BENCHMARK, MODEL_EVALUATION, Kind
from servingplan.api.referenced import PlanSource, RunnerDefaults
from servingplan.api.resolve_benchmark import resolve_benchmark
from servingplan.api.resolve_evaluation import resolve_evaluation
from servingplan.planning.benchmark import Benchmark, TrialPool
from servingplan.planning.comparison import Comparison
from servingplan.planning.reasons import Reason
from servingplan.planning.target import Engine
from servingplan.rendering import benchmark as rendering
from servingplan.rendering import evaluation
from servingplan.rendering.evidence import work_id
from servingplan.rendering.measured import Measured
from servingplan.rendering.runner import RunnerJob
from servingplan.rendering.trial import Trial

Object = Mapping[str, Any]
Json = dict[str, Any]

Reports = Mapping[int, Json]
"""What runners handed back, by piece."""


@dataclass(frozen=True, slots=True, order=True)
class EvidenceKey:
    """Which evidence object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``CapacityBenchmark llm/qwen3-l40s``."""
        return f"{self.kind} {self.namespace}/{self.name}"


class EvidenceWork(Protocol):
    """The work of one evidence object: pieces, each a Job, one after the other."""

    @property
    def pieces(self) -> Sequence[int]:
        """The pieces in order, each by the replicas of the trial pool that it needs."""

    @property
    def trial(self) -> Trial | None:
        """The pool that runs for it; None where it measures what serves."""

    @property
    def suspend(self) -> bool:
        """Whether somebody wants it to stop."""

    @property
    def quiet_hours_of(self) -> str | None:
        """The plan whose quiet hours it keeps to."""

    def job(self, piece: int, reports: Reports) -> RunnerJob:
        """What runs for a piece. reports: of the pieces before it."""

    def outcome(self, reports: Reports) -> tuple[Reason, str]:
        """How the whole work ended, in a machine's and in people's words."""

    def result(self, reports: Reports, measured: Measured) -> Json:
        """The fields of the status that say what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceKind:
    """An evidence kind.

    resolve: (document, plans by name, installation's defaults) to the work; raises InputError with every problem.
    read_report: a runner's report as plain JSON; raises InputError where it is none.
    """

    kind: Kind
    resolve: Callable[[Object, PlanSource, RunnerDefaults], EvidenceWork]
    read_report: Callable[[str], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkWork:
    """A CapacityBenchmark: a ramp for each pool size."""

    benchmark: Benchmark
    work: str

    @property
    def pieces(self) -> Sequence[int]:
        """The pool sizes, ascending."""
        measured = self.benchmark.measured
        return measured.sizes if isinstance(measured, TrialPool) else (measured.replicas,)

    @property
    def trial(self) -> Trial | None:
        """The plan's engine, where it is to be measured in a pool of its own."""
        measured = self.benchmark.measured
        if not isinstance(measured, TrialPool):
            return None
        return Trial(
            namespace=self.benchmark.namespace,
            evidence=self.benchmark.name,
            work=self.work,
            engine=measured.engine,
        )

    @property
    def suspend(self) -> bool:
        """As stated."""
        return self.benchmark.suspend

    @property
    def quiet_hours_of(self) -> str | None:
        """As stated."""
        return self.benchmark.quiet_hours_of

    def job(self, piece: int, reports: Reports) -> RunnerJob:
        """The ramp of a pool of that size."""
        return rendering.runner_job(self.benchmark, self.work, piece, reports)

    def outcome(self, reports: Reports) -> tuple[Reason, str]:
        """Found, where a capacity was found for every size."""
        return rendering.outcome(reports)

    def result(self, reports: Reports, measured: Measured) -> Json:
        """Capacity, levels, bottleneck, figures at capacity and fingerprint."""
        return rendering.result(self.benchmark, reports, measured)


def _benchmark_work(document: Object, plans: PlanSource, defaults: RunnerDefaults) -> EvidenceWork:
    benchmark = resolve_benchmark(document, plans, defaults)
    return BenchmarkWork(benchmark=benchmark, work=work_id(document))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationWork:
    """A ModelEvaluation: one comparison, with one replica of the variant."""

    comparison: Comparison
    work: str

    @property
    def pieces(self) -> Sequence[int]:
        """One."""
        return (evaluation.PIECE,)

    @property
    def trial(self) -> Trial | None:
        """The plan's engine, where it is to be compared with what the plan serves."""
        variant = self.comparison.variant
        if not isinstance(variant, Engine):
            return None
        return Trial(namespace=self.comparison.namespace, evidence=self.comparison.name, work=self.work, engine=variant)

    @property
    def suspend(self) -> bool:
        """As stated."""
        return self.comparison.suspend

    @property
    def quiet_hours_of(self) -> str | None:
        """Any hour: a few questions at a time are no load."""
        return None

    def job(self, piece: int, reports: Reports) -> RunnerJob:  # noqa: ARG002  there is one piece
        """The comparison."""
        return evaluation.runner_job(self.comparison, self.work)

    def outcome(self, reports: Reports) -> tuple[Reason, str]:
        """Why it passed or did not."""
        return evaluation.outcome(reports[evaluation.PIECE])

    def result(self, reports: Reports, measured: Measured) -> Json:
        """Verdict, scores, and what was compared."""
        return evaluation.result(self.comparison, reports[evaluation.PIECE], measured)


def _evaluation_work(document: Object, plans: PlanSource, defaults: RunnerDefaults) -> EvidenceWork:
    return EvaluationWork(comparison=resolve_evaluation(document, plans, defaults), work=work_id(document))


EVIDENCE_KINDS: Mapping[str, EvidenceKind] = {
    each.kind.name: each
    for each in (
        EvidenceKind(kind=CAPACITY_BENCHMARK, resolve=_benchmark_work, read_report=bench_report),
        EvidenceKind(kind=MODEL_EVALUATION, resolve=_evaluation_work, read_report=evaluation_report),
    )
}
"""All of them, by the name of the kind."""
