"""Which evidence an event concerns."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.controller.evidence_kinds import EvidenceKey
from servingplan.controller.evidence_watches import EvidenceWatches
from support.evidence import benchmark_document, service_benchmark
from support.specs import document

KEY = EvidenceKey("CapacityBenchmark", "llm", "qwen3-l40s")


class NoClient:
    """Nothing is read for an event."""


@pytest.fixture
def looked() -> list[EvidenceKey]:
    return []


@pytest.fixture
def watches(looked) -> EvidenceWatches:
    made: Any = NoClient()
    return EvidenceWatches(client=made, look=lambda key, _: looked.append(key))


def with_generation(found: dict, generation: int, **metadata: Any) -> dict:
    return found | {"metadata": found["metadata"] | {"uid": "1", "generation": generation} | metadata}


def a_job(labels: dict[str, str]) -> dict:
    return {"kind": "Job", "metadata": {"namespace": "llm", "name": "any", "labels": labels}}


def test_a_new_and_an_edited_one_are_looked_at_and_a_written_status_is_not(watches, looked):
    watches.evidence(None, with_generation(benchmark_document(), 1))
    watches.evidence("MODIFIED", with_generation(benchmark_document(), 1) | {"status": {"work": "x"}})
    assert looked == [KEY]
    watches.evidence("MODIFIED", with_generation(benchmark_document(cv=2), 2))
    assert looked == [KEY, KEY]
    watches.evidence("DELETED", with_generation(benchmark_document(), 2))
    assert (looked, watches.keys) == ([KEY, KEY], ())


@pytest.mark.parametrize("evidence", [benchmark_document(), service_benchmark()], ids=["planRef", "quietHoursOf"])
def test_an_edited_plan_concerns_what_names_it_once_an_edit(watches, looked, evidence):
    watches.evidence(None, with_generation(evidence, 1))
    looked.clear()
    for generation in (1, 1, 2):
        watches.plan("MODIFIED", with_generation(document(), generation))
        watches.plan("MODIFIED", with_generation(document("other"), generation))
        watches.plan("MODIFIED", with_generation(document(namespace="elsewhere"), generation))
    assert looked == [KEY, KEY]
    watches.plan("DELETED", with_generation(document(), 2))
    assert looked == [KEY] * 3


@pytest.mark.parametrize("name", ["servingplan.dev/evidence", "servingplan.dev/trial"], ids=["a Job", "a pool"])
def test_what_runs_for_evidence_concerns_it(watches, looked, name):
    watches.evidence(None, with_generation(benchmark_document(), 1))
    looked.clear()
    kind = {"servingplan.dev/evidence-kind": "CapacityBenchmark"}
    watches.work(a_job({name: "qwen3-l40s"} | kind))
    watches.work(a_job({name: "unknown"} | kind))
    watches.work(a_job({name: "qwen3-l40s", "servingplan.dev/evidence-kind": "Other"}))
    watches.work(a_job({}))
    assert looked == [KEY]
