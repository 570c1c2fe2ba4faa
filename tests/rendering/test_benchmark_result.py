"""What was found, as the status of a CapacityBenchmark shows it: from the report of a ramp, and valid on the wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from servingplan.api.benchmark import CapacityBenchmarkStatus
from servingplan.api.benchmark_report import bench_report
from servingplan.benchmarking.report import report
from servingplan.errors import InputError, Problem
from servingplan.planning.reasons import Reason
from servingplan.rendering.benchmark import outcome, result
from servingplan.rendering.evidence import Progress, as_seen, evidence_status, is_over, work_id
from servingplan.rendering.identity import identity
from servingplan.rendering.measured import Measured
from servingplan.rendering.runner import REPORT_BYTES
from support.benches import a_found_ramp, a_ramp, a_run, a_void
from support.evidence import a_benchmark, benchmark_document
from support.plans import a_full_engine

NOW = datetime(2026, 12, 1, 7, tzinfo=UTC)
MEASURED = Measured(
    identity=identity(a_full_engine()), image_digest="sha256:ab", product="NVIDIA-L40S", driver="570.86"
)


def reported(rate=5.0, replicas=1):
    return bench_report(report(a_found_ramp(rate, replicas=replicas)))


def progress(**changes) -> Progress:
    stated = {"generation": 1, "work": "0a1b2c3d", "now": NOW, "reason": Reason.RUNNING, "message": "the runner works"}
    return Progress(**(stated | changes))


def over(fields=None, **changes) -> Progress:
    return progress(reason=Reason.FOUND, result=fields or result(a_benchmark(), {1: reported()}, MEASURED), **changes)


def conditions(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


# ---- the report ----


def test_a_report_fits_and_says_what_the_ramp_found():
    found = reported()
    assert (found["outcome"], found["requestsPerSecond"], found["failingRequestsPerSecond"]) == ("Found", 5, 5.12)
    assert found["levels"][1]["voidBecause"] == ["WarmCache"]
    assert len(report(a_found_ramp()).encode()) <= REPORT_BYTES


def test_the_longest_ramp_still_fits_and_keeps_what_lies_around_the_capacity():
    rates = [float(f"{5 * 1.4 ** (step / 4):.4g}") for step in range(-15, 15)]
    below = [a_run(rate, 0.999, seed=seed) for rate in rates if rate <= 5 for seed in range(8)]
    voids = [a_void(rate, seed=9) for rate in rates]
    above = [a_run(rate, 0.5, seed=seed) for rate in rates if rate > 5 for seed in range(8)]
    whole = a_ramp(*below, *voids, *above)
    text = report(whole)
    assert len(text.encode()) <= REPORT_BYTES
    kept = [level["rate"] for level in bench_report(text)["levels"]]
    assert 5.0 in kept
    assert len(kept) < len(rates) or len(text) < REPORT_BYTES


@pytest.mark.parametrize(
    "text",
    ["", "Completed", "[]", "{}", '{"outcome": "Perfect", "started": "x"}', '{"outcome": "Found", "started": 3}'],
)
def test_what_is_no_report_is_one_clear_error(text):
    with pytest.raises(InputError) as found:
        bench_report(text)
    assert found.value.problems[0].reason == "InvalidReport"


def test_what_a_newer_runner_adds_is_passed_over():
    newer = json.dumps(json.loads(report(a_found_ramp())) | {"mood": "good"})
    assert bench_report(newer) == reported()


# ---- the result ----


def test_a_result_is_valid_on_the_wire_and_names_what_was_measured():
    fields = result(a_benchmark(prefixHitShare=0.4), {1: reported()}, MEASURED)
    CapacityBenchmarkStatus.model_validate_json(json.dumps(fields))
    fingerprint = fields["fingerprint"]
    assert fingerprint["digest"] == identity(a_full_engine()).digest
    assert (fingerprint["product"], fingerprint["driver"], fingerprint["vllm"]) == ("NVIDIA-L40S", "570.86", "0.32.0")
    assert fingerprint["objectives"] == {
        "ttft": {"p95": "1s500ms"}, "tpot": {"p95": "60ms"}, "e2el": {"p95": "30s"}, "goodputShare": 0.99,
    }  # fmt: skip
    assert fields["atCapacity"]["prefixHitShare"] == 0.4


def test_several_sizes_are_a_curve_and_the_smallest_is_the_one_number():
    fields = result(a_benchmark(poolSizes=[1, 8]), {1: reported(5.0), 8: reported(4.2, 8)}, MEASURED)
    assert fields["capacity"]["requestsPerSecond"] == 5
    points = fields["capacity"]["perPoolSize"]
    assert [(point["replicas"], point["requestsPerSecond"]) for point in points] == [(1, 5), (8, 4.2)]
    assert {level["replicas"] for level in fields["levels"]} == {1, 8}


def test_half_of_a_curve_is_no_capacity_and_says_why():
    late = reported() | {"outcome": "OutOfTime", "message": "the runs took 240 minutes of 240"}
    reports = {1: reported(), 8: late}
    assert "capacity" not in result(a_benchmark(poolSizes=[1, 8]), reports, MEASURED)
    assert outcome(reports) == (
        Reason.OUT_OF_TIME,
        "no capacity was found with 8 replicas: the runs took 240 minutes of 240",
    )


def test_what_is_not_known_is_left_out():
    fingerprint = result(a_benchmark(), {1: reported()}, Measured())["fingerprint"]
    assert not {"digest", "image", "arguments", "product", "driver", "imageDigest"} & set(fingerprint)


# ---- the status ----


def test_what_was_found_before_stays_until_there_is_something_new():
    known = evidence_status(over(), {})
    working = evidence_status(progress(generation=2, work="ffffffff"), known)
    assert working["capacity"] == known["capacity"]
    assert (working["observedGeneration"], working["work"]) == (2, "ffffffff")
    assert conditions(working) == {"Valid": ("True", "Resolved"), "Complete": ("False", "Running")}
    again = evidence_status(over({"levels": []}, generation=2), working)
    assert "capacity" not in again


def test_every_problem_of_a_spec_is_in_its_condition():
    problems = [Problem(path=f"spec.{name}", reason="Required", message="is missing") for name in ("prompts", "cv")]
    status = evidence_status(progress(reason=Reason.INVALID, problems=problems), {})
    assert conditions(status) == {"Valid": ("False", "Invalid"), "Complete": ("False", "Invalid")}
    assert all(str(problem) in status["conditions"][0]["message"] for problem in problems)


def test_a_time_of_transition_moves_only_when_the_status_flips():
    first = evidence_status(progress(reason=Reason.ENGINE_STARTING), {})
    later = evidence_status(progress(now=NOW + timedelta(hours=1)), first)
    found = evidence_status(over(now=NOW + timedelta(hours=2)), later)
    times = [status["conditions"][1]["lastTransitionTime"] for status in (first, later, found)]
    assert times == ["2026-12-01T07:00:00Z", "2026-12-01T07:00:00Z", "2026-12-01T09:00:00Z"]


def a_document(status=None, generation=1, **spec):
    found = benchmark_document(**spec)
    found["metadata"]["generation"] = generation
    return found | {"status": status or {}}


def test_what_is_over_stays_over_whatever_suspend_says_and_an_edit_asks_anew():
    status = evidence_status(over(work=work_id(a_document())), {})
    assert is_over(a_document(status))
    suspended = a_document(status, generation=2, suspend=True)
    assert is_over(suspended)
    assert as_seen(suspended)["observedGeneration"] == 2
    assert {each["observedGeneration"] for each in as_seen(suspended)["conditions"]} == {2}
    assert not is_over(a_document(status, generation=2, cv=1.5))


def test_an_upgrade_that_adds_a_default_to_the_spec_measures_nothing_again():
    status = evidence_status(over(work=work_id(a_document())), {})
    assert is_over(a_document(status, addedByAnUpgrade=True))


def test_what_is_not_complete_is_not_over():
    assert not is_over(a_document(evidence_status(progress(work=work_id(a_document())), {})))
    assert not is_over(a_document())
