"""Builders of plans: the worked example, so that a test shows only what it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from servingplan.planning.plan import (
    Bounds,
    Capacity,
    Lead,
    Objective,
    Objectives,
    Plan,
    PoolCapacity,
    Rate,
    Reserve,
    ScaleDown,
    TokenLengths,
    Window,
    Workload,
)
from servingplan.planning.target import DeletionPolicy, Engine, Parallelism, SecretKey, StartupCheck, Volume

WORKING_DAYS = frozenset(range(5))
"""Monday to Friday, as `Window.days` counts."""


def an_engine(**changes: Any) -> Engine:
    """The smallest owned engine: one GPU, no volumes, vLLM's own defaults."""
    engine = Engine(
        image="registry.local/vllm/vllm-openai:v0.32.0",
        model="/models/qwen3-14b-fp8",
        served_model_name="qwen3-14b",
        parallelism=Parallelism(),
        gpu_memory_utilization=None,
        max_model_len=None,
        max_num_seqs=None,
        max_num_batched_tokens=None,
        quantization=None,
        kv_cache_dtype=None,
        dtype=None,
        prefix_caching=None,
        extra_args=(),
        accelerator_resource="nvidia.com/gpu",
        resources={},
        port=8000,
        api_key=None,
        model_volume=None,
        cache_volume=None,
        start_timeout=timedelta(minutes=30),
        startup_check=StartupCheck.COMPLETION,
        drain_timeout=timedelta(minutes=5),
        deletion_policy=DeletionPolicy.DELETE,
        pod_template={},
        stated='{"image": "registry.local/vllm/vllm-openai:v0.32.0", "model": "/models/qwen3-14b-fp8"}',
    )
    return replace(engine, **changes)


def a_full_engine(**changes: Any) -> Engine:
    """An engine that states everything that an engine can state."""
    engine = an_engine(
        image="registry.local/vllm/vllm-openai@sha256:" + "0123456789abcdef" * 4,
        parallelism=Parallelism(tensor=2, pipeline=2, data=2, expert=True),
        gpu_memory_utilization=Decimal("0.90"),
        max_model_len=16384,
        max_num_seqs=128,
        max_num_batched_tokens=8192,
        quantization="fp8",
        kv_cache_dtype="fp8_e4m3",
        dtype="bfloat16",
        prefix_caching=False,
        extra_args=("--enable-auto-tool-choice", "--tool-call-parser=hermes"),
        resources={"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "48Gi"}},
        port=8080,
        api_key=SecretKey(name="vllm-key", key="token"),
        model_volume=Volume(claim_name="models", read_only=True),
        cache_volume=Volume(claim_name="vllm-cache", read_only=False),
        start_timeout=timedelta(minutes=20),
        drain_timeout=timedelta(minutes=10),
        deletion_policy=DeletionPolicy.RETAIN,
        pod_template={
            "metadata": {"annotations": {"example.org/team": "support"}, "labels": {"team": "support"}},
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        "env": [{"name": "HF_HUB_OFFLINE", "value": "1"}],
                        "securityContext": {"runAsUser": 1000},
                        "volumeMounts": [{"name": "adapters", "mountPath": "/adapters"}],
                    },
                    {"name": "log-shipper", "image": "registry.local/shipper:1", "args": ["--quiet"]},
                ],
                "nodeSelector": {"example.org/gpu": "l40s"},
                "tolerations": [{"key": "example.org/gpu", "operator": "Equal", "value": "reserved"}],
                "volumes": [
                    {"name": "adapters", "persistentVolumeClaim": {"claimName": "adapters"}},
                    {"name": "shared-memory", "emptyDir": {"sizeLimit": "64Gi"}},
                ],
            },
        },
    )
    return replace(engine, **changes)


def a_workload(**changes: Any) -> Workload:
    """The worked example's requests and objectives."""
    workload = Workload(
        tokens=TokenLengths(input=(("p50", 600), ("p95", 2400)), output=(("p50", 180), ("p95", 600), ("p99", 900))),
        objectives=Objectives(
            ttft=Objective(percentile="p95", limit=timedelta(milliseconds=1500)),
            tpot=Objective(percentile="p95", limit=timedelta(milliseconds=60)),
            e2el=Objective(percentile="p95", limit=timedelta(seconds=30)),
            goodput_share=Decimal("0.99"),
        ),
    )
    return replace(workload, **changes)


def a_capacity(requests_per_second: float | str = "5") -> Capacity:
    """One replica's goodput, the same in a pool of any size."""
    return Capacity(points=(PoolCapacity(replicas=1, requests_per_second=Decimal(str(requests_per_second))),))


def a_window(**changes: Any) -> Window:
    """The working day: Monday to Friday, 08:00 to 20:00, 18 requests/s."""
    window = Window(
        name="working-day",
        days=WORKING_DAYS,
        start=time(8),
        end=time(20),
        level=Rate(requests_per_second=Decimal(18)),
    )
    return replace(window, **changes)


def a_plan(**changes: Any) -> Plan:
    """The worked example: 18 requests/s on working days, 2 otherwise; 5 replicas and 2."""
    plan = Plan(
        namespace="llm",
        name="support-chat",
        suspend=False,
        target=an_engine(),
        gpus_per_replica=1,
        workload=a_workload(),
        capacity=a_capacity(),
        reserve=Reserve(replicas=1, quiet=1),
        zone=ZoneInfo("Europe/Berlin"),
        base=Rate(requests_per_second=Decimal(2)),
        windows=(a_window(),),
        cron_windows=(),
        profile=None,
        calendars=(),
        overrides=(),
        lead=Lead(declared=timedelta(minutes=10), margin=Fraction(20, 100), maximum=timedelta(minutes=30)),
        scale_down=ScaleDown(step=1, every=timedelta(minutes=2)),
        bounds=Bounds(minimum=1, maximum=8),
    )
    return replace(plan, **changes)
