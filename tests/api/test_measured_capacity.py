"""A plan's capacity that a CapacityBenchmark measured: what of its status counts, and what is a problem."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from servingplan.api.documents import read_plans
from servingplan.api.resolve import resolve
from servingplan.errors import InvalidPlan
from servingplan.planning.measured import AtCapacity, Fingerprint, Measured
from servingplan.planning.plan import Auto
from support.specs import RESULT, benchmark, document, measured_by

REFERRING = document(capacity={"benchmarkRef": {"name": "l40s"}})


def test_a_plan_acts_with_the_capacity_of_the_benchmark_that_it_refers_to() -> None:
    plan = resolve(REFERRING, measured_by(benchmark()))
    assert [(point.replicas, point.requests_per_second) for point in plan.capacity.points] == [(1, Decimal("5.0"))]
    assert (plan.capacity.source, plan.capacity.fingerprint) == ("l40s", "sha256:none")


def test_all_that_was_measured_comes_with_it() -> None:
    fingerprint = {
        "digest": "sha256:d",
        "image": "vllm:1",
        "imageDigest": "sha256:i",
        "model": "/m",
        "arguments": ["--max-num-seqs=64"],
        "accelerator": "nvidia.com/gpu x 1",
        "product": "L40S",
        "driver": "560",
        "objectives": {"ttft": {"p95": "1500ms"}, "tpot": {"p90": "60ms"}},
        "vllm": "0.32.0",
    }
    assert resolve(REFERRING, measured_by(benchmark(fingerprint=fingerprint))).measured == Measured(
        benchmark="l40s",
        fingerprint=Fingerprint(
            digest="sha256:d",
            image="vllm:1",
            image_digest="sha256:i",
            model="/m",
            arguments=("--max-num-seqs=64",),
            accelerator="nvidia.com/gpu x 1",
            product="L40S",
            driver="560",
            objectives=(("ttft", "p95 1s500ms"), ("tpot", "p90 60ms"), ("goodputShare", "0.9")),
        ),
        at_capacity=AtCapacity(
            in_flight_mean=40.0,
            unloaded_ttft_p95_s=0.3,
            input_tokens=850.0,
            output_tokens=240.0,
            prefix_hit_share=0.4,
        ),
    )


def test_several_pool_sizes_count_each_at_its_size() -> None:
    sizes = [{"replicas": 8, "requestsPerSecond": 3.4}, {"replicas": 1, "requestsPerSecond": 2.4}]
    found = benchmark(capacity={"requestsPerSecond": 2.4, "perPoolSize": sizes})
    points = resolve(REFERRING, measured_by(found)).capacity.points
    assert [(point.replicas, point.requests_per_second) for point in points] == [
        (1, Decimal("2.4")),
        (8, Decimal("3.4")),
    ]


RUNNING = [{"type": "Complete", "status": "False", "reason": "Running", "message": "level 3"}]
NOTHING = [{"type": "Complete", "status": "True", "reason": "NothingHolds", "message": "no rate holds"}]

PROBLEMS: dict[str, tuple[dict[str, Any] | None, str, str]] = {
    "there is none": (None, "BenchmarkNotFound", "create it, or state capacity.requestsPerSecond"),
    "it was never looked at": (benchmark(capacity=None, conditions=None), "BenchmarkWithoutCapacity", "no result yet:"),
    "it still runs": (
        benchmark(capacity=None, conditions=RUNNING), "BenchmarkWithoutCapacity", "no result yet (Running: level 3)",
    ),
    "it found nothing": (
        benchmark(capacity=None, conditions=NOTHING), "BenchmarkWithoutCapacity", "found no capacity (NothingHolds:",
    ),
    "a capacity of nothing": (
        benchmark(capacity={"requestsPerSecond": 0}), "BenchmarkInvalid", "status.capacity.requestsPerSecond",
    ),
    "a capacity in words": (
        benchmark(capacity={"requestsPerSecond": "many"}), "BenchmarkInvalid", "status.capacity.requestsPerSecond",
    ),
    "an infinite one": (
        benchmark(capacity={"requestsPerSecond": float("inf")}), "BenchmarkInvalid", "measure again",
    ),
    "no object at all": (benchmark(capacity=[]), "BenchmarkInvalid", "status.capacity"),
    "a limit of no percentile": (
        benchmark(fingerprint={"objectives": {"ttft": {}}}), "BenchmarkInvalid", "name exactly one percentile",
    ),
    "a share above all": (
        benchmark(atCapacity={"prefixHitShare": 1.5}), "BenchmarkInvalid", "status.atCapacity.prefixHitShare",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "reason", "words"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_benchmark_that_gives_no_capacity_is_a_problem_of_the_plan(found: Any, reason: str, words: str) -> None:
    with pytest.raises(InvalidPlan) as caught:
        resolve(REFERRING, measured_by(found))
    (problem,) = caught.value.problems
    assert (problem.path, problem.reason) == ("spec.capacity.benchmarkRef.name", reason)
    assert words in problem.message


def test_the_last_result_counts_while_it_is_measured_anew() -> None:
    assert resolve(REFERRING, measured_by(benchmark(conditions=RUNNING))).capacity.points


def test_a_capacity_is_stated_in_one_form() -> None:
    both = document(capacity={"benchmarkRef": {"name": "l40s"}, "requestsPerSecond": 5})
    with pytest.raises(InvalidPlan, match="exactly one form"):
        resolve(both, measured_by(benchmark()))


def test_a_file_beside_the_plan_holds_the_benchmark_with_its_status(tmp_path: Any) -> None:
    for name, one in (
        ("plan", REFERRING),
        ("result", benchmark()),
        ("other", benchmark(namespace="other", capacity=None)),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
    (read,) = read_plans([str(tmp_path)], standard_input=None)  # type: ignore[arg-type]  # it is not read
    assert resolve(read.document.body, read.references).capacity.source == "l40s"


AUTO = {"prometheus": {}, "maxExtra": 3, "raiseWhen": {"inFlightPerReplica": "auto"}}
NOT_THERE = {key: value for key, value in RESULT["atCapacity"].items() if key != "inFlightMean"}


@pytest.mark.parametrize(
    ("plan", "references", "words"),
    [
        (document(feedback=AUTO), {}, "no benchmark measures the capacity"),
        (
            document(feedback=AUTO, capacity={"benchmarkRef": {"name": "l40s"}}),
            measured_by(benchmark(atCapacity=NOT_THERE)),
            "does not say what was in flight",
        ),
    ],
    ids=["without a benchmark", "without that figure"],
)
def test_an_automatic_limit_that_nothing_measured_is_off_and_said(plan: Any, references: Any, words: str) -> None:
    resolved = resolve(plan, references)
    (warning,) = resolved.warnings
    assert warning.reason == "NotMeasured"
    assert words in warning.message


def test_an_automatic_limit_with_a_benchmark_is_no_warning() -> None:
    plan = resolve(document(feedback=AUTO, capacity={"benchmarkRef": {"name": "l40s"}}), measured_by(benchmark()))
    assert plan.warnings == ()
    assert plan.feedback is not None
    assert plan.feedback.raise_when.in_flight_per_replica is Auto.AUTO
