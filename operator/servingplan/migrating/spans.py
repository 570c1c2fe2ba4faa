"""Sets of instants as intervals in order, apart from each other. Knows nothing of plans or crons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from servingplan.planning.calendar import Interval

Spans = Sequence[Interval]
"""In order, not empty, apart from each other."""


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """All instants of the intervals."""
    found: list[Interval] = []
    for interval in sorted((i for i in intervals if not i.empty), key=lambda i: i.start):
        if found and interval.start <= found[-1].end:
            found[-1] = Interval(start=found[-1].start, end=max(found[-1].end, interval.end))
        else:
            found.append(interval)
    return tuple(found)


def minus(spans: Spans, others: Spans) -> tuple[Interval, ...]:
    """The instants of the first that are not in the second."""
    found: list[Interval] = []
    position = 0
    for span in spans:
        start = span.start
        while position < len(others) and others[position].end <= start:
            position += 1
        for other in others[position:]:
            if other.start >= span.end:
                break
            found.append(Interval(start=start, end=other.start))
            start = other.end
        found.append(Interval(start=start, end=span.end))
    return tuple(interval for interval in found if not interval.empty)


def both(spans: Spans, others: Spans) -> tuple[Interval, ...]:
    """The instants of both."""
    return minus(spans, minus(spans, others))


def total(spans: Iterable[Interval]) -> timedelta:
    """How long all of them last."""
    return sum((span.end - span.start for span in spans), timedelta())
