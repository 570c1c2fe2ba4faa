"""Which engine evidence is about."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from servingplan.planning.target import DeletionPolicy, Parallelism, SecretKey, StartupCheck, Volume
from servingplan.rendering.engine import arguments
from servingplan.rendering.identity import WITHOUT_EFFECT, differences, identity
from support.plans import a_full_engine, an_engine

SHA = "sha256:" + "0123456789abcdef" * 4
OTHER_SHA = "sha256:" + "fedcba9876543210" * 4


def env(**variables):
    listed = [{"name": name, "value": value} for name, value in variables.items()]
    return {"spec": {"containers": [{"name": "engine", "env": listed}]}}


def told(now, then):
    return [difference.told("measured") for difference in differences(identity(now), identity(then))]


def test_an_identity_holds_what_vllm_is_started_with_by_name():
    found = identity(a_full_engine())
    assert found.image == f"registry.local/vllm/vllm-openai@{SHA}"
    assert found.model == "/models/qwen3-14b-fp8"
    assert found.accelerator == "nvidia.com/gpu x 8"
    assert found.arguments == (
        "--data-parallel-size=2",
        "--dtype=bfloat16",
        "--enable-auto-tool-choice",
        "--enable-expert-parallel",
        "--gpu-memory-utilization=0.9",
        "--kv-cache-dtype=fp8_e4m3",
        "--max-model-len=16384",
        "--max-num-batched-tokens=8192",
        "--max-num-seqs=128",
        "--no-enable-prefix-caching",
        "--pipeline-parallel-size=2",
        "--quantization=fp8",
        "--tensor-parallel-size=2",
        "--tool-call-parser=hermes",
        "HF_HUB_OFFLINE=1",
        "modelVolume=models",
    )


def test_a_digest_is_the_same_in_every_version_of_the_operator():
    assert identity(an_engine()).digest == "sha256:e5ddd21e4fc51819fa1701addc274d55b52a575fadbf40edfc2ccc3e683aeee9"


@pytest.mark.parametrize(
    "change",
    [
        {"port": 9000},
        {"served_model_name": "chat"},
        {"drain_timeout": timedelta(minutes=9)},
        {"start_timeout": timedelta(hours=2)},
        {"startup_check": StartupCheck.HEALTH},
        {"deletion_policy": DeletionPolicy.RETAIN},
        {"api_key": SecretKey(name="vllm-key", key="token")},
        {"cache_volume": Volume(claim_name="cache", read_only=False)},
        {"resources": {"requests": {"cpu": "8"}}},
        {"pod_template": {"metadata": {"labels": {"team": "support"}}}},
        {"pod_template": {"spec": {"nodeSelector": {"zone": "b"}}}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_neither_answers_nor_speed_is_not_in_it(change):
    assert identity(an_engine(**change)) == identity(an_engine())
    assert identity(an_engine(**change)).digest == identity(an_engine()).digest


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image": "a/b:2"}, "image a/b:2, measured with registry.local/vllm/vllm-openai:v0.32.0"),
        ({"model": "/models/other"}, "model /models/other, measured with /models/qwen3-14b-fp8"),
        ({"max_num_seqs": 128}, "--max-num-seqs 128, measured without"),
        ({"gpu_memory_utilization": Decimal("0.9")}, "--gpu-memory-utilization 0.9, measured without"),
        ({"prefix_caching": True}, "--enable-prefix-caching on, measured without"),
        ({"extra_args": ("--seed", "7")}, "--seed 7, measured without"),
        ({"model_volume": Volume(claim_name="models", read_only=True)}, "modelVolume models, measured without"),
        ({"pod_template": env(VLLM_USE_TRTLLM="1")}, "VLLM_USE_TRTLLM 1, measured without"),
        ({"accelerator_resource": "amd.com/gpu"}, "accelerator amd.com/gpu x 1, measured with nvidia.com/gpu x 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_every_difference_is_named_by_its_field(change, sentence):
    assert told(an_engine(**change), an_engine()) == [sentence]
    assert identity(an_engine(**change)).digest != identity(an_engine()).digest


def test_a_changed_and_a_removed_argument_are_both_named():
    before = an_engine(max_num_seqs=64, dtype="bfloat16")
    assert told(an_engine(max_num_seqs=128), before) == [
        "no --dtype, measured with bfloat16",
        "--max-num-seqs 128, measured with 64",
    ]


def test_more_gpus_differ_in_the_accelerator_and_in_the_argument():
    now = an_engine(parallelism=Parallelism(tensor=2))
    assert told(now, an_engine()) == [
        "accelerator nvidia.com/gpu x 2, measured with nvidia.com/gpu x 1",
        "--tensor-parallel-size 2, measured without",
    ]


def test_two_names_of_one_image_digest_are_the_same_image():
    here, there = an_engine(image=f"registry.local/vllm@{SHA}"), an_engine(image=f"mirror.local/v/vllm:v1@{SHA}")
    assert told(here, there) == []
    assert identity(here).digest == identity(there).digest


def test_one_name_with_two_image_digests_is_two_images():
    here, there = an_engine(image=f"registry.local/vllm@{SHA}"), an_engine(image=f"registry.local/vllm@{OTHER_SHA}")
    assert identity(here).digest != identity(there).digest


@pytest.mark.parametrize(
    "spelled",
    [
        ("--rope-scale=-1.5", "--seed=7"),
        ("--rope-scale", "-1.5", "--seed", "7"),
        ("--seed", "7", "--rope_scale=-1.5"),
    ],
    ids=["with-equals", "as-two-words", "in-another-order-and-with-an-underscore"],
)
def test_an_argument_is_the_same_however_it_is_spelled(spelled):
    assert identity(an_engine(extra_args=spelled)) == identity(an_engine(extra_args=("--seed=7", "--rope-scale=-1.5")))


def test_a_flag_keeps_all_its_values_and_a_repeated_one_all_its_times():
    flags = ("--lora-modules", "a=/a", "b=/b", "--middleware=m1", "--middleware=m2")
    found = identity(an_engine(extra_args=flags)).arguments
    assert found == ("--lora-modules=a=/a b=/b", "--middleware=m1", "--middleware=m2")
    assert told(an_engine(extra_args=flags), an_engine(extra_args=flags[:-1])) == [
        "--middleware m1 m2, measured with m1"
    ]


def test_a_recorded_identity_compares_like_the_engine_that_it_was_recorded_of():
    recorded = identity(an_engine(max_num_seqs=64))
    shuffled = replace(recorded, arguments=tuple(reversed(recorded.arguments)))
    assert differences(recorded, shuffled) == ()


def test_what_is_left_out_is_an_argument_of_every_engine():
    rendered = {argument.partition("=")[0] for argument in arguments(an_engine())}
    assert rendered >= WITHOUT_EFFECT
