"""Results of ``vllm bench serve --save-result --save-detailed``, of whatever version.

In: the JSON text. Out: `Requests`. Keys that are not needed are passed over, those that older versions lack are worked
out where that is possible; anything else is one error that names the key and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from servingplan.benchmarking.requests import Floats, Requests, Silence
from servingplan.benchmarking.results import invalid, parsed

_FITS_S = 0.020
"""Half of the requests lie so close to the recomputed schedule where it is the one that vLLM drew."""

SHORTEST_SILENCE_S = 0.5
"""Shorter ones are scheduling."""


def read_result(text: str, *, name: str, seed: int) -> Requests:
    """The requests of a result. name: the file, for messages. seed: what the run was started with, for its schedule.

    Raises `InvalidResult`.
    """
    result = parsed(text, name, program="vllm bench serve")
    started = _numbers(result, "start_times", name)
    if not len(started):
        raise invalid(name, "start_times", "the result holds no request: the run sent none")
    count = len(started)
    ttft = _numbers(result, "ttfts", name, count=count)
    gaps = _gaps(result, name, count) if "itls" in result or "latencies" not in result else None
    if "latencies" in result or gaps is None:
        latency = _numbers(result, "latencies", name, count=count)
    else:
        # Before there were latencies: the first token, and the gaps between the others.
        latency = ttft + np.array([between.sum() for between in gaps])
    output_tokens = _numbers(result, "output_lens", name, count=count)
    failed = _failed(result, name, count) | (output_tokens <= 0) | (ttft <= 0)
    order = np.argsort(started, kind="stable")
    waited = _numbers(result, "queue_times", name, count=count) if "queue_times" in result else np.zeros(count)
    lag = _lag((started - waited)[order], waited[order], result, seed)
    return Requests(
        clock=float(started.min()),
        started=started[order] - started.min(),
        lag=lag,
        ttft=ttft[order],
        latency=latency[order],
        input_tokens=_numbers(result, "input_lens", name, count=count)[order],
        output_tokens=np.where(failed, 0.0, output_tokens)[order],
        failed=failed[order],
        silences=None if gaps is None else _silences(started - started.min(), ttft, gaps, latency, failed),
        itl_median=_itl_median(result, gaps),
    )


def _listed(result: Mapping[str, Any], key: str, name: str, count: int | None) -> Sequence[Any]:
    found = result.get(key)
    if found is None:
        message = "it is missing: run `vllm bench serve` with --save-detailed, in a version that writes it"
        raise invalid(name, key, message)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise invalid(name, key, f"expected a list, found {type(found).__name__}")
    if count is not None and len(found) != count:
        raise invalid(name, key, f"it has {len(found)} entries, start_times has {count}: the file is damaged")
    return found


def _numbers(result: Mapping[str, Any], key: str, name: str, *, count: int | None = None) -> Floats:
    found = _listed(result, key, name, count)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in found):
        raise invalid(name, key, "an entry is no finite number: the file is damaged")
    return np.array(found, dtype=np.float64)


def _gaps(result: Mapping[str, Any], name: str, count: int) -> list[Floats]:
    """Times between tokens, by request."""
    found = _listed(result, "itls", name, count)
    try:
        return [np.array(between, dtype=np.float64).reshape(-1) for between in found]
    except (TypeError, ValueError):
        raise invalid(name, "itls", "expected a list of numbers for each request") from None


def _itl_median(result: Mapping[str, Any], gaps: list[Floats] | None) -> float | None:
    """From the gaps, else as the result states it, in milliseconds."""
    if gaps is not None:
        return float(np.median(np.concatenate(gaps))) if any(len(between) for between in gaps) else None
    stated = result.get("median_itl_ms")
    return stated / 1000 if isinstance(stated, int | float) and math.isfinite(stated) else None


def _failed(result: Mapping[str, Any], name: str, count: int) -> Any:
    errors = _listed(result, "errors", name, count) if "errors" in result else [""] * count
    return np.array([bool(error) for error in errors], dtype=bool)


def _lag(arrived: Floats, waited: Floats, result: Mapping[str, Any], seed: int) -> Floats:
    """By how much each request was sent too late: behind its schedule, and in the client's own queue.

    vLLM draws the gaps between requests from NumPy's generator, gamma with the shape `burstiness`, and scales them to
    the asked rate. Where these instants do not follow that schedule, only the queue is known.
    """
    rate, burstiness = result.get("request_rate"), result.get("burstiness", 1.0)
    if not isinstance(rate, int | float) or not isinstance(burstiness, int | float) or not (rate > 0 < burstiness):
        return waited
    draws = np.random.RandomState(seed).gamma(burstiness, 1 / (rate * burstiness), size=len(arrived))
    schedule = np.cumsum(draws)
    schedule *= len(arrived) / rate / schedule[-1]
    behind: Floats = arrived - schedule
    behind -= behind.min()
    return behind + waited if float(np.median(behind)) <= _FITS_S else waited


def _silences(started: Floats, ttft: Floats, gaps: list[Floats], latency: Floats, failed: Any) -> tuple[Silence, ...]:
    """Times without any token while some request was in flight, the longest first."""
    answered = np.flatnonzero(~failed)
    if not len(answered):
        return ()
    tokens = np.sort(
        np.concatenate(
            [started[index] + ttft[index] + np.concatenate([[0.0], np.cumsum(gaps[index])]) for index in answered]
        )
    )
    lengths = np.diff(tokens)
    found = []
    for place in np.flatnonzero(lengths >= SHORTEST_SILENCE_S):
        begin, end = tokens[place], tokens[place + 1]
        # Whoever was sent before and had its last token after it was waiting all the time; else from its start on.
        open_then = answered[(started[answered] < end) & (started[answered] + latency[answered] >= end)]
        if len(open_then):
            since = max(begin, float(started[open_then].min()))
            if end - since >= SHORTEST_SILENCE_S:
                found.append(Silence(start=since, length=float(end - since)))
    return tuple(sorted(found, key=lambda silence: -silence.length))
