"""Replicas that follow a result, and hold where it is not that of what runs: the operator without a network."""

from __future__ import annotations

from typing import Any

import pytest

from servingplan.api.references import Kind
from servingplan.api.resolve import resolve
from servingplan.rendering.identity import identity
from support.small_operator import ENGINE, KEY, SmallOperator
from support.specs import ENGINE as STATED
from support.specs import benchmark, document

NOON = "2026-12-01T12:00"
REFERRING = {"capacity": {"benchmarkRef": {"name": "l40s"}}}
ON_ENGINE = {"engine": dict(STATED), "targetRef": None, **REFERRING}


def fingerprint(**engine: Any) -> dict[str, Any]:
    """What a benchmark says of the worked example's engine, edited so."""
    found = resolve(document(engine={**STATED, **engine}), {}).engine
    assert found is not None
    one = identity(found)
    return {
        "digest": one.digest,
        "image": one.image,
        "model": one.model,
        "arguments": list(one.arguments),
        "accelerator": one.accelerator,
    }


def result(rate: float, **engine: Any) -> dict[str, Any]:
    return benchmark(capacity={"requestsPerSecond": rate}, fingerprint=fingerprint(**engine))


async def running(rate: float = 5.0, **changes: Any) -> SmallOperator:
    """The worked example's engine at noon, all that it asks for ready."""
    operator = SmallOperator(NOON)
    operator.store.put_content(Kind.BENCHMARK, result(rate))
    operator.apply_plan(**{**ON_ENGINE, **changes})
    for _ in range(4):
        await operator.look()
        if ENGINE in operator.server.objects:
            operator.server.make_ready(ENGINE)
    operator.wrote()
    return operator


async def settled(operator: SmallOperator, hours: int = 1) -> int:
    """The replicas once nothing moves any more."""
    minutes = 0
    while minutes < 60 * hours:
        minutes += 5
        await operator.look(f"2026-12-01T{12 + minutes // 60:02}:{minutes % 60:02}")
        operator.server.make_ready(ENGINE)
        if minutes >= 30:
            break
    return operator.replicas(ENGINE)


async def test_replicas_follow_the_result_of_a_benchmark() -> None:
    operator = await running(5.0)
    assert operator.replicas(ENGINE) == 5  # ceil(18 / 5) and one in reserve
    assert operator.said("CapacityCurrent") == "True CapacityHolds"
    assert operator.status["capacity"] == {
        "requestsPerSecond": 5.0,
        "source": "l40s",
        "fingerprint": fingerprint()["digest"],
    }
    assert operator.store.put_content(Kind.BENCHMARK, result(3.0)) == {KEY}
    assert await settled(operator) == 7
    operator.store.put_content(Kind.BENCHMARK, result(9.0))
    assert await settled(operator) == 3


async def test_a_result_that_stays_the_same_writes_nothing_also_after_a_restart() -> None:
    operator = await running()
    await operator.look("2026-12-01T12:10")
    operator.wrote()
    await operator.look("2026-12-01T12:20")
    operator.restart()
    await operator.look("2026-12-01T12:30")
    assert operator.wrote() == []


async def test_a_result_of_another_engine_lowers_nothing_and_what_differs_is_named() -> None:
    operator = await running(5.0)
    operator.store.put_content(Kind.BENCHMARK, result(18.0, maxNumSeqs=32))
    assert await settled(operator) == 5
    assert operator.said("CapacityCurrent") == "False EngineDiffers"
    assert "--max-num-seqs 128, measured with 32" in operator.message("CapacityCurrent")
    assert operator.status["capacity"]["requestsPerSecond"] == 5.0
    operator.restart()
    assert await settled(operator) == 5
    operator.store.put_content(Kind.BENCHMARK, result(18.0))
    assert await settled(operator) == 2
    assert operator.said("CapacityCurrent") == "True CapacityHolds"


async def test_a_lower_result_of_another_engine_raises_and_then_stays() -> None:
    operator = await running(5.0)
    operator.store.put_content(Kind.BENCHMARK, result(3.0, maxNumSeqs=32))
    assert await settled(operator) == 7
    operator.store.put_content(Kind.BENCHMARK, result(5.0, maxNumSeqs=32))
    assert await settled(operator) == 7


async def test_a_number_that_the_plan_stated_is_not_undercut_by_a_result_of_something_else() -> None:
    operator = await running(capacity={"requestsPerSecond": 3})
    assert operator.replicas(ENGINE) == 7
    operator.store.put_content(Kind.BENCHMARK, result(9.0, maxNumSeqs=32))
    operator.apply_plan(**ON_ENGINE)
    assert await settled(operator) == 7
    assert operator.status["capacity"] == {"requestsPerSecond": 3.0, "source": "plan"}


async def test_an_engine_that_is_edited_is_no_longer_what_was_measured() -> None:
    operator = await running()
    operator.apply_plan(**{**ON_ENGINE, "engine": {**STATED, "maxNumSeqs": 64}})
    await operator.look()
    assert operator.said("CapacityCurrent") == "False EngineDiffers"
    assert "--max-num-seqs 64, measured with 128" in operator.message("CapacityCurrent")
    assert operator.replicas(ENGINE) == 5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda store: store.drop_content(Kind.BENCHMARK, benchmark()), "BenchmarkNotFound"),
        (lambda store: store.put_content(Kind.BENCHMARK, benchmark(capacity=None)), "BenchmarkWithoutCapacity"),
    ],
    ids=["deleted", "without its capacity"],
)
async def test_a_benchmark_that_is_gone_keeps_the_replicas_and_is_a_problem(change: Any, reason: str) -> None:
    operator = await running()
    assert change(operator.store) == {KEY}
    await operator.look("2026-12-01T21:00")
    assert operator.replicas(ENGINE) == 5
    assert operator.said("PlanValid") == "False Invalid"
    assert reason in operator.message("PlanValid")
    assert operator.status["capacity"]["requestsPerSecond"] == 5.0


async def test_what_is_held_is_what_its_month_is_counted_with() -> None:
    operator = await running(5.0)
    before = operator.status["gpuHours"]
    operator.store.put_content(Kind.BENCHMARK, result(18.0, maxNumSeqs=32))
    await settled(operator)
    assert operator.status["gpuHours"] == before
