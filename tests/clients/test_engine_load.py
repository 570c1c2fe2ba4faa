"""What an engine under a benchmark says, from recorded answers of vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from servingplan.clients.engine_load import kv_tokens, read_load
from servingplan.clients.engine_series import NoReading

DATA = Path(__file__).parents[1] / "data" / "vllm"


def recorded(name: str):
    return read_load((DATA / name).read_text(), server="http://engine:8000", at=3.0)


def test_the_recorded_preemptions_are_read() -> None:
    load = recorded("metrics-0.32-preemptions.txt")
    assert load.at == 3.0
    assert load.preemptions == 154
    assert load.finished == 48
    assert load.waiting_for_capacity == 0
    assert load.prefix_queries == 2840
    assert load.iteration_tokens[8.0] == 4633
    assert load.latency == (pytest.approx(1093.69571), 48)
    assert load.inference == (pytest.approx(287.147706), 48)
    assert load.api_cpu_s == pytest.approx(24.96)


def test_the_size_of_the_kv_cache_is_read_from_its_labels() -> None:
    assert kv_tokens(recorded("metrics-0.32-preemptions.txt").cache) == 1280


def test_what_a_version_does_not_have_is_unknown() -> None:
    text = (DATA / "metrics-0.32-burst.txt").read_text()
    kept = [line for line in text.splitlines() if "prefix_cache" not in line and "by_reason" not in line]
    load = read_load("\n".join(kept) + "\n", server="http://engine:8000", at=0.0)
    assert load.prefix_hits is None
    assert load.waiting_for_capacity is None
    assert load.running == 0


BROKEN = {
    "a page": ("<html></html>", "page"),
    "another program": ("go_goroutines 7\n", "vllm:num_requests_running"),
    "not a number": ((DATA / "metrics-0.32-burst.txt").read_text().replace(
        'vllm:num_requests_running{engine="0",model_name="tiny"} 0.0',
        'vllm:num_requests_running{engine="0",model_name="tiny"} NaN'), "no number"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_one_error(text: str, says: str) -> None:
    with pytest.raises(NoReading, match=says):
        read_load(text, server="http://engine:8000", at=0.0)
