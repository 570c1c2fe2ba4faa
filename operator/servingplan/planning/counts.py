"""Counts: what engines did between two readings, and how that is spread over short ticks of time.

In: two readings of one pod. Out: `Counts`, which add up over pods and ticks. Pods are read at instants of their own;
spread over a common grid, their counts can be summed over exactly the same two or ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servingplan.planning.signals import Reading, Within

NOTHING = Within(below=0.0, above=0.0, count=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What happened in a stretch of time. arrivals may be negative; span: seconds between the readings behind it."""

    arrivals: float = 0.0
    rejections: float = 0.0
    preemptions: float = 0.0
    finished: float = 0.0
    prompts: float = 0.0
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0
    prefix_queries: float = 0.0
    prefix_hits: float = 0.0
    ttft: Within = NOTHING
    tpot: Within = NOTHING
    queue: Within = NOTHING
    span: float = 0.0

    def plus(self, other: Counts, share: float = 1.0) -> Counts:
        """These and a share of others."""
        return Counts(
            arrivals=self.arrivals + share * other.arrivals,
            rejections=self.rejections + share * other.rejections,
            preemptions=self.preemptions + share * other.preemptions,
            finished=self.finished + share * other.finished,
            prompts=self.prompts + share * other.prompts,
            prompt_tokens=self.prompt_tokens + share * other.prompt_tokens,
            output_tokens=self.output_tokens + share * other.output_tokens,
            prefix_queries=self.prefix_queries + share * other.prefix_queries,
            prefix_hits=self.prefix_hits + share * other.prefix_hits,
            ttft=_within_sum(self.ttft, other.ttft, share),
            tpot=_within_sum(self.tpot, other.tpot, share),
            queue=_within_sum(self.queue, other.queue, share),
            span=max(self.span, other.span),
        )


NONE = Counts()
"""A stretch of time in which nothing happened."""


def _within_sum(one: Within, other: Within, share: float) -> Within:
    if other.count == 0:
        return one
    return Within(
        below=one.below + share * other.below,
        above=one.above + share * other.above,
        count=one.count + share * other.count,
    )


def counted(before: Reading | None, after: Reading, span: float) -> Counts:
    """What one pod did between two readings, `span` seconds apart; None before: since it started.

    A counter that is smaller than before was started again with its engine, and all others with it.
    """
    if before is None or any(new < old for old, new in _counters(before, after)):
        before = _zero(after)
    arrived = after.arrived - before.arrived
    rejected = after.rejections - before.rejections
    prompts = _optional(before.prompts, after.prompts)
    return Counts(
        arrivals=arrived + after.waiting - before.waiting + rejected,
        rejections=rejected,
        preemptions=after.preemptions - before.preemptions,
        finished=after.finished - before.finished,
        prompts=prompts,
        prompt_tokens=_optional(before.prompt_tokens, after.prompt_tokens) if prompts else 0.0,
        output_tokens=_optional(before.output_tokens, after.output_tokens) if prompts else 0.0,
        prefix_queries=_optional(before.prefix_queries, after.prefix_queries),
        prefix_hits=_optional(before.prefix_hits, after.prefix_hits),
        ttft=_within_delta(before.ttft, after.ttft),
        tpot=_within_delta(before.tpot, after.tpot),
        queue=_within_delta(before.queue, after.queue),
        span=span,
    )


def _counters(before: Reading, after: Reading) -> Iterator[tuple[float, float]]:
    """Every counter that both readings have: before and after."""
    yield before.arrived, after.arrived
    yield before.finished, after.finished
    yield before.preemptions, after.preemptions
    yield before.rejections, after.rejections
    pairs = ((before.prompts, after.prompts), (before.prompt_tokens, after.prompt_tokens))
    yield from ((old, new) for old, new in pairs if old is not None and new is not None)
    histograms = ((before.ttft, after.ttft), (before.tpot, after.tpot), (before.queue, after.queue))
    yield from ((old.count, new.count) for old, new in histograms if old is not None and new is not None)


def _zero(reading: Reading) -> Reading:
    """The same pod when its engine had just started."""
    return Reading(
        pod=reading.pod,
        at=reading.at,
        running=0.0,
        waiting=0.0,
        arrived=0.0,
        finished=0.0,
        preemptions=0.0,
        rejections=0.0,
        prompts=0.0,
        prompt_tokens=0.0,
        output_tokens=0.0,
        prefix_queries=0.0,
        prefix_hits=0.0,
        ttft=NOTHING,
        tpot=NOTHING,
        queue=NOTHING,
    )


def _optional(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else max(0.0, after - before)


def _within_delta(before: Within | None, after: Within | None) -> Within:
    """Nothing where a histogram is not in both readings, or its limit was changed in between."""
    if before is None or after is None:
        return NOTHING
    below, above = after.below - before.below, after.above - before.above
    count = after.count - before.count
    if not 0 <= below <= above <= count:
        return NOTHING
    return Within(below=below, above=above, count=count)


def spread(start: float, end: float, width: int) -> Iterator[tuple[int, float]]:
    """The ticks of `width` seconds that (start, end] touches, with the share of it that lies in each."""
    tick = int(start // width)
    while tick * width < end:
        overlap = min(end, (tick + 1) * width) - max(start, tick * width)
        yield tick, overlap / (end - start)
        tick += 1
