"""One round of answers, put together by pod.

In: the elements of every query of a round. Out: a `Round`: the `Sample` of each pod, and what is wrong with the others.
Pure; it runs in the parser's thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from servingplan.clients.engine_series import (
    HISTOGRAMS,
    NAMES,
    Latency,
    Limits,
    NoReading,
    Sample,
    Signal,
    reading,
)
from servingplan.clients.vectors import Element
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading

CLOCKS_DIFFER = timedelta(seconds=30)
"""Clocks of servers differ by less; a sample from further in the future is not believed."""

Pod = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one source said of all pods. at: the instant that it was asked for, by its own clock."""

    source: str
    at: datetime
    pods: Mapping[Pod, Sample]
    faults: Mapping[Pod, NoSignals] = field(default_factory=dict)
    unlabelled: NoSignals | None = None

    def reading(self, pod: Pod, limits: Limits) -> Reading | NoSignals:
        """What one pod said. at: on the real clock."""
        if pod in self.faults:
            return self.faults[pod]
        sample = self.pods.get(pod)
        if sample is None:
            return self.unlabelled or self._not_there(pod)
        try:
            return reading(sample, pod=pod[1], limits=limits)
        except NoReading as error:
            return NoSignals(reason=error.reason, message=f"source {self.source}: {error}")

    def _not_there(self, pod: Pod) -> NoSignals:
        message = (
            f"source {self.source} has no series {NAMES[Signal.RUNNING][0]} with namespace {pod[0]} and pod {pod[1]}; "
            "is the pod scraped, and do the labels name the pod rather than its exporter?"
        )
        return NoSignals(reason=Reason.METRICS_MISSING, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Puts the answers of a round together by pod. newest: no sample can be from later."""

    source: str
    newest: datetime

    def round(
        self,
        *,
        name: str,
        stamped: list[Element],
        values: Mapping[Signal, list[Element]],
        buckets: Mapping[Latency, list[Element]],
        unlabelled: NoSignals | None,
    ) -> Round:
        """The samples by pod; a pod about which answers contradict each other is a fault."""
        faults: dict[Pod, NoSignals] = {}
        stamps = self._numbers(stamped, NAMES[Signal.RUNNING][0], faults)
        numbers = {signal: self._numbers(found, NAMES[signal][0], faults) for signal, found in values.items()}
        edges = {latency: self._edges(found, HISTOGRAMS[latency][0], faults) for latency, found in buckets.items()}
        samples: dict[Pod, Sample] = {}
        for pod, stamp_s in stamps.items():
            if not self._is_instant(stamp_s):
                faults[pod] = self._fault(f"the sample of pod {pod[1]} is of {stamp_s} s, which is not yet, or never")
                continue
            samples[pod] = Sample(
                at=datetime.fromtimestamp(stamp_s, UTC),
                values={signal: found[pod] for signal, found in numbers.items() if pod in found},
                buckets={latency: found[pod] for latency, found in edges.items() if pod in found},
            )
        at = datetime.fromtimestamp(stamped[0].evaluated_s, UTC)
        return Round(source=name, at=at, pods=samples, faults=faults, unlabelled=unlabelled)

    def _numbers(self, elements: list[Element], series: str, faults: dict[Pod, NoSignals]) -> dict[Pod, float]:
        numbers: dict[Pod, float] = {}
        for element in elements:
            pod = pod_of(element)
            if pod is None:
                continue
            if pod in numbers:
                faults[pod] = self._fault(f"{series} is there twice for pod {pod[1]} of namespace {pod[0]}")
            numbers[pod] = element.value
        return numbers

    def _edges(
        self, elements: list[Element], series: str, faults: dict[Pod, NoSignals]
    ) -> dict[Pod, dict[float, float]]:
        edges: dict[Pod, dict[float, float]] = {}
        for element in elements:
            pod = pod_of(element)
            if pod is None or not is_edge(element):
                continue
            of_pod, edge = edges.setdefault(pod, {}), float(element.labels["le"])
            if edge in of_pod:
                faults[pod] = self._fault(f"edge {edge:g} of {series} is there twice for pod {pod[1]}")
            of_pod[edge] = element.value
        return edges

    def _is_instant(self, stamp_s: float) -> bool:
        return 0 < stamp_s <= self.newest.timestamp()

    def _fault(self, message: str) -> NoSignals:
        return NoSignals(reason=Reason.METRICS_INVALID, message=f"{self.source}: {message}")


def pod_of(element: Element) -> Pod | None:
    """The pod that an element is of; None where its labels do not say."""
    namespace, pod = element.labels.get("namespace"), element.labels.get("pod")
    return (namespace, pod) if namespace and pod else None


def is_edge(element: Element) -> bool:
    """Whether an element is a bucket with a count."""
    try:
        return float(element.labels["le"]) > -math.inf and math.isfinite(element.value)
    except (KeyError, ValueError):
        return False
