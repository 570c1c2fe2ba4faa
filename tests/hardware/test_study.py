"""Levels, layouts, costs and the choice among options."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servingplan.hardware.engine import Version, default_max_num_batched_tokens, default_max_num_seqs
from servingplan.hardware.layouts import advice, layouts, problem
from servingplan.hardware.memory import Logged, logged_memory, memory
from servingplan.hardware.model import WeightSource
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.replicas import Failure, Level, needs, replicas_for
from servingplan.hardware.storage import Keeping, storage
from servingplan.hardware.study import Asked, Serving, ranked, study
from servingplan.hardware.weights import lower_bound, requantized, stage_bytes, total_bytes
from support.models import accelerator, engine, gib, model, objectives, old_engine, replica, workload

KEEPING = Keeping(versions=2, retention=timedelta(days=15), interval=timedelta(seconds=15))


def asked(**changes) -> Asked:
    usual = Asked(workload=workload(), failure=Failure.REPLICA, spare=1, measured={}, keeping=KEEPING)
    return dataclasses.replace(usual, **changes)


def serving(**changes) -> Serving:
    usual = Serving(
        version=Version(major=0, minor=32),
        max_model_len=8192,
        max_num_seqs=None,
        max_num_batched_tokens=None,
        utilization=None,
        cache_dtype="auto",
        prefix_caching=True,
        layout=None,
    )
    return dataclasses.replace(usual, **changes)


def found(*models, gpus=("H100-SXM",), prices=(), ask=None, log=None, **how):
    table = [dataclasses.replace(accelerator(name), price=dict(prices).get(name)) for name in gpus]
    return study([model(name) for name in models], table, serving(**how), ask or asked(), log)


def level(result, which):
    return next(need for need in result.needs if need.level is which)


# ---- levels ----


def test_base_is_the_rate_over_the_capacity():
    assert level_of(capacity=5).replicas == 4
    assert level_of(capacity=18).replicas == 1
    assert level_of(capacity=17.9).replicas == 2


def level_of(which=Level.BASE, capacity=5.0, failure=Failure.REPLICA, **changes):
    return next(need for need in needs(replica(), workload(**changes), capacity, failure) if need.level is which)


def test_a_long_burst_needs_its_whole_rate():
    assert level_of(Level.BURST, burst=2, burst_duration=timedelta(hours=1)).replicas == 8


def test_a_short_burst_may_wait_as_long_as_ttft_lets_it():
    need = level_of(Level.BURST, burst=2, burst_duration=timedelta(seconds=2))

    # 1.5 s of TTFT, most of it left to wait: 36/s x 2 s over 3.4 s.
    assert need.replicas == 5
    assert "3 fewer because TTFT lets a burst of 2 s wait" in need.because


def test_without_a_limit_nothing_waits():
    need = level_of(Level.BURST, burst=2, burst_duration=timedelta(seconds=2), objectives=objectives(ttft_ms=None))

    assert need.replicas == 8


def test_a_failure_takes_one_replica_or_all_of_a_node():
    one = level_of(Level.FAILURE)
    node = level_of(Level.FAILURE, failure=Failure.NODE)

    assert (one.replicas, one.lost) == (5, 1)
    assert (node.replicas, node.lost) == (12, 8)
    assert "a node of 8 GPUs gone with 8 replicas" in node.because


def test_the_replicas_that_are_left_carry_the_load():
    base, failure = level_of(burst=1), level_of(Level.FAILURE, burst=1)

    assert base.speed.rate == pytest.approx(18 / 5)
    assert failure.speed.rate == pytest.approx(18 / 4)


@given(rate=st.floats(0.1, 1000), capacity=st.floats(0.1, 100))
def test_replicas_carry_the_rate_and_one_less_does_not(rate, capacity):
    count = replicas_for(rate, capacity)

    assert count * capacity >= rate * (1 - 1e-6)
    assert count == 1 or (count - 1) * capacity < rate


# ---- layouts and advice ----


@pytest.mark.parametrize(
    ("name", "gpu", "expected"),
    [
        ("llama-3.1-8b", "H100-SXM", ["TP1", "TP2", "TP4", "TP8", "TP8 x PP2", "TP8 x PP3", "TP8 x PP4"]),
        ("qwen2.5-7b", "H100-SXM", ["TP1", "TP2", "TP4", "TP4 x PP2", "TP4 x PP3", "TP4 x PP4"]),
        ("llama-4-scout", "A10", ["TP1", "TP2", "TP4", "TP4 x PP2", "TP4 x PP3", "TP4 x PP4"]),
        ("tiny", "A10", ["TP1", "TP2", "TP4", "TP4 x PP2"]),
    ],
)
def test_layouts_that_vllm_accepts_smallest_first(name, gpu, expected):
    assert [str(layout) for layout in layouts(model(name), accelerator(gpu))] == expected


@pytest.mark.parametrize(
    ("layout", "words"),
    [(Layout(tensor=3), "28 attention heads"), (Layout(tensor=8), "4 KV heads"), (Layout(pipeline=40), "28 layers")],
)
def test_layouts_that_vllm_refuses(layout, words):
    assert words in problem(model("qwen2.5-7b"), layout)


ADVICE = {
    "one is comfortable": ("llama-3.1-8b", "H100-SXM", Layout(), "Fits one GPU comfortably"),
    "one is tight": ("qwen3-30b-a3b", "H100-SXM", Layout(), "Fits one GPU with less than"),
    "several in a node": ("qwen2.5-72b", "H100-SXM", Layout(tensor=4), "Takes 4 GPUs of one node"),
    "several over PCIe": ("qwen2.5-72b", "L40S", Layout(tensor=8), "NVLink would be faster"),
    "more than a node": ("qwen2.5-72b", "A10", Layout(tensor=4, pipeline=4), "Needs more than a node"),
    "copies of KV heads": ("qwen2.5-7b", "H100-SXM", Layout(tensor=8), "each is held 2 times"),
    "latent attention": ("deepseek-v2-lite", "H100-SXM", Layout(tensor=2), "data-parallel attention"),
    "experts": ("mixtral-8x7b", "H100-SXM", Layout(tensor=2), "Experts are 97% of the weights"),
}


@pytest.mark.parametrize(("name", "gpu", "layout", "words"), ADVICE.values(), ids=ADVICE)
def test_advice_says_what_to_do_and_why(name, gpu, layout, words):
    place = memory(model(name), layout, engine(max_model_len=4096), accelerator(gpu))

    assert words in " ".join(advice(model(name), layout, accelerator(gpu), place))


def test_a_dense_model_on_one_gpu_gets_one_sentence():
    place = memory(model("llama-3.1-8b"), Layout(), engine(), accelerator("H100-SXM"))

    assert len(advice(model("llama-3.1-8b"), Layout(), accelerator("H100-SXM"), place)) == 1


# ---- the choice ----


def test_without_a_workload_the_smallest_comfortable_replica_is_taken():
    ask = asked(workload=None, spare=0)

    assert str(found("qwen2.5-72b", ask=ask).best.choice.replica.layout) == "TP4"
    assert str(found("llama-3.1-8b", ask=ask).best.choice.replica.layout) == "TP1"
    assert found("llama-3.1-8b", ask=ask).best.choice.gpus == 1


def test_with_a_workload_the_layout_with_the_fewest_gpus_is_taken():
    choice = found("qwen2.5-72b").best.choice
    others = [found("qwen2.5-72b", layout=Layout(tensor=tensor)).options[0].choice for tensor in (2, 4, 8)]

    assert choice.gpus == min(other.gpus for other in others if other is not None)


def test_spare_replicas_come_on_top():
    assert (
        found("llama-3.1-8b", ask=asked(spare=2)).best.choice.replicas
        == found("llama-3.1-8b", ask=asked(spare=0)).best.choice.replicas + 2
    )


def test_a_measured_capacity_takes_the_place_of_the_estimate():
    choice = found("llama-3.1-8b", ask=asked(measured={("llama-3.1-8b", "H100-SXM"): 5.0})).best.choice

    assert (choice.capacity, choice.measured) == (5.0, True)
    assert [need.replicas for need in choice.needs] == [4, 8, 5]
    assert choice.estimate.capacity != 5.0


def test_cost_decides_where_all_have_a_price():
    prices = (("H100-SXM", 2.5), ("L4", 0.01))
    cheap = found("llama-3.1-8b", gpus=("H100-SXM", "L4"), prices=prices, ask=asked(workload=None))

    assert (cheap.best.accelerator.name, cheap.because) == ("L4", "it costs least")
    choice = cheap.best.choice
    assert choice.monthly_cost == pytest.approx(0.01 * choice.gpus * 730)


def test_memory_decides_where_one_has_none():
    some = found("llama-3.1-8b", gpus=("H200", "L40S"), prices=(("H200", 0.01),), ask=asked(workload=None))

    assert (some.best.accelerator.name, some.because) == (
        "L40S",
        "it takes the least GPU memory; state prices to compare costs",
    )


def test_the_best_is_first_and_what_does_not_pass_last():
    result = found("qwen2.5-72b", "llama-3.1-8b", gpus=("L4", "H100-SXM"), max_model_len=32768)
    order = ranked(result)

    assert order[0] is result.best
    passing = [option.choice is not None for option in order]
    assert passing == sorted(passing, reverse=True)


WHY_NOT = {
    "a context that the model does not have": (
        "gemma-2-9b",
        {"max_model_len": 9000},
        "its context ends at 8,192 tokens",
    ),
    "a layout that cannot be": ("qwen2.5-7b", {"layout": Layout(tensor=3)}, "cannot be split over 3"),
    "weights that do not fit": ("qwen2.5-72b", {"layout": Layout()}, "weights and margins need"),
    "no room for one request": ("gemma-3-27b", {"max_model_len": 131072, "layout": Layout()}, "lower --max-model-len"),
}


@pytest.mark.parametrize(("name", "how", "words"), WHY_NOT.values(), ids=WHY_NOT)
def test_an_option_that_cannot_be_says_why(name, how, words):
    result = found(name, **how)

    assert result.best is None
    assert words in result.options[0].why_not


def test_objectives_that_no_layout_keeps_say_which_and_by_how_much():
    result = found("llama-3.1-8b", ask=asked(workload=workload(objectives=objectives(tpot_ms=2))))

    assert "one request at a time breaks TPOT: estimated TTFT" in result.options[0].why_not


# ---- memory ----


def test_a_log_takes_the_place_of_estimates():
    log = Logged(weights=gib(7.01), activation=gib(2.87), outside_torch=gib(2.07), graphs=gib(1.09),
                 cache=gib(59.32), tokens=2_591_776)  # fmt: skip
    place = logged_memory(
        model("gpt-oss-20b"), Layout(tensor=2), old_engine(utilization=0.9), accelerator("H100-SXM"), log
    )

    assert (place.logged, place.cache, place.error, place.margins.graphs) == (True, gib(59.32), 0, 0)
    assert place.pool.concurrency == pytest.approx(316.07, abs=0.01)
    assert abs(place.disagreement) < 0.001
    assert place.allowed - place.weights - place.margins.total == pytest.approx(gib(59.32), rel=0.001)


def test_what_a_log_does_not_say_is_estimated():
    log = Logged(weights=None, activation=None, outside_torch=None, graphs=None, cache=None, tokens=100_000)
    place = logged_memory(model("llama-3.1-8b"), Layout(), engine(), accelerator("H100-SXM"), log)

    assert place.weights == max(stage_bytes(model("llama-3.1-8b"), Layout()))
    assert place.disagreement is None
    assert place.cache == place.pool.blocks * place.pool.block_bytes


@pytest.mark.parametrize(("version", "graphs"), [("0.19", 0), ("0.21", 1.2), ("0.32", 1.2)])
def test_graphs_count_from_the_version_on_that_takes_them_off(version, graphs):
    place = memory(model("llama-3.1-8b"), Layout(), engine(version=Version.parse(version)), accelerator("H100-SXM"))

    assert place.margins.graphs == gib(graphs)


@pytest.mark.parametrize("text", ["", "latest", "v", "0"])
def test_a_version_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="no version of vLLM"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("gpu", "seqs", "batched"),
    [("L4", 256, 2048), ("A100-80GB", 256, 2048), ("H100-SXM", 1024, 8192), ("B200", 1024, 16384)],
)
def test_defaults_are_vllms_for_the_gpu(gpu, seqs, batched):
    place = accelerator(gpu)

    assert default_max_num_seqs(place.memory_gib, ampere=place.ampere) == seqs
    assert default_max_num_batched_tokens(place.memory_gib, ampere=place.ampere) == batched


@settings(max_examples=40)
@given(more=st.integers(0, gib(100)), utilization=st.floats(0.5, 0.99))
def test_more_memory_or_utilization_never_leaves_less(more, utilization):
    small = accelerator("H100-SXM")
    large = dataclasses.replace(small, memory=small.memory + more)
    less, full = (
        memory(model("llama-3.1-8b"), Layout(), engine(utilization=utilization), gpu).cache for gpu in (small, large)
    )

    assert full >= less


# ---- formats, disks ----


def test_another_format_changes_linear_weights_alone():
    plain = model("llama-3.1-8b")
    eight = requantized(plain, "fp8")
    tables = 2 * 128_256 * 4096

    assert total_bytes(eight) == pytest.approx(plain.parameters + tables, rel=0.001)
    assert (eight.name, eight.quantization, eight.weight_source) == ("llama-3.1-8b:fp8", "fp8", WeightSource.CONFIG)
    assert lower_bound(eight) == pytest.approx(total_bytes(eight))


def test_disk_and_metrics_follow_from_versions_and_retention():
    result = storage(gib(16), 5, KEEPING)

    assert (result.model, result.models) == (gib(16), gib(32))
    assert result.metrics == 5 * 500 * 86_400 * 2
