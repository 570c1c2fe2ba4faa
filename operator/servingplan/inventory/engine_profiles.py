"""A file that says what one engine does in a step: its limits, its cache, and what steps cost.

In: YAML. Out: a `TokenEngine` for the token-level model, or an InputError with all that is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from servingplan.inventory.files import refuse
from servingplan.inventory.yaml_files import parsed, read_text
from servingplan.simulation.tokens import EngineLimits, StepCost
from servingplan.simulation.tokens_played import TokenEngine

MAX_BYTES = 64 * 1024

_NO_PROFILE = "NoEngineProfile", "it is no engine profile: write its fields, as maxNumSeqs: 256"
_SEE = "docs/how-to/simulate-a-plan.md, Token by token, lists the fields"

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
    return _checked(path, parsed(path, read_text(path, MAX_BYTES), _Engine, otherwise=_NO_PROFILE, see=_SEE))


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
