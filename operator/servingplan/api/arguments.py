"""Which vLLM arguments the API owns, however they are spelled.

Place in the flow: ``target`` asks it about ``engine.extraArgs``. In: a list of arguments. Out: problems. vLLM's parser
also takes underscores, ``--flag=value``, dotted JSON keys, single-dash short forms with the value attached, and any
unambiguous beginning of a flag; a spelling that could mean an owned flag is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from servingplan.errors import Problem

_PLACEMENT = "it changes how many GPUs or pods a replica has; state engine.parallelism"
_PROBES = "probes, Service and metrics rely on it; it cannot be changed"

OWNED: Mapping[str, str] = {
    "--model": "state engine.model",
    "--served-model-name": "state engine.servedModelName",
    "--tensor-parallel-size": "state engine.parallelism.tensor",
    "--pipeline-parallel-size": "state engine.parallelism.pipeline",
    "--data-parallel-size": "state engine.parallelism.data",
    "--data-parallel-size-local": _PLACEMENT,
    "--data-parallel-rank": _PLACEMENT,
    "--data-parallel-start-rank": _PLACEMENT,
    "--data-parallel-external-lb": _PLACEMENT,
    "--no-data-parallel-external-lb": _PLACEMENT,
    "--data-parallel-hybrid-lb": _PLACEMENT,
    "--no-data-parallel-hybrid-lb": _PLACEMENT,
    "--data-parallel-multi-port-external-lb": _PLACEMENT,
    "--prefill-context-parallel-size": _PLACEMENT,
    "--nnodes": _PLACEMENT,
    "--node-rank": _PLACEMENT,
    "--headless": _PLACEMENT,
    "--enable-expert-parallel": "state engine.parallelism.expert",
    "--no-enable-expert-parallel": "state engine.parallelism.expert",
    "--gpu-memory-utilization": "state engine.gpuMemoryUtilization",
    "--device-memory-utilization": "state engine.gpuMemoryUtilization",
    "--max-model-len": "state engine.maxModelLen",
    "--max-num-seqs": "state engine.maxNumSeqs",
    "--max-num-batched-tokens": "state engine.maxNumBatchedTokens",
    "--quantization": "state engine.quantization",
    "--kv-cache-dtype": "state engine.kvCacheDtype",
    "--dtype": "state engine.dtype",
    "--enable-prefix-caching": "state engine.prefixCaching: true",
    "--no-enable-prefix-caching": "state engine.prefixCaching: false",
    "--port": "state engine.port",
    "--api-key": "state engine.apiKeySecretRef: an argument would show the key",
    "--shutdown-timeout": "state engine.drainTimeout",
    "--custom-histogram-buckets": _PROBES,
    "--disable-log-stats": _PROBES,
    "--host": _PROBES,
    "--uds": _PROBES,
    "--root-path": _PROBES,
    "--grpc": _PROBES,
    "--ssl-keyfile": _PROBES,
    "--ssl-certfile": _PROBES,
    "--config": "a file could set any argument; list them here or in the fields of engine",
}
"""Long flags that a field of the API stands for or that the operator needs as it renders them; why, and what to do."""

OWNED_SHORT: Mapping[str, str] = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-dpl": "--data-parallel-size-local",
    "-dpn": "--data-parallel-rank",
    "-dpr": "--data-parallel-start-rank",
    "-dpe": "--data-parallel-external-lb",
    "-dph": "--data-parallel-hybrid-lb",
    "-pcp": "--prefill-context-parallel-size",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-ep": "--enable-expert-parallel",
    "-q": "--quantization",
}

_NUMBER = re.compile(r"-[0-9.]")


def argument_problems(arguments: Sequence[str], path: str) -> Iterator[Problem]:
    """A problem for each argument that could set what the API owns, and for values without a flag."""
    if arguments and not arguments[0].startswith("-"):
        yield Problem(
            path=f"{path}[0]",
            reason="ValueWithoutFlag",
            message=f"{arguments[0]!r} follows no flag: start with the flag that it is the value of",
        )
    for index, argument in enumerate(arguments):
        if argument == "--":
            message = "'--' ends the flags, and the operator's own would become values: remove it"
            yield Problem(path=f"{path}[{index}]", reason="ReservedArgument", message=message)
        elif (owned := owned_flag(argument)) is not None:
            message = f"{argument!r} sets {owned}, which the API owns: {OWNED[owned]}"
            yield Problem(path=f"{path}[{index}]", reason="OwnedArgument", message=message)


def owned_flag(argument: str) -> str | None:
    """The owned long flag that an argument sets or may be taken for; None where it is none."""
    if argument.startswith("--"):
        return _owned_long(argument)
    if argument.startswith("-") and not _NUMBER.match(argument):
        return _owned_short(argument)
    return None


def _owned_long(argument: str) -> str | None:
    # --max_model_len=1, --max-model-len.x, --max-model-len+ and --max-mod are all --max-model-len to the parser.
    flag = re.split(r"[=.+]", argument, maxsplit=1)[0].replace("_", "-")
    if len(flag) == 2:
        return None
    return flag if flag in OWNED else next((owned for owned in OWNED if owned.startswith(flag)), None)


def _owned_short(argument: str) -> str | None:
    flag = re.split(r"[=.+]", argument, maxsplit=1)[0]
    if flag in OWNED_SHORT:
        return OWNED_SHORT[flag]
    abbreviates = (long for short, long in OWNED_SHORT.items() if len(flag) > 1 and short.startswith(flag))
    attached = (long for short, long in OWNED_SHORT.items() if len(short) == 2 and flag.startswith(short))
    return next(abbreviates, None) or next(attached, None)
