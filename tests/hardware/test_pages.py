"""Pages, groups and pools beyond the public logs: copies, windows, states, padding, and what never gets worse."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servingplan.hardware.engine import Version
from servingplan.hardware.kv_cache import pool
from servingplan.hardware.model import Attention, AttentionLayer, Layer, Model, StateLayer, StateTensor
from servingplan.hardware.pages import Page, cache_bytes, cache_groups, group_size
from servingplan.hardware.parallelism import Layout, stages
from support.models import engine, gib, model, old_engine

FULL = AttentionLayer(kind=Attention.FULL, heads=8, key_size=128, value_size=128)
SLIDING = AttentionLayer(kind=Attention.SLIDING, heads=8, key_size=128, value_size=128, window=4096)
CHUNKED = AttentionLayer(kind=Attention.CHUNKED, heads=8, key_size=128, value_size=128, window=4096)
STATE = StateLayer(tensors=(StateTensor(elements=300_000, bytes_each=2),))


def layers(*caches) -> Model:
    """A model with these caches, one a layer."""
    return dataclasses.replace(model("llama-3.1-8b"), layers=tuple(Layer(caches=(cache,)) for cache in caches))


def groups(*caches, tensor=1, **changes):
    return cache_groups(layers(*caches), Layout(tensor=tensor), engine(**changes))


@pytest.mark.parametrize(
    ("name", "tensor", "cache_dtype", "expected"),
    [
        ("llama-3.1-8b", 1, "auto", 131_072),
        ("llama-3.1-8b", 1, "fp8", 65_536),
        ("llama-3.1-8b", 4, "auto", 32_768),
        ("llama-3.1-8b", 8, "auto", 16_384),
        ("llama-3.1-8b", 16, "auto", 16_384),
        ("deepseek-v2-lite", 1, "auto", 27 * 1152),
        ("deepseek-v2-lite", 8, "auto", 27 * 1152),
        ("deepseek-v2-lite", 1, "fp8", 27 * 576),
        ("deepseek-v2-lite", 1, "fp8_ds_mla", 27 * 656),
        ("deepseek-v2-lite", 1, "nvfp4_ds_mla", 27 * 352),
        ("gemma-3-27b", 1, "auto", 10 * 16 * 256 * 2),
    ],
)
def test_bytes_of_a_token_on_one_gpu(name, tensor, cache_dtype, expected):
    assert cache_bytes(model(name), Layout(tensor=tensor), engine(cache_dtype=cache_dtype)) == expected


def test_more_gpus_than_kv_heads_hold_copies():
    eight, sixteen = (
        pool([gib(10)], model("llama-3.1-8b"), Layout(tensor=tensor), engine()).tokens for tensor in (8, 16)
    )

    assert eight == sixteen


def test_the_cache_of_a_pipeline_is_that_of_its_largest_stage():
    assert cache_bytes(model("llama-3.1-8b"), Layout(pipeline=3), engine()) == 11 * 4096


@pytest.mark.parametrize(
    ("count", "pipeline", "sizes"),
    [(32, 1, [32]), (32, 4, [8, 8, 8, 8]), (33, 4, [8, 8, 9, 8]), (34, 4, [8, 9, 9, 8]), (35, 4, [9, 9, 9, 8])],
)
def test_layers_that_do_not_divide_go_before_the_last_stage(count, pipeline, sizes):
    assert [len(stage) for stage in stages(count, pipeline)] == sizes


@pytest.mark.parametrize(
    ("page", "length", "in_flight", "blocks"),
    [
        (Page(kind=Attention.SLIDING, tokens=16, size=1, window=4096), 100_000, 8192, 769),
        (Page(kind=Attention.SLIDING, tokens=16, size=1, window=4096), 1000, 8192, 64),
        (Page(kind=Attention.CHUNKED, tokens=16, size=1, window=8192), 100_000, 8192, 1024),
        (Page(kind=Attention.CHUNKED, tokens=16, size=1, window=8192), 1000, 8192, 63),
        (Page(kind=Attention.FULL, tokens=16, size=1), 100_000, 8192, 6250),
        (Page(kind=None, tokens=16, size=1, states=2), 100_000, 8192, 2),
    ],
    ids=["window", "shorter than the window", "chunk", "shorter than the chunk", "all", "state"],
)
def test_blocks_of_one_request(page, length, in_flight, blocks):
    assert page.blocks(length, in_flight) == blocks


def test_batches_in_flight_count_from_the_version_on_that_schedules_ahead():
    assert old_engine().tokens_in_flight(1) == 8192
    assert engine().tokens_in_flight(1) == 2 * 8192
    assert engine().tokens_in_flight(4) == 5 * 8192


def test_alike_layers_are_one_group():
    (group,) = groups(*[FULL] * 5)

    assert group.members == (0, 1, 2, 3, 4)


def test_layers_with_a_window_are_split_to_the_size_of_the_rarer_kind():
    found = groups(*[SLIDING, SLIDING, SLIDING, FULL] * 2)

    assert [(group.first.kind, group.members) for group in found] == [
        (Attention.SLIDING, (0, 4)),
        (Attention.SLIDING, (1, 5)),
        (Attention.SLIDING, (2, 6)),
        (Attention.FULL, (3, 7)),
    ]


@pytest.mark.parametrize(
    ("full", "sliding", "size"), [(10, 52, 10), (12, 12, 12), (13, 12, 13), (10, 15, 10), (10, 14, 14)]
)
def test_the_size_of_groups(full, sliding, size):
    pages = {
        Page(kind=Attention.FULL, tokens=16, size=1): full,
        Page(kind=Attention.SLIDING, tokens=16, size=1): sliding,
    }

    assert group_size(pages) == size


def test_what_does_not_fill_its_groups_is_padding():
    assert pool([gib(19.53)], model("gemma-3-27b"), Layout(), engine()).wasted == pytest.approx(8 / 70)
    assert pool([gib(10)], model("llama-3.1-8b"), Layout(), engine()).wasted == 0


def test_attention_grows_its_blocks_until_one_holds_a_state():
    found = groups(STATE, STATE, STATE, FULL)

    # 600,000 bytes of state, 65,536 a block of 16 tokens: 10 of them.
    assert {group.first.size for group in found} == {10 * 65_536}
    assert [group.first.tokens for group in found if group.first.kind is Attention.FULL] == [160]


def test_states_are_divided_over_gpus():
    (one,), (four,) = (cache_groups(layers(STATE), Layout(tensor=tensor), engine()) for tensor in (1, 4))

    assert (one.first.size, four.first.size) == (600_000, 150_000)


@pytest.mark.parametrize(
    ("changes", "states"), [({}, 2), ({"prefix_caching": False}, 1), ({"version": Version(major=0, minor=19)}, 1)]
)
def test_prefix_caching_keeps_a_second_state(changes, states):
    (group,) = groups(STATE, **changes)

    assert group.first.blocks(100_000, 0) == states


def test_a_model_of_states_alone_holds_requests_of_any_length():
    short, long = (pool([gib(1)], layers(STATE, STATE), Layout(), engine(max_model_len=n)) for n in (1000, 100_000))

    assert short.concurrency == long.concurrency


def test_full_layers_of_different_sizes_are_one_group():
    small = dataclasses.replace(FULL, heads=2)
    (group,) = groups(FULL, small)

    assert [page.size for page in group.pages] == [65_536, 16_384]


def test_smaller_pages_hold_more_tokens_where_that_divides():
    small = dataclasses.replace(SLIDING, heads=2)
    sliding, full = groups(small, FULL)

    assert (sliding.first.size, sliding.first.tokens) == (full.first.size, 64)


def test_smaller_pages_are_padded_where_it_does_not():
    odd = dataclasses.replace(SLIDING, heads=3)
    sliding, full = groups(odd, FULL)

    assert (sliding.first.size, sliding.first.tokens) == (full.first.size, 16)


def test_nothing_cached_is_no_pool():
    assert (
        pool([gib(1)], dataclasses.replace(model("tiny"), layers=(Layer(caches=()),) * 2), Layout(), engine()) is None
    )


def test_no_room_is_no_block():
    assert pool([-1], model("tiny"), Layout(), engine()).blocks == 0


# ---- what never gets worse ----

NAMES = st.sampled_from(["llama-3.1-8b", "deepseek-v2-lite", "gemma-3-27b", "gpt-oss-20b", "llama-4-scout"])


@given(name=NAMES, size=st.integers(0, gib(100)), more=st.integers(0, gib(100)))
def test_more_memory_never_holds_fewer_tokens(name, size, more):
    less, full = (pool([bytes_], model(name), Layout(), engine()) for bytes_ in (size, size + more))

    assert full.tokens >= less.tokens
    assert full.concurrency >= less.concurrency


@given(name=NAMES, tensor=st.sampled_from([1, 2, 4]))
def test_more_gpus_never_hold_fewer_tokens(name, tensor):
    few, many = (pool([gib(20)], model(name), Layout(tensor=count), engine()) for count in (tensor, 2 * tensor))

    assert many.tokens >= few.tokens


@given(name=NAMES, length=st.integers(1, 100_000), longer=st.integers(0, 100_000))
def test_longer_requests_are_never_more(name, length, longer):
    short, long = (
        pool([gib(20)], model(name), Layout(), engine(max_model_len=tokens)) for tokens in (length, length + longer)
    )

    assert long.concurrency <= short.concurrency


@given(name=NAMES, size=st.integers(1, gib(50)))
def test_blocks_never_take_more_than_there_is(name, size):
    found = pool([size], model(name), Layout(), engine())

    assert found.blocks * found.block_bytes <= size < (found.blocks + 1) * found.block_bytes


@given(
    kinds=st.lists(st.sampled_from([FULL, SLIDING, CHUNKED, STATE]), min_size=1, max_size=40),
    pipeline=st.integers(1, 4),
)
def test_every_layer_is_in_exactly_one_group_and_no_stage_is_forgotten(kinds, pipeline):
    layout = Layout(pipeline=min(pipeline, len(kinds)))
    found = cache_groups(layers(*kinds), layout, engine())
    held = stages(len(kinds), layout.pipeline)

    assert sorted(member for group in found for member in group.members) == list(range(len(kinds)))
    assert len({page.size for group in found for page in group.pages}) == 1 or len(found) == 1
    assert sum(len(stage) for stage in held) == len(kinds)
