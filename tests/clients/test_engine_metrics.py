"""One pod's /metrics: recordings of the real vLLM, and what may be wrong with a text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from servingplan.clients.engine_metrics import read_metrics
from servingplan.clients.engine_series import Limits, NoReading
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Reading, Within

RECORDINGS = Path(__file__).parents[1] / "data/vllm"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LIMITS = Limits(ttft=1.5, tpot=0.05, queue=0.5)

SMALLEST = """\
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 40.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 30.0
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
"""


def read(text: str, limits: Limits = LIMITS) -> Reading:
    return read_metrics(text, pod="chat-1", at=NOON, limits=limits)


def recording(name: str) -> str:
    return (RECORDINGS / f"metrics-0.32-{name}.txt").read_text()


def histogram(name: str, **buckets: float) -> str:
    """``histogram("x", **{"0.5": 1, "+Inf": 2})``."""
    return "".join(f'{name}_bucket{{engine="0",le="{le}"}} {count}\n' for le, count in buckets.items())


def test_a_recorded_burst_is_read() -> None:
    assert read(recording("burst")) == Reading(
        pod="chat-1",
        at=NOON,
        running=0,
        waiting=0,
        arrived=103,
        finished=103,
        preemptions=0,
        rejections=0,
        kv_usage=0,
        prompts=103,
        prompt_tokens=8699,
        output_tokens=5888,
        prefix_queries=8699,
        prefix_hits=0,
        ttft=Within(below=28, above=50, count=103),  # 1.5 s lies between the edges 1 s and 2.5 s
        tpot=Within(below=102, above=102, count=103),
        queue=Within(below=26, above=26, count=103),
    )


def test_recorded_preemptions_are_counted() -> None:
    reading = read(recording("preemptions"))
    assert (reading.preemptions, reading.finished, reading.arrived) == (154, 48, 48)


def test_without_limits_no_histogram_is_read() -> None:
    reading = read(recording("burst"), Limits())
    assert (reading.ttft, reading.tpot, reading.queue) == (None, None, None)


def test_instants_of_creation_are_no_counts() -> None:
    without = re.sub(r"^.*_created.*\n", "", recording("burst"), flags=re.MULTILINE)
    assert "_created" in recording("burst")
    assert read(without) == read(recording("burst"))


def test_counts_are_summed_over_engines_and_kv_usage_is_the_largest() -> None:
    one = recording("burst").replace('vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.0', "")
    both = (
        one
        + re.sub(
            r"^(?!vllm:admission).*$",
            lambda line: line[0].replace('engine="0"', 'engine="1"'),
            "\n".join(line for line in one.splitlines() if 'engine="0"' in line),
            flags=re.MULTILINE,
        )
        + "\n"
    )
    both += 'vllm:kv_cache_usage_perc{engine="0"} 0.25\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'

    reading = read(both)

    assert (reading.arrived, reading.finished, reading.kv_usage) == (206, 206, 0.75)
    assert reading.ttft == Within(below=56, above=100, count=206)


def test_what_never_rejects_has_rejected_nothing_and_what_is_not_there_is_not_known() -> None:
    reading = read(SMALLEST)
    assert (reading.running, reading.waiting, reading.rejections) == (3, 2, 0)
    assert (reading.kv_usage, reading.prompts, reading.prompt_tokens, reading.ttft) == (None, None, None, None)


WAITING = """\
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 0.5
vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 1.5
"""
LORA = 'vllm:lora_requests_info{max_lora="1",running_lora_adapters="",waiting_lora_adapters="a"} 1.7e+09\n'


@pytest.mark.parametrize(
    ("more", "waiting"),
    [
        pytest.param("", 2, id="an older version, without reasons"),
        pytest.param(WAITING, 0.5, id="deferred for a transfer does not count"),
        pytest.param(WAITING + LORA, 2, id="deferred for a LoRA slot counts"),
        pytest.param(WAITING.replace("1.5", "9"), 0, id="gauges of two instants are not below zero"),
    ],
)
def test_waiting_counts_what_more_replicas_would_serve(more: str, waiting: float) -> None:
    assert read(SMALLEST + more).waiting == waiting


@pytest.mark.parametrize(
    ("old", "field", "value"),
    [
        pytest.param("vllm:gpu_cache_usage_perc 0.5\n", "kv_usage", 0.5, id="KV usage"),
        pytest.param(
            histogram("vllm:time_per_output_token_seconds", **{"0.05": 8, "+Inf": 9}),
            "tpot",
            Within(below=8, above=8, count=9),
            id="time per output token",
        ),
        pytest.param(
            histogram("vllm:time_in_queue_requests", **{"0.3": 1, "0.8": 2, "+Inf": 3}),
            "queue",
            Within(below=1, above=2, count=3),
            id="time in queue",
        ),
    ],
)
def test_series_of_older_versions_are_read_by_their_old_names(old: str, field: str, value: object) -> None:
    assert getattr(read(SMALLEST + old), field) == value


def test_where_old_and_new_names_are_both_there_the_new_one_counts() -> None:
    assert read(SMALLEST + "vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.4\n").kv_usage == 0.4


@pytest.mark.parametrize(
    ("limit", "within"),
    [
        pytest.param(1.0, Within(below=5, above=5, count=9), id="on an edge"),
        pytest.param(0.7, Within(below=2, above=5, count=9), id="between two edges"),
        pytest.param(0.1, Within(below=0, above=2, count=9), id="below the first edge"),
        pytest.param(30.0, Within(below=7, above=9, count=9), id="above the last edge"),
    ],
)
def test_a_limit_lies_between_the_nearest_edges(limit: float, within: Within) -> None:
    text = SMALLEST + histogram("vllm:time_to_first_token_seconds", **{"0.5": 2, "1.0": 5, "2.5": 7, "+Inf": 9})
    assert read(text, Limits(ttft=limit)).ttft == within


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        pytest.param("", Reason.METRICS_MISSING, "vllm:num_requests_running", id="nothing"),
        pytest.param("go_goroutines 7\n", Reason.METRICS_MISSING, "an engine's port", id="another program"),
        pytest.param("<html>Sign in</html>", Reason.METRICS_INVALID, "page", id="a page"),
        pytest.param(SMALLEST[:-40], Reason.METRICS_INVALID, "cut off", id="cut off within a line"),
        pytest.param(SMALLEST[:-3], Reason.METRICS_INVALID, "cut off", id="cut off within a number"),
        pytest.param(SMALLEST[:114], Reason.METRICS_MISSING, "vllm:num_preemptions_total", id="cut off after a line"),
        pytest.param(SMALLEST.replace("3.0", "NaN"), Reason.METRICS_INVALID, "nan", id="NaN"),
        pytest.param(SMALLEST.replace("40.0", "+Inf"), Reason.METRICS_INVALID, "inf", id="infinite"),
        pytest.param(SMALLEST.replace("30.0", "-1"), Reason.METRICS_INVALID, "-1", id="negative"),
        pytest.param(SMALLEST.replace("30.0", "many"), Reason.METRICS_INVALID, "cannot be read", id="no number"),
        pytest.param(SMALLEST * 2, Reason.METRICS_INVALID, "twice", id="each series twice"),
        pytest.param(
            SMALLEST + 'vllm:kv_cache_usage_perc{engine="0"} 0.1\nvllm:kv_cache_usage_perc{engine="1"} NaN\n',
            Reason.METRICS_INVALID,
            "vllm:kv_cache_usage_perc",
            id="NaN in a maximum",
        ),
        pytest.param(
            SMALLEST + histogram("vllm:time_to_first_token_seconds", **{"1.0": 9, "2.5": 7, "+Inf": 8}),
            Reason.METRICS_INVALID,
            "ascend",
            id="a histogram that falls",
        ),
        pytest.param(
            SMALLEST + "vllm:time_to_first_token_seconds_bucket 3\n", Reason.METRICS_INVALID, "'le'", id="no edge"
        ),
    ],
)
def test_a_broken_text_is_one_error_with_its_reason(text: str, reason: Reason, says: str) -> None:
    with pytest.raises(NoReading) as caught:
        read(text)
    assert caught.value.reason is reason
    assert says in str(caught.value)
    assert "chat-1" in str(caught.value)
