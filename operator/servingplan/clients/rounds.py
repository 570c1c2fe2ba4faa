"""One round of answers, put together by pod.

In: the elements of every query of a round. Out: a `Round`: the `Sample` of each pod, and what is wrong with the others.
Pure; it runs in the parser's thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from servingplan.clients.engine_series import (
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
class Stamps:
    """When each pod was last scraped, in Unix seconds, asked at `evaluated_s` of the server's clock.

    unlabelled: how many series do not say which pod they are of.
    """

    evaluated_s: float
    by_pod: Mapping[Pod, float]
    unlabelled: int


Numbers = dict[Pod, float]
Histograms = dict[Pod, dict[float, float]]


class Assembly:
    """Puts the answers of one round together, each as soon as it comes.

    source: what messages begin with. newest: no sample can be from later.
    """

    def __init__(self, *, source: str, newest: datetime) -> None:
        self._source = source
        self._newest_s = newest.timestamp()
        self._faults: dict[Pod, NoSignals] = {}
        self._pods: dict[Pod, Pod] = {}

    def stamps(self, elements: Iterable[Element]) -> Stamps | None:
        """The answer to `queries.freshness`; None where it is empty."""
        evaluated_s, unlabelled = 0.0, 0
        labelled: list[Element] = []
        for element in elements:
            evaluated_s = element.evaluated_s
            if self._pod_of(element) is None:
                unlabelled += 1
            else:
                labelled.append(element)
        if not evaluated_s:
            return None
        by_pod = self.numbers(labelled, NAMES[Signal.RUNNING][0])
        return Stamps(evaluated_s=evaluated_s, by_pod=by_pod, unlabelled=unlabelled)

    def numbers(self, elements: Iterable[Element], series: str) -> Numbers:
        """One number per pod. A pod that is there twice is a fault."""
        numbers: Numbers = {}
        for element in elements:
            pod = self._pod_of(element)
            if pod is None:
                continue
            if pod in numbers:
                self._fault(pod, f"{series} is there twice for pod {pod[1]} of namespace {pod[0]}")
            numbers[pod] = element.value
        return numbers

    def histograms(self, elements: Iterable[Element], series: str) -> Histograms:
        """The counts up to each edge, per pod. An edge that is there twice is a fault."""
        edges: Histograms = {}
        for element in elements:
            pod, edge = self._pod_of(element), edge_of(element)
            if pod is None or edge is None:
                continue
            of_pod = edges.setdefault(pod, {})
            if edge in of_pod:
                self._fault(pod, f"edge {edge:g} of {series} is there twice for pod {pod[1]}")
            of_pod[edge] = element.value
        return edges

    def round(
        self,
        name: str,
        stamps: Stamps,
        values: Mapping[Signal, Numbers],
        buckets: Mapping[Latency, Histograms],
        unlabelled: NoSignals | None,
    ) -> Round:
        """The samples by pod; a pod about which answers contradict each other is a fault."""
        samples: dict[Pod, Sample] = {}
        for pod, stamp_s in stamps.by_pod.items():
            if not 0 < stamp_s <= self._newest_s:  # false for NaN too
                self._fault(pod, f"the sample of pod {pod[1]} is of {stamp_s} s, which is not yet, or never")
                continue
            samples[pod] = Sample(
                at=datetime.fromtimestamp(stamp_s, UTC),
                values={signal: found[pod] for signal, found in values.items() if pod in found},
                buckets={latency: found[pod] for latency, found in buckets.items() if pod in found},
            )
        at = datetime.fromtimestamp(stamps.evaluated_s, UTC)
        return Round(source=name, at=at, pods=samples, faults=self._faults, unlabelled=unlabelled)

    def _pod_of(self, element: Element) -> Pod | None:
        """The pod that an element is of, one object for all answers; None where its labels do not say."""
        namespace, name = element.labels.get("namespace"), element.labels.get("pod")
        if not namespace or not name:
            return None
        pod = (namespace, name)
        return self._pods.setdefault(pod, pod)

    def _fault(self, pod: Pod, message: str) -> None:
        self._faults[pod] = NoSignals(reason=Reason.METRICS_INVALID, message=f"{self._source}: {message}")


def edge_of(element: Element) -> float | None:
    """The edge of a bucket; None where it is none, or its count no number."""
    try:
        edge = float(element.labels["le"])
    except (KeyError, ValueError):
        return None
    return edge if edge > -math.inf and math.isfinite(element.value) else None
