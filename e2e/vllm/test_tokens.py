"""The token-level model of a replica is vLLM: beside its own scheduler step by step, and beside a real server."""

from __future__ import annotations

import pytest

from e2e.vllm.scheduler_steps import RealScheduler
from support.engine_steps import cases, modelled

REQUESTS = 10_000


@pytest.fixture(scope="module")
def scheduler(environment, tmp_path_factory):
    """VLLM's own."""
    with RealScheduler(environment, tmp_path_factory.mktemp("scheduler") / "driver.log") as scheduler:
        yield scheduler


@pytest.mark.parametrize("name", cases(1))
def test_each_step_of_ten_thousand_requests_is_that_of_vllms_own_scheduler(scheduler, name):
    case = cases(REQUESTS)[name]
    real, ours = scheduler.follow(case), modelled(case)

    print(f"{name}: {len(real.rows)} steps, {sum(real.preempted)} preemptions, at most {max(r[0] for r in real.rows)}")
    assert len(real.rows) == len(ours.rows)
    assert [step for step, rows in enumerate(zip(real.rows, ours.rows, strict=True)) if rows[0] != rows[1]] == []
    assert (real.first, real.last, real.preempted) == (ours.first, ours.last, ours.preempted)
