"""Models, accelerators and settings for tests of sizing: published configs, and what a test wants changed."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from servingplan.hardware.accelerator import GIB, Accelerator
from servingplan.hardware.engine import Engine, Version
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.memory import memory
from servingplan.hardware.model import Model
from servingplan.hardware.parallelism import Layout
from servingplan.hardware.roofline import Replica
from servingplan.hardware.traffic import Workload
from servingplan.inventory.accelerators import shipped
from servingplan.inventory.models import read_model
from servingplan.planning.plan import Objective, Objectives

DATA = Path(__file__).parents[1] / "data"
MODELS = DATA / "models"
OLD = Version(major=0, minor=19)
"""The release of the public logs."""

CHAT_INPUT = Lengths.from_quantiles({"p50": 600, "p95": 2400})
CHAT_OUTPUT = Lengths.from_quantiles({"p50": 180, "p95": 600})


@cache
def model(name: str) -> Model:
    """A published model by the name of its file."""
    return read_model(str(MODELS / f"{name}.json"))


@cache
def accelerator(name: str) -> Accelerator:
    """One of the table that ships with the package."""
    return next(found for found in shipped() if found.name == name)


def engine(**changes: Any) -> Engine:
    """vLLM 0.32 on an H100, 8,192 tokens of context."""
    usual = Engine(max_model_len=8192, max_num_seqs=1024, max_num_batched_tokens=8192, utilization=0.92)
    return dataclasses.replace(usual, **changes)


def old_engine(**changes: Any) -> Engine:
    """vLLM 0.19 as in the public logs."""
    return engine(**{"version": OLD, "utilization": 0.95, "prefix_caching": False, **changes})


def gib(size: float) -> int:
    """GiB as bytes."""
    return round(size * GIB)


def start_logs() -> list[Mapping[str, str]]:
    """What vLLM 0.19 logged, of models whose config is here."""
    with (DATA / "start-logs-0.19.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["model"]]


def objectives(ttft_ms: int | None = 1500, tpot_ms: int | None = 60) -> Objectives:
    """Limits at p95."""

    def limit(value: int | None) -> Objective | None:
        return None if value is None else Objective(percentile="p95", limit=timedelta(milliseconds=value))

    return Objectives(ttft=limit(ttft_ms), tpot=limit(tpot_ms))


def workload(**changes: Any) -> Workload:
    """Chat: 18 requests/s, twice that for ten minutes."""
    usual = Workload(
        rate=18,
        input=CHAT_INPUT,
        output=CHAT_OUTPUT,
        objectives=objectives(),
        burst=2,
        burst_duration=timedelta(minutes=10),
    )
    return dataclasses.replace(usual, **changes)


def replica(name: str = "llama-3.1-8b", gpu: str = "H100-SXM", layout: Layout | None = None, **changes: Any) -> Replica:
    """A model on its GPUs; `changes` of the engine."""
    settings, place = engine(**changes), layout or Layout()
    found = memory(model(name), place, settings, accelerator(gpu))
    return Replica(model=model(name), layout=place, engine=settings, accelerator=accelerator(gpu), memory=found)
