"""A file that says what one engine does in a step: its limits, its cache, and what steps cost.

In: YAML. Out: a `TokenEngine` for the token-level model, or an InputError with all that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from servingplan.api.yaml_reader import Unreadable, read_yaml
from servingplan.errors import InputError, Problem
from servingplan.inventory.files import read_bytes, refuse
from servingplan.simulation.tokens import EngineLimits, StepCost
from servingplan.simulation.tokens_played import TokenEngine

MAX_BYTES = 64 * 1024

Whole = Annotated[int, Field(ge=1, le=10**9)]
Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]


class _StepSeconds(BaseModel):
    """As in `StepCost`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
    prefillToken: Seconds  # noqa: N815  the file's spelling
    sequence: Seconds
    contextToken: Seconds  # noqa: N815  the file's spelling


class _Engine(BaseModel):
    """Names are vLLM's arguments. What has a default here has the same one in vLLM, whatever the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    maxModelLen: Whole  # noqa: N815  the file's spelling
    maxNumSeqs: Whole  # noqa: N815  the file's spelling
    maxNumBatchedTokens: Whole  # noqa: N815  the file's spelling
    kvCacheTokens: Whole  # noqa: N815  the file's spelling
    blockSize: Annotated[int, Field(ge=1, le=65536)]  # noqa: N815  the file's spelling
    prefixCaching: bool  # noqa: N815  the file's spelling
    asyncScheduling: bool  # noqa: N815  the file's spelling
    watermark: Annotated[float, Field(ge=0, lt=1)] = 0.0
    longPrefillTokenThreshold: Annotated[int, Field(ge=0, le=10**9)] = 0  # noqa: N815  the file's spelling
    stepSeconds: _StepSeconds  # noqa: N815  the file's spelling


def read_engine_profile(path: Path) -> TokenEngine:
    """The file's engine. Raises InputError."""
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")
        documents = [value for _, value in read_yaml(text)]
    except UnicodeDecodeError:
        refuse(path, "NotText", "it is not UTF-8 text: name a YAML file")
    except Unreadable as error:
        refuse(f"{path}:{error.line}" if error.line else path, "InvalidYAML", f"{error}: correct the file")
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        refuse(path, "NoEngineProfile", "it is no engine profile: write its fields, as maxNumSeqs: 256")
    try:
        found = _Engine.model_validate(documents[0])
    except ValidationError as error:
        raise InputError(*(_problem(path, each["loc"], each["msg"]) for each in error.errors())) from None
    return _checked(path, found)


def _checked(path: Path, found: _Engine) -> TokenEngine:
    if found.maxNumBatchedTokens < found.maxNumSeqs:
        refuse(path, "InvalidField", "maxNumBatchedTokens is less than maxNumSeqs: vLLM does not start so")
    limits = EngineLimits(
        max_num_seqs=found.maxNumSeqs,
        max_num_batched_tokens=found.maxNumBatchedTokens,
        blocks=found.kvCacheTokens // found.blockSize,
        block_size=found.blockSize,
        watermark=found.watermark,
        long_prefill_token_threshold=found.longPrefillTokenThreshold,
        prefix_caching=found.prefixCaching,
        async_scheduling=found.asyncScheduling,
    )
    if limits.usable_blocks * found.blockSize < found.maxModelLen:
        refuse(path, "InvalidField", "kvCacheTokens hold no request of maxModelLen: vLLM does not start so")
    steps = found.stepSeconds
    cost = StepCost(
        base_s=steps.base,
        prefill_token_s=steps.prefillToken,
        sequence_s=steps.sequence,
        context_token_s=steps.contextToken,
    )
    return TokenEngine(limits=limits, cost=cost, longest=found.maxModelLen)


def _problem(path: Path, location: tuple[int | str, ...], message: str) -> Problem:
    where = ".".join(map(str, location))
    return Problem(
        path=f"{path}: {where}",
        reason="InvalidField",
        message=f"{message.lower()}: docs/how-to/simulate-a-plan.md, Token by token, lists the fields",
    )
