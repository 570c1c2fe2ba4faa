import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from servingplan.planning.target import DeletionPolicy, Parallelism, SecretKey, StartupCheck, Volume
from servingplan.rendering.engine import (
    HISTOGRAM_BUCKETS,
    arguments,
    cache_directory,
    engine_hash,
    environment,
    fingerprint,
)
from support.plans import a_full_engine, a_workload, an_engine

VLLM_FLAGS = {
    line for line in (Path(__file__).parent / "vllm_flags.txt").read_text().splitlines() if not line.startswith("#")
}


def flag_names(engine):
    return [argument.partition("=")[0] for argument in arguments(engine) if argument.startswith("--")]


def variable(engine, name):
    (found,) = [item for item in environment(engine) if item["name"] == name]
    return found


def test_the_arguments_begin_with_the_model_because_the_entry_point_is_vllm_serve():
    assert arguments(an_engine())[0] == "/models/qwen3-14b-fp8"
    assert "serve" not in arguments(an_engine())


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"served_model_name": "chat"}, "--served-model-name=chat"),
        ({"port": 9000}, "--port=9000"),
        ({"parallelism": Parallelism(tensor=4)}, "--tensor-parallel-size=4"),
        ({"parallelism": Parallelism(pipeline=2)}, "--pipeline-parallel-size=2"),
        ({"parallelism": Parallelism(data=8)}, "--data-parallel-size=8"),
        ({"parallelism": Parallelism(expert=True)}, "--enable-expert-parallel"),
        ({"gpu_memory_utilization": Decimal("0.920")}, "--gpu-memory-utilization=0.92"),
        ({"gpu_memory_utilization": Decimal("1E+0")}, "--gpu-memory-utilization=1"),
        ({"max_model_len": 16384}, "--max-model-len=16384"),
        ({"max_num_seqs": 128}, "--max-num-seqs=128"),
        ({"max_num_batched_tokens": 8192}, "--max-num-batched-tokens=8192"),
        ({"quantization": "fp8"}, "--quantization=fp8"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "--kv-cache-dtype=fp8_e4m3"),
        ({"dtype": "bfloat16"}, "--dtype=bfloat16"),
        ({"prefix_caching": True}, "--enable-prefix-caching"),
        ({"prefix_caching": False}, "--no-enable-prefix-caching"),
        ({"drain_timeout": timedelta(minutes=5)}, "--shutdown-timeout=300"),
        ({"drain_timeout": timedelta(milliseconds=1500)}, "--shutdown-timeout=2"),
        ({"drain_timeout": timedelta(0)}, "--shutdown-timeout=1"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_field_becomes_its_argument(change, argument):
    assert arguments(an_engine(**change)).count(argument) == 1


def test_what_is_not_stated_is_left_to_vllm():
    assert flag_names(an_engine()) == [
        "--served-model-name",
        "--port",
        "--shutdown-timeout",
        "--custom-histogram-buckets",
    ]


def test_the_users_own_arguments_come_last_and_unchanged():
    extra = ("--tool-call-parser", "hermes", "--chat-template=/models/t.jinja")
    assert tuple(arguments(an_engine(extra_args=extra))[-3:]) == extra


def test_every_flag_is_one_that_vllm_has():
    rendered = set(flag_names(a_full_engine(extra_args=()))) | set(flag_names(an_engine(prefix_caching=True)))
    assert len(rendered) > 15
    assert rendered <= VLLM_FLAGS


def test_no_flag_is_given_twice():
    names = flag_names(a_full_engine())
    assert len(names) == len(set(names))


@pytest.mark.parametrize("family", sorted(HISTOGRAM_BUCKETS))
def test_edges_are_what_vllm_accepts_strictly_increasing_and_positive(family):
    edges = HISTOGRAM_BUCKETS[family]
    assert edges[0] > 0
    assert list(edges) == sorted(set(edges))


@pytest.mark.parametrize(
    ("family", "low", "high"),
    [
        ("inter_token_latency", 0.01, 0.5),
        ("request_latency", 0.05, 60),
        ("time_to_first_token", 0.05, 10),
        ("request_tokens", 64, 131072),
    ],
)
def test_no_step_is_wide_where_objectives_lie(family, low, high):
    edges = [edge for edge in HISTOGRAM_BUCKETS[family] if low <= edge <= high]
    assert max(later / earlier for earlier, later in pairwise(edges)) <= 2
    assert edges[0] == low
    assert edges[-1] == high


@pytest.mark.parametrize(
    ("family", "limits_ms"),
    [
        ("time_to_first_token", (100, 200, 250, 300, 500, 750, 800, 1000, 1500, 2000, 2500, 3000, 5000, 10000)),
        ("inter_token_latency", (10, 20, 25, 30, 40, 50, 60, 75, 80, 100, 125, 150, 200, 250, 500)),
        ("request_latency", (500, 1000, 2000, 5000, 10000, 15000, 20000, 30000, 45000, 60000, 120000, 300000)),
    ],
)
def test_the_limits_that_people_state_are_edges(family, limits_ms):
    assert {limit / 1000 for limit in limits_ms} <= set(HISTOGRAM_BUCKETS[family])


def test_the_worked_examples_objectives_are_edges():
    objectives = a_workload().objectives
    assert objectives.ttft.limit.total_seconds() in HISTOGRAM_BUCKETS["time_to_first_token"]
    assert objectives.tpot.limit.total_seconds() in HISTOGRAM_BUCKETS["inter_token_latency"]
    assert objectives.e2el.limit.total_seconds() in HISTOGRAM_BUCKETS["request_latency"]


def test_the_edges_are_rendered_as_json():
    (text,) = [a for a in arguments(an_engine()) if a.startswith("--custom-histogram-buckets=")]
    rendered = json.loads(text.partition("=")[2])
    assert {family: tuple(edges) for family, edges in rendered.items()} == HISTOGRAM_BUCKETS


def test_the_key_is_taken_from_the_secret_and_only_where_there_is_one():
    engine = an_engine(api_key=SecretKey(name="vllm-key", key="token"))
    assert variable(engine, "VLLM_API_KEY")["valueFrom"] == {"secretKeyRef": {"name": "vllm-key", "key": "token"}}
    assert "VLLM_API_KEY" not in [item["name"] for item in environment(an_engine())]


def test_vllm_itself_waits_as_long_for_its_engine_as_the_plan_allows():
    engine = an_engine(start_timeout=timedelta(minutes=45))
    assert variable(engine, "VLLM_ENGINE_READY_TIMEOUT_S")["value"] == "2700"


@pytest.mark.parametrize(
    "name",
    [
        "DG_JIT_CACHE_DIR",
        "FLASHINFER_WORKSPACE_BASE",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "VLLM_CACHE_ROOT",
    ],
)
def test_every_compile_cache_lies_in_the_engines_own_directory(name):
    assert variable(an_engine(), name)["value"].startswith(cache_directory(an_engine()) + "/")


def test_no_two_caches_share_a_directory():
    directories = [item["value"] for item in environment(an_engine()) if item["value"].startswith("/cache/")]
    assert len(directories) == len(set(directories)) == 5


def test_variables_are_in_order_and_none_differs_between_pods():
    names = [item["name"] for item in environment(a_full_engine())]
    assert names == sorted(names)
    assert not [item for item in environment(a_full_engine()) if "fieldRef" in item.get("valueFrom", {})]


@pytest.mark.parametrize(
    ("image", "directory"),
    [
        pytest.param("registry.local:5000/vllm@sha256:" + "ab" * 32, "sha256-abababababababab", id="by its digest"),
        pytest.param(
            "registry.local:5000/vllm:v1@sha256:" + "ab" * 32, "sha256-abababababababab", id="digest beside a tag"
        ),
    ],
)
def test_the_cache_directory_names_the_image(image, directory):
    assert cache_directory(an_engine(image=image)).split("/")[2] == directory


def test_images_without_a_digest_are_told_apart_by_their_reference():
    one, two = (cache_directory(an_engine(image=image)).split("/")[2] for image in ("r:5000/a:v1", "r:5000/a:v2"))
    assert one.startswith("reference-")
    assert one != two


CHANGES_THE_PROGRAM = {
    "image": {"image": "other"},
    "model": {"model": "/models/other"},
    "tensor": {"parallelism": Parallelism(tensor=2)},
    "expert": {"parallelism": Parallelism(expert=True)},
    "memory": {"gpu_memory_utilization": Decimal("0.5")},
    "length": {"max_model_len": 1},
    "sequences": {"max_num_seqs": 1},
    "batched tokens": {"max_num_batched_tokens": 1},
    "quantization": {"quantization": "awq"},
    "kv cache": {"kv_cache_dtype": "fp8"},
    "dtype": {"dtype": "half"},
    "prefix caching": {"prefix_caching": False},
    "arguments": {"extra_args": ("--enforce-eager",)},
    "accelerator": {"accelerator_resource": "amd.com/gpu"},
    "node": {"pod_template": {"spec": {"nodeSelector": {"gpu": "h100"}}}},
}
CHANGES_SOMETHING_ELSE = {
    "served name": {"served_model_name": "other"},
    "port": {"port": 1},
    "key": {"api_key": SecretKey(name="a", key="b")},
    "model volume": {"model_volume": Volume(claim_name="a", read_only=True)},
    "cache volume": {"cache_volume": Volume(claim_name="a", read_only=False)},
    "start timeout": {"start_timeout": timedelta(1)},
    "startup check": {"startup_check": StartupCheck.HEALTH},
    "drain timeout": {"drain_timeout": timedelta(1)},
    "resources": {"resources": {"requests": {"cpu": "8"}}},
    "pod labels": {"pod_template": {"metadata": {"labels": {"a": "b"}}}},
}


@pytest.mark.parametrize("change", CHANGES_THE_PROGRAM.values(), ids=CHANGES_THE_PROGRAM)
def test_the_fingerprint_follows_what_changes_the_program(change):
    assert fingerprint(an_engine(**change)) != fingerprint(an_engine())


@pytest.mark.parametrize("change", CHANGES_SOMETHING_ELSE.values(), ids=CHANGES_SOMETHING_ELSE)
def test_the_fingerprint_follows_nothing_else(change):
    assert fingerprint(an_engine(**change)) == fingerprint(an_engine())


@pytest.mark.parametrize(
    "change",
    [*CHANGES_THE_PROGRAM.values(), *CHANGES_SOMETHING_ELSE.values()],
    ids=[*CHANGES_THE_PROGRAM, *CHANGES_SOMETHING_ELSE],
)
def test_the_engines_hash_follows_every_edit_that_reaches_the_pods(change):
    assert engine_hash(an_engine(**change)) != engine_hash(an_engine())


def test_the_engines_hash_does_not_follow_what_becomes_of_a_deleted_plan():
    engine = an_engine()
    assert engine_hash(replace(engine, deletion_policy=DeletionPolicy.RETAIN)) == engine_hash(engine)


def test_two_spellings_of_one_share_are_one_engine():
    one, two = (an_engine(gpu_memory_utilization=Decimal(text)) for text in ("0.9", "0.90"))
    assert fingerprint(one) == fingerprint(two)
    assert engine_hash(one) == engine_hash(two)
    assert arguments(one) == arguments(two)
