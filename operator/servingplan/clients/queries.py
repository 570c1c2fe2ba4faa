"""What Prometheus is asked: one query per signal, for the pods of all plans at once.

In: an administrator's label matchers, and the limits of the plans. Out: PromQL. Pure.

Each query first takes the maximum over everything that does not tell engines apart, so that a pod which two jobs
scrape, or which two replicas of Prometheus have, counts once; then it sums the engines of a pod.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servingplan.clients.engine_series import (
    DEFERRED,
    HISTOGRAMS,
    LORA,
    NAMES,
    WAITING_BY_REASON,
    Latency,
    Signal,
)

POD = "namespace, pod"
"""The labels that tell which pod a series is of."""

ENGINE = f"{POD}, instance, engine, model_name"
"""The labels that tell engines apart; a pod with several ports has several instances."""

_DETAIL = {Signal.FINISHED: ", finished_reason", Signal.REJECTIONS: ", reason"}
"""The label, beside those of the engine, that splits a counter."""

Matchers = Mapping[str, str | re.Pattern[str]]
"""What labels must be: a text, or what matches a pattern as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """How many series have each edge of one histogram, by the edge as Prometheus writes it."""

    series: Mapping[str, int]

    def around(self, limits: Iterable[float]) -> list[str]:
        """The fewest edges that bound each limit as tightly as all of them would, for every engine; sorted.

        Engines may have different edges. Outwards from a limit, everything is taken up to the first edge that all
        engines have. The last edge, of all observations, is always there.
        """
        texts: dict[float, list[str]] = {}
        for text in self.series:
            texts.setdefault(float(text), []).append(text)
        counts = {edge: sum(self.series[text] for text in same) for edge, same in texts.items()}
        everywhere = max(counts.values(), default=0)
        kept = {math.inf}
        for limit in limits:
            kept.update(_until_common((e for e in sorted(counts, reverse=True) if e <= limit), counts, everywhere))
            kept.update(_until_common((e for e in sorted(counts) if e >= limit), counts, everywhere))
        return [text for edge in sorted(kept) for text in sorted(texts.get(edge, ["+Inf"]))]


def _until_common(outwards: Iterable[float], counts: Mapping[float, int], everywhere: int) -> Iterable[float]:
    for edge in outwards:
        yield edge
        if counts[edge] == everywhere:
            return


def freshness(matchers: Matchers) -> str:
    """When each pod was last scraped: the sample's own timestamp, which an instant vector hides."""
    return f"min by ({POD}) (timestamp({_selector(NAMES[Signal.RUNNING][0], matchers)}))"


def value_of(signal: Signal, matchers: Matchers) -> str:
    """One number per pod."""
    if signal is Signal.KV_USAGE:
        return " or ".join(f"max by ({POD}) ({_selector(name, matchers)})" for name in NAMES[signal])
    total = " or ".join(_total(name, matchers, _DETAIL.get(signal, "")) for name in NAMES[signal])
    return _less_deferred(total, matchers) if signal is Signal.WAITING else total


def _less_deferred(waiting: str, matchers: Matchers) -> str:
    """Requests that wait for something other than capacity do not count, unless LoRA is in use."""
    deferred = _total(WAITING_BY_REASON, {**matchers, "reason": DEFERRED}, "")
    other = f"({deferred} unless on ({POD}) {_selector(LORA, matchers)})"
    return f"clamp_min(({waiting}) - {other}, 0) or {waiting}"


def edges_of(latency: Latency, matchers: Matchers) -> dict[str, str]:
    """By histogram: how many series have each edge."""
    return {name: f"count by (le) ({_selector(name + '_bucket', matchers)})" for name in HISTOGRAMS[latency]}


def buckets_of(edges: Mapping[str, Sequence[str]], matchers: Matchers) -> str:
    """The buckets of a latency per pod, at these edges of each of its histograms; of the first that a pod has."""
    return f" or on ({POD}) ".join(
        _total(f"{name}_bucket", matchers, ", le", keep=", le", edges=chosen) for name, chosen in edges.items()
    )


def arrived(matchers: Matchers, window: str) -> str:
    """Requests that arrived within `window`, of all pods together; no sample where no engine was scraped.

    What got its first token, plus what more waits at the end than at the start, plus what was rejected.
    """
    first_tokens = rise(NAMES[Signal.ARRIVED][0], matchers, window)
    waiting = _selector(NAMES[Signal.WAITING][0], matchers)
    more_waiting = f"sum(max by ({ENGINE}) (delta({waiting}[{window}])))"
    rejected = rise(NAMES[Signal.REJECTIONS][0], matchers, window, detail=", reason")
    return f"clamp_min({first_tokens} + ({more_waiting} or vector(0)) + ({rejected} or vector(0)), 0)"


def rise(counter: str, matchers: Matchers, window: str, *, detail: str = "") -> str:
    """How much a counter rose within `window`, of all engines together; detail: labels that split it further."""
    return f"sum(max by ({ENGINE}{detail}) (increase({_selector(counter, matchers)}[{window}])))"


def bucket_rises(histogram: str, matchers: Matchers, window: str) -> str:
    """How much each bucket of a histogram rose within `window`, of all engines together."""
    return f"sum by (le) ({_bucket_rises(histogram, matchers, window)})"


def bucket_engines(histogram: str, matchers: Matchers, window: str) -> str:
    """How many engines have each of these buckets: those of two versions may differ."""
    return f"count by (le) ({_bucket_rises(histogram, matchers, window)})"


def _bucket_rises(histogram: str, matchers: Matchers, window: str) -> str:
    return f"max by ({ENGINE}, le) (increase({_selector(histogram + '_bucket', matchers)}[{window}]))"


def jobs_without_labels(matchers: Matchers) -> str:
    """The scrape jobs whose series do not say which pod they are of."""
    name = NAMES[Signal.RUNNING][0]
    without = (_selector(name, {**matchers, label: ""}) for label in ("namespace", "pod"))
    return f"count by (job) ({' or '.join(without)})"


def _total(name: str, matchers: Matchers, detail: str, *, keep: str = "", edges: Sequence[str] = ()) -> str:
    selector = _selector(name, matchers, edges)
    return f"sum by ({POD}{keep}) (max by ({ENGINE}{detail}) ({selector}))"


def _selector(name: str, matchers: Matchers, edges: Sequence[str] = ()) -> str:
    stated = [_matched(label, value) for label, value in sorted(matchers.items())]
    if edges:
        stated.append(f"le=~{_quoted('|'.join(re.escape(edge) for edge in edges))}")
    return f"{name}{{{','.join(stated)}}}" if stated else name


def _matched(label: str, value: str | re.Pattern[str]) -> str:
    return f"{label}={_quoted(value)}" if isinstance(value, str) else f"{label}=~{_quoted(value.pattern)}"


def _quoted(text: str) -> str:
    """A string as PromQL reads it: the escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False)
