"""Results of `vllm bench serve`: the recorded one, older and newer ones, broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servingplan.benchmarking.bench_serve import read_result
from servingplan.benchmarking.goodput import GOOD, blocks, criteria, met
from servingplan.benchmarking.results import InvalidResult
from support.benches import a_result, schedule
from support.plans import a_workload
from support.queueing import some_objectives

RECORDED = Path(__file__).parents[1] / "data" / "vllm" / "bench-serve-0.32.json"


def read(text: str, *, seed: int = 0):
    return read_result(text, name="result.json", seed=seed)


def test_the_recorded_result_is_read_whole() -> None:
    requests = read(RECORDED.read_text())
    stated = json.loads(RECORDED.read_text())
    assert len(requests.started) == 100
    assert requests.started[0] == 0
    assert not requests.failed.any()
    assert requests.output_tokens.sum() == stated["total_output_tokens"]
    assert requests.ttft.mean() * 1000 == pytest.approx(stated["mean_ttft_ms"])
    assert requests.tpot[requests.output_tokens > 1].mean() * 1000 == pytest.approx(stated["mean_tpot_ms"])
    assert requests.itl_median == pytest.approx(stated["median_itl_ms"] / 1000)


def test_goodput_is_that_of_vllm_where_every_request_counts() -> None:
    stated = json.loads(RECORDED.read_text())
    requests = read(RECORDED.read_text())
    limits = some_objectives(ttft_s=0.5, tpot_s=0.05)
    good = met(requests, limits)[GOOD]
    assert good.sum() / stated["duration"] == pytest.approx(stated["request_goodput"])


def test_the_recorded_client_sent_late_and_it_is_seen() -> None:
    """The schedule is drawn again from its seed: half of the requests follow it to 20 ms, one in a hundred does not."""
    lag = read(RECORDED.read_text()).lag
    assert np.quantile(lag, 0.5) < 0.02
    assert np.quantile(lag, 0.99) > 0.4


def test_a_client_that_keeps_up_has_no_lag() -> None:
    times = schedule(200, 5.0, seed=7)
    assert read(a_result(started=times, request_rate=5.0), seed=7).lag.max() < 1e-6


def test_where_the_schedule_is_another_one_the_clients_own_queue_is_what_is_known() -> None:
    times = schedule(200, 5.0, seed=7)
    lag = read(a_result(started=times, request_rate=5.0, queue_times=[0.003] * 200), seed=8).lag
    assert lag.tolist() == pytest.approx([0.003] * 200)


OLDER_AND_NEWER = {
    "without latencies": {"latencies": None},
    "without queue times": {"queue_times": None},
    "without errors": {"errors": None},
    "without times between tokens": {"itls": None},
    "without burstiness": {"burstiness": None},
    "with the server's own times": {"server_queue_times": [0.0] * 3, "server_ttfts": [0.1] * 3},
    "with a key that nobody knows": {"energy_joules": {"total": 3}},
}


@pytest.mark.parametrize("changes", OLDER_AND_NEWER.values(), ids=OLDER_AND_NEWER)
def test_results_of_older_and_newer_versions_are_read(changes: dict[str, Any]) -> None:
    requests = read(a_result(**changes))
    assert requests.latency.tolist() == pytest.approx([0.3] * 3)
    assert requests.tpot.tolist() == pytest.approx([0.02] * 3)
    assert not requests.failed.any()


def test_without_times_between_tokens_silences_are_unknown_rather_than_none() -> None:
    assert read(a_result(itls=None)).silences is None
    assert read(a_result()).silences == ()


BROKEN = {
    "cut off": (a_result()[:-20], "cut off"),
    "empty": ("", "no JSON"),
    "a list": ("[]", "one JSON object"),
    "without details": (a_result(start_times=None), "start_times: it is missing: run `vllm bench serve`"),
    "without any latency": (a_result(latencies=None, itls=None), "itls"),
    "no request": (a_result(started=()), "no request"),
    "lists of different lengths": (a_result(ttfts=[0.1, 0.1]), "ttfts: it has 2 entries"),
    "text among the numbers": (a_result(ttfts=[0.1, "x", 0.1]), "ttfts: an entry is no finite number"),
    "not a number": (a_result(input_lens=[1, float("nan"), 1]), "input_lens: an entry is no finite number"),
    "a number for a list": (a_result(output_lens=3), "output_lens: expected a list"),
    "text between tokens": (a_result(itls=[["x"]] * 3), "itls: expected a list of numbers"),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_result_is_one_clear_error(text: str, says: str) -> None:
    with pytest.raises(InvalidResult) as caught:
        read(text)
    assert len(caught.value.problems) == 1
    assert says in str(caught.value)
    assert "result.json" in str(caught.value)


def test_requests_that_failed_are_sent_and_not_good() -> None:
    requests = read(a_result(errors=["", "Service Unavailable", ""], output_lens=[11, 0, 11], ttfts=[0.1, 0.0, 0.1]))
    assert requests.failed.tolist() == [False, True, False]
    (block,) = blocks(requests, a_workload().objectives, start=0, length=10)
    assert (block.sent, block.met) == (3, (2,))


def test_a_time_without_any_token_is_seen_only_while_somebody_waits() -> None:
    gaps = [[0.02] * 5 + [3.0] + [0.02] * 4, [0.02] * 10]
    paused = read(a_result(started=(0.0, 10.0), itls=gaps, latencies=[3.28, 0.3]))
    assert [round(silence.length, 2) for silence in paused.silences or ()] == [3.0]
    assert paused.within(0, 5).silences
    assert not paused.within(5, 20).silences


def test_in_flight_is_a_mean_over_time() -> None:
    requests = read(a_result(started=(0.0, 0.0, 2.0), latencies=[4.0, 1.0, 1.0], itls=None))
    mean, busiest = requests.in_flight(0.0, 4.0)
    assert mean == pytest.approx((4 + 1 + 1) / 4)
    assert busiest == 2


def test_only_requests_that_started_in_the_window_count() -> None:
    requests = read(a_result(started=tuple(float(second) for second in range(100))))
    counted = blocks(requests, a_workload().objectives, start=30, length=60)
    assert [block.sent for block in counted] == [30, 30]


def test_a_percentile_stricter_than_the_share_is_a_criterion_of_its_own() -> None:
    assert [wanted.name for wanted in criteria(some_objectives(share="0.9"))] == ["good", "ttft", "tpot"]
    assert [wanted.name for wanted in criteria(some_objectives(share="0.99"))] == ["good"]
