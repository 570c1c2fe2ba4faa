from datetime import timedelta

import pytest

from servingplan.planning.plan import Objective, Objectives, TokenLengths
from servingplan.planning.target import TargetRef
from servingplan.rendering.drain import drain, longest_output
from support.plans import a_plan, a_workload, an_engine

TARGET = TargetRef(api_version="apps/v1", kind="Deployment", name="vllm")


def objective(milliseconds):
    return Objective(percentile="p95", limit=timedelta(milliseconds=milliseconds))


def test_the_needed_drain_is_the_longest_answer_at_the_pace_of_the_objective():
    # 4,096 tokens x 60 ms x 1.25 + 1.5 s
    result = drain(a_plan(target=an_engine(max_model_len=4096)))
    assert result.needed == timedelta(seconds=308.7)
    assert result.given == timedelta(minutes=5)
    assert result.fits is False
    assert result.unknown is None


@pytest.mark.parametrize(
    ("drain_timeout", "fits"),
    [
        pytest.param(timedelta(seconds=308.7), True, id="exactly enough"),
        pytest.param(timedelta(seconds=308.699), False, id="a millisecond short"),
    ],
)
def test_enough_is_enough(drain_timeout, fits):
    assert drain(a_plan(target=an_engine(max_model_len=4096, drain_timeout=drain_timeout))).fits is fits


@pytest.mark.parametrize(
    ("extra_args", "tokens", "stated_by"),
    [
        (("--override-generation-config", '{"max_new_tokens": 512}'), 512, "max_new_tokens"),
        (('--override-generation-config={"max_new_tokens": 512}',), 512, "max_new_tokens"),
        (('--override_generation_config={"max_new_tokens": 512}',), 512, "max_new_tokens"),
        (('--override-gen={"max_new_tokens": 512}',), 512, "max_new_tokens"),
        (("--override-generation-config.max_new_tokens", "512"), 512, "max_new_tokens"),
        (("--override-generation-config.max_new_tokens=512",), 512, "max_new_tokens"),
        (("--override-generation-config.max-new-tokens=512",), 512, "max_new_tokens"),
        (
            ('--override-generation-config={"max_new_tokens": 1}', "--override-generation-config.max_new_tokens=2"),
            2,
            "max_new_tokens",
        ),
        (('--override-generation-config={"temperature": 0.5}',), 16384, "maxModelLen"),
        (("--override-generation-config.temperature=1",), 16384, "maxModelLen"),
        (("--override-generation-config={broken",), 16384, "maxModelLen"),
        (('--override-generation-config={"max_new_tokens": true}',), 16384, "maxModelLen"),
        (('--override-generation-config={"max_new_tokens": 0}',), 16384, "maxModelLen"),
        (("--override-generation-config",), 16384, "maxModelLen"),
        (('--other={"max_new_tokens": 512}',), 16384, "maxModelLen"),
        ((), 16384, "maxModelLen"),
    ],
    ids=str,
)
def test_what_vllm_lets_an_answer_have_decides(extra_args, tokens, stated_by):
    longest = longest_output(a_plan(target=an_engine(extra_args=extra_args, max_model_len=16384)))
    assert longest is not None
    assert longest.tokens == tokens
    assert stated_by in longest.stated_by


@pytest.mark.parametrize("target", [an_engine(), TARGET], ids=["engine", "target"])
def test_without_a_limit_the_largest_stated_quantile_counts_and_is_named(target):
    longest = longest_output(a_plan(target=target))
    assert longest is not None
    assert (longest.tokens, longest.stated_by) == (900, "workload.tokens.output.p99")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"target": TARGET}, "grace period", id="a target's own grace"),
        pytest.param({"workload": a_workload(tokens=TokenLengths())}, "maxModelLen", id="no length"),
        pytest.param(
            {"workload": a_workload(objectives=Objectives(ttft=objective(1500)))}, "objectives.tpot", id="no TPOT"
        ),
        pytest.param({"workload": a_workload(objectives=Objectives(tpot=objective(60)))}, "ttft", id="no TTFT"),
    ],
)
def test_what_is_not_known_is_said_and_judged_neither_way(changes, why):
    result = drain(a_plan(**changes))
    assert result.needed is None
    assert result.fits is None
    assert result.unknown is not None
    assert why in result.unknown
