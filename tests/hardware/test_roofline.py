"""The roofline: its parts by hand, its fixed point, and what binds."""

from __future__ import annotations

import dataclasses
import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.hardware.lengths import Lengths
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.roofline import (
    Bound,
    broken,
    costs,
    estimate,
    flops,
    speed,
)
from servingplan.planning.plan import Objective, Objectives
from support.models import objectives, replica, workload


def test_a_step_reads_weights_and_cache_and_adds_its_overheads():
    found = costs(replica()).decode(10, 50_000)

    # Without the embedding's table; 131,072 bytes a token; 75 % of 3.35 TB/s.
    weights = 2 * (8.03e9 - 128_256 * 4096)
    assert found == pytest.approx((weights + 50_000 * 131_072) / (0.75 * 3.35e12) + 3e-3, rel=0.001)


def test_tensor_parallelism_divides_reading_and_adds_all_reduces():
    one, two = (costs(replica(layout=Layout(tensor=n))).decode(1, 0) for n in (1, 2))

    assert two == pytest.approx((one - 3e-3) / 2 + 3e-3 + 2 * 32 * 15e-6)
    slow = costs(replica(gpu="L40S", layout=Layout(tensor=2))).decode(1, 0)
    fast = costs(replica(gpu="L40S")).decode(1, 0)
    assert slow == pytest.approx((fast - 3e-3) / 2 + 3e-3 + 2 * 32 * 50e-6)


def test_a_large_batch_is_bound_by_compute():
    found = replica()

    assert costs(found).decode(5000, 0) == pytest.approx(2 * found.model.active_parameters * 5000 / (0.5 * 989e12))


def test_a_batch_touches_more_experts():
    mixtral = replica("mixtral-8x7b", "B200")
    one, many = ((costs(mixtral).decode(batch, 0) - 3e-3) * 0.75 * 8e12 for batch in (1, 100))

    assert many == pytest.approx(2 * (mixtral.model.parameters - 32_000 * 4096), rel=0.001)
    assert one == pytest.approx(2 * mixtral.model.active_parameters, rel=0.001)


def test_a_prompt_takes_its_products_and_its_attention():
    found = replica()
    work = 2 * found.model.active_parameters * 1000 + 2 * 32 * 4096 * 1000**2

    assert costs(found).prefill(1000) == pytest.approx(work / (0.45 * 989e12))


@pytest.mark.parametrize(
    ("name", "gpu", "tflops"),
    [("llama-3.1-8b", "H100-SXM", 989), ("llama-3.3-70b-fp8-dynamic", "H100-SXM", 1979),
     ("llama-3.3-70b-fp8-dynamic", "A100-80GB", 312), ("gpt-oss-20b", "H100-SXM", 989)],
)  # fmt: skip
def test_eight_bits_count_where_weights_and_gpu_have_them(name, gpu, tflops):
    assert flops(replica(name, gpu)) == tflops * 1e12


def test_the_fixed_point_is_one():
    found = speed(replica(), workload(), 10)
    step = costs(replica()).decode(found.held.in_flight, found.held.tokens)

    assert found.tpot == pytest.approx(step / (1 - found.busy), rel=1e-4)
    assert found.held.in_flight == pytest.approx(10 * found.tpot * workload().output.mean)


def test_more_than_prefill_can_take_never_ends():
    found = speed(replica(), workload(), 1e6)

    assert math.isinf(found.ttft)
    assert next(broken(replica(), workload(), found)) is Bound.COMPUTE


BOUNDS = {
    "TPOT": ({}, {}, Bound.TPOT),
    "TTFT": ({"objectives": objectives(ttft_ms=60, tpot_ms=None)}, {}, Bound.TTFT),
    "sequences": ({}, {"max_num_seqs": 8}, Bound.SEQUENCES),
    "cache": (
        {"input": Lengths(median=7000, sigma=0.0)},
        {"name": "codellama-7b", "max_model_len": 16384},
        Bound.MEMORY,
    ),
    "E2EL": ({"objectives": Objectives(e2el=Objective(percentile="p95", limit=timedelta(seconds=6)))}, {}, Bound.E2EL),
}


@pytest.mark.parametrize(("asked", "served", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_what_binds_is_named(asked, served, bound):
    assert estimate(replica(**served), workload(**asked)).bound is bound


def test_capacity_is_where_everything_still_holds():
    found = estimate(replica(), workload())

    assert not list(broken(replica(), workload(), speed(replica(), workload(), found.capacity)))
    assert list(broken(replica(), workload(), speed(replica(), workload(), found.capacity * 1.001)))


def test_an_objective_that_no_single_request_keeps_is_no_capacity():
    assert estimate(replica(gpu="L4", max_model_len=4096), workload()).capacity == 0


@settings(deadline=None, max_examples=30)
@given(rate=st.floats(0.01, 50), more=st.floats(0, 50))
def test_more_requests_are_never_faster(rate, more):
    less, full = (speed(replica(), workload(), value) for value in (rate, rate + more))

    assert full.tpot >= less.tpot * (1 - 1e-5)
    assert full.ttft >= less.ttft * (1 - 1e-5)


@settings(deadline=None, max_examples=20)
@given(share=st.floats(1, 3))
def test_a_faster_gpu_never_carries_less(share):
    slow = replica()
    fast = dataclasses.replace(slow, accelerator=dataclasses.replace(slow.accelerator, bandwidth=share * 3.35e12))

    assert estimate(fast, workload()).capacity >= estimate(slow, workload()).capacity * (1 - 1e-6)
