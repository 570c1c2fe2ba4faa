"""Drives vLLM's own scheduler, without a model, and says what it decides: what the token-level model has to match.

Run by the Python of vLLM's environment: ``drive_scheduler.py MODEL``. In: JSON lines on standard input, one case each:
``{"limits": {...}, "max_model_len": N, "requests": [[step, prompt, output, prefix, prefix_tokens], ...]}``, a request
arrives before that step (counted from 0) and `prefix` is a number, 0 for none. Out: a JSON line for each case:
``{"rows": [[running, waiting, preempted, blocks in use, tokens], ...], "first": [...], "last": [...], "preempted":
[...]}``: by step, after it was scheduled; and by request the step that brought its first and its last token, and how
often it was preempted. In place of a model, each computation that reaches the end of what is known brings a token.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import deque
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.usage.usage_lib import UsageContext
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

CHOSEN = ("max_num_seqs", "max_num_batched_tokens", "long_prefill_token_threshold", "watermark")


def scheduler(model: str, limits: dict[str, Any], max_model_len: int) -> Any:
    """The scheduler that vLLM would take for these settings, with a cache of so many blocks and nothing in them."""
    arguments = EngineArgs(
        model=model,
        max_model_len=max_model_len,
        hf_overrides={"max_position_embeddings": max_model_len},
        enable_prefix_caching=limits["prefix_caching"],
        async_scheduling=False,
        **{name: limits[name] for name in CHOSEN},
    )
    config = arguments.create_engine_config(UsageContext.LLM_CLASS)
    # Only GPUs have it by themselves; the scheduler is another, and asks no device.
    config.scheduler_config.async_scheduling = limits["async_scheduling"]
    config.cache_config.num_gpu_blocks = limits["blocks"]
    config.cache_config.block_size = limits["block_size"]
    spec = FullAttentionSpec(block_size=limits["block_size"], num_kv_heads=1, head_size=1, dtype=torch.float32)
    cache = KVCacheConfig(
        num_blocks=limits["blocks"], kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)]
    )
    return config.scheduler_config.get_scheduler_cls()(
        vllm_config=config,
        kv_cache_config=cache,
        structured_output_manager=StructuredOutputManager(config),
        block_size=limits["block_size"],
    )


def request(number: int, prompt: int, output: int, shared: list[int], hasher: Any) -> Request:
    """A request whose prompt begins with what is shared, and has nothing else in common with any other."""
    tokens = (shared + [number + 1_000_000] * prompt)[:prompt]
    sampling = SamplingParams(max_tokens=output, ignore_eos=True)
    return Request(
        request_id=str(number),
        prompt_token_ids=tokens,
        sampling_params=sampling,
        pooling_params=None,
        block_hasher=hasher,
    )


class Case:
    """One run."""

    def __init__(self, model: str, case: dict[str, Any]) -> None:
        limits = case["limits"]
        self._scheduler = scheduler(model, limits, case["max_model_len"])
        self._blocks = limits["blocks"] - 1
        self._depth = 2 if limits["async_scheduling"] else 1
        hasher = get_request_block_hasher(limits["block_size"], sha256) if limits["prefix_caching"] else None
        self._due = deque(
            (step, request(number, prompt, output, [prefix] * shared, hasher))
            for number, (step, prompt, output, prefix, shared) in enumerate(case["requests"])
        )
        self._requests = [each for _, each in self._due]
        self._rows: list[list[int]] = []
        self._first = [-1] * len(self._due)
        self._last = [-1] * len(self._due)

    def run(self) -> dict[str, Any]:
        """To the end."""
        under_way: deque[tuple[int, SchedulerOutput, list[list[int]]]] = deque()
        while self._due or self._scheduler.has_unfinished_requests():
            step = len(self._rows)
            while self._due and self._due[0][0] <= step:
                self._scheduler.add_request(self._due.popleft()[1])
            scheduled = self._schedule()
            under_way.append((step, scheduled, self._tokens(scheduled)))
            if len(under_way) == self._depth:
                self._end(*under_way.popleft())
        preempted = [each.num_preemptions for each in self._requests]
        return {"rows": self._rows, "first": self._first, "last": self._last, "preempted": preempted}

    def _schedule(self) -> SchedulerOutput:
        ran = list(self._scheduler.running)
        scheduled = self._scheduler.schedule()
        preempted = sum(each.status is RequestStatus.PREEMPTED for each in ran)
        running, waiting = self._scheduler.get_request_counts()
        used = self._blocks - self._scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
        self._rows.append([running, waiting, preempted, used, scheduled.total_num_scheduled_tokens])
        return scheduled

    def _tokens(self, scheduled: SchedulerOutput) -> list[list[int]]:
        """What the model would answer: nothing where a part of the prompt is still to come."""
        requests = self._scheduler.requests
        return [[] if requests[name].is_prefill_chunk else [7] for name in scheduled.num_scheduled_tokens]

    def _end(self, step: int, scheduled: SchedulerOutput, tokens: list[list[int]]) -> None:
        names = list(scheduled.num_scheduled_tokens)
        for name, brought in zip(names, tokens, strict=True):
            if brought:
                self._last[int(name)] = step
                if self._first[int(name)] < 0:
                    self._first[int(name)] = step
        self._scheduler.update_from_output(
            scheduled,
            ModelRunnerOutput(
                req_ids=names,
                req_id_to_index={name: place for place, name in enumerate(names)},
                sampled_token_ids=tokens,
            ),
        )


def main(model: str) -> None:
    """Answer one case after the other."""
    init_none_hash(sha256)
    answers = sys.stdout
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            found = Case(model, json.loads(line)).run()
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
