"""One pod's own /metrics, as vLLM writes it.

In: the text. Out: a `Sample`, made a `Reading` by `engine_series`; or `NoReading` with a reason. The counters' gauges
named ``_created`` (instants of creation) and everything that is not needed are passed over unread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as Line

from servingplan.clients.engine_series import (
    DEFERRED,
    HISTOGRAMS,
    LORA,
    NAMES,
    WAITING_BY_REASON,
    Latency,
    Limits,
    NoReading,
    Sample,
    Signal,
    reading,
)
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Reading

_BUCKET = "_bucket"
_OF_SIGNALS = frozenset(name for names in NAMES.values() for name in names) | {WAITING_BY_REASON, LORA}

Lines = Mapping[str, list[Line]]


def read_metrics(text: str, *, pod: str, at: datetime, limits: Limits) -> Reading:
    """What a pod's text says at an instant. Raises `NoReading`: broken text, values missing or no numbers."""
    return reading(parse_metrics(text, pod=pod, at=at, limits=limits), pod=pod, limits=limits)


def parse_metrics(text: str, *, pod: str, at: datetime, limits: Limits) -> Sample:
    """The values that are needed, summed over engines (KV use: their maximum). Raises `NoReading` for broken text."""
    histograms = [latency for latency in Latency if limits.of(latency) is not None]
    wanted = _OF_SIGNALS | {name + _BUCKET for latency in histograms for name in HISTOGRAMS[latency]}
    try:
        lines = lines_by_name(text, wanted, pod)
        return Sample(
            at=at,
            values=dict(_values(lines)),
            buckets={latency: _buckets(lines, latency) for latency in histograms},
        )
    except (ValueError, IndexError, KeyError) as error:
        raise NoReading(
            Reason.METRICS_INVALID, f"the metrics of pod {pod} cannot be read ({_first_line(error)}); was it cut off?"
        ) from error


def lines_by_name(text: str, wanted: frozenset[str], pod: str) -> Lines:
    """The wanted lines, parsed, by name. The parser is slow, so it sees no others."""
    starts = tuple(wanted)
    kept = [line for line in text.splitlines() if line.startswith(starts)]
    if not kept and text.lstrip().startswith("<"):
        raise NoReading(Reason.METRICS_INVALID, f"pod {pod} answered with a page instead of metrics; check the path")
    if text and not text.endswith("\n"):
        # The last number may be the beginning of a larger one.
        raise ValueError("it does not end with a line")
    by_name: dict[str, list[Line]] = {}
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    for family in text_string_to_metric_families("\n".join(kept) + "\n"):
        for line in family.samples:
            if line.name not in wanted:
                continue
            series = (line.name, frozenset(line.labels.items()))
            if series in seen:
                raise NoReading(Reason.METRICS_INVALID, f"{line.name} of pod {pod} is there twice in one answer")
            seen.add(series)
            by_name.setdefault(line.name, []).append(line)
    return by_name


def _values(lines: Lines) -> Iterator[tuple[Signal, float]]:
    for signal, names in NAMES.items():
        found = next((lines[name] for name in names if name in lines), None)
        if found is None:
            continue
        values = [line.value for line in found]
        if signal is Signal.KV_USAGE:
            yield signal, _maximum(values)
        elif signal is Signal.WAITING:
            yield signal, _less_deferred(sum(values), lines)
        else:
            yield signal, sum(values)


def _less_deferred(waiting: float, lines: Lines) -> float:
    """Waiting for capacity. The two gauges are not set at once, so the difference may be below 0 for a moment."""
    if LORA in lines:
        return waiting
    deferred = sum(line.value for line in lines.get(WAITING_BY_REASON, ()) if line.labels["reason"] == DEFERRED)
    return max(waiting - deferred, 0.0) if deferred > 0 else waiting


def _maximum(values: list[float]) -> float:
    """The largest; NaN where one is NaN, which `max` would hide."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)


def _buckets(lines: Lines, latency: Latency) -> dict[float, float]:
    found = next((lines[name + _BUCKET] for name in HISTOGRAMS[latency] if name + _BUCKET in lines), [])
    buckets: dict[float, float] = {}
    for line in found:
        edge = float(line.labels["le"])
        buckets[edge] = buckets.get(edge, 0.0) + line.value
    return buckets


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()
    return text[0][:120] if text else type(error).__name__
