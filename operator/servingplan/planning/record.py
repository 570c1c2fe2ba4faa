"""The record of a plan: what its pods counted lately, in bounded memory, and the signals that follow from it.

In: the readings of each poll. Out: `Signals`, or why there are none. A record holds the last reading of each pod, ticks
of ten seconds for a quarter of an hour, and arrivals by the minute for some hours. Pure: every instant is an argument.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from servingplan.planning.counts import NONE, Counts, counted, spread
from servingplan.planning.hour import Hour
from servingplan.planning.learned import LEVEL_S, NOW_S
from servingplan.planning.readings import sound_readings
from servingplan.planning.reasons import Reason
from servingplan.planning.signals import Heard, Lasting, NoSignals, Reading, Share, Signals, Within
from servingplan.planning.units import format_duration

TICK_S = 10
"""Width of a tick: short against the bursts that must not raise (20 s), so that one touches few ticks."""

TWO_MINUTES = 120 // TICK_S
TEN_MINUTES = 600 // TICK_S
HALF_MINUTE = 30 // TICK_S
TICKS_KEPT = 900 // TICK_S
MINUTES_TOLD = LEVEL_S // 60
MINUTES_KEPT = MINUTES_TOLD + 15
"""More than are told: readings may be some minutes old when they are asked for."""

LASTS = timedelta(seconds=25)
"""How long a gauge must stay up before it counts: longer than a burst of 20 s, and two scrapes of 15 s that jitter."""

FALLING = 0.97
"""A gauge that fell below this share of the reading before, and by more than chance, is being worked off: a burst may
be over in 20 s, the queue that it leaves is not."""

PAUSE = timedelta(minutes=5)
"""The longest time between two readings over which a pod's counts are still placed: Prometheus' own lookback.
Longer ones only start anew, because nobody knows any more when in between something arrived."""

DISPERSION_MINUTES = 10
"""Fewer one-minute counts say nothing about their variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What all pods that answered a poll had in flight, `at` the oldest of their readings."""

    at: datetime
    in_flight: float
    waiting: float
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is remembered of a plan's pods. A new one is empty; `heard` returns the next one.

    since: from when on somebody was heard without a pause. polled: when the last readings came. troubles: the pods
    whose last reading made no sense.
    """

    last: Mapping[str, Reading] = field(default_factory=dict)
    first: Mapping[str, datetime] = field(default_factory=dict)
    troubles: Mapping[str, NoSignals] = field(default_factory=dict)
    ticks: Mapping[int, Counts] = field(default_factory=dict)
    minutes: Mapping[int, float] = field(default_factory=dict)
    hour: Hour = field(default_factory=Hour)
    gauges: Sequence[Gauges] = ()
    since: datetime | None = None
    polled: datetime | None = None

    def heard(self, readings: Sequence[Reading], at: datetime, born: Mapping[str, datetime] | None = None) -> Record:
        """The record after a poll at `at` (aware) that gave these readings, in any order, of any pods.

        born: when pods were created, where that is known: one that is younger than the last poll counts from zero; any
        other new pod's past is not counted. Nothing raises: what makes no sense is noted, and named by `signals`.
        """
        if self.polled is not None and self.polled - at > timedelta(seconds=TICK_S):
            return Record().heard(readings, at)  # The clock went back: what was counted lies in the future.
        sound, troubles = sound_readings(readings, at)
        last = {pod: reading for pod, reading in self.last.items() if at - reading.at <= PAUSE}
        first = {pod: self.first[pod] for pod in last}
        counts: list[tuple[float, float, Counts]] = []
        answered = [reading for reading in sound if reading.pod not in last or reading.at > last[reading.pod].at]
        for reading in answered:
            before = last.get(reading.pod)
            start = before.at if before is not None else self._birth(reading, born or {})
            if start is not None:
                span = (reading.at - start).total_seconds()
                counts.append((start.timestamp(), reading.at.timestamp(), counted(before, reading, span)))
            first.setdefault(reading.pod, reading.at)
        since = self.since if last else max((reading.at for reading in answered), default=None)
        last |= {reading.pod: reading for reading in answered}
        return Record(
            last=last,
            first=first,
            troubles=troubles,
            ticks=_ticks(self.ticks, counts, at),
            minutes=_minutes(self.minutes, counts, at),
            hour=self.hour.with_counts(counts, at),
            gauges=_gauges(self.gauges, answered),
            since=since,
            polled=at,
        )

    def _birth(self, reading: Reading, born: Mapping[str, datetime]) -> datetime | None:
        """From when on a new pod's counts count; None where they hold a past of unknown length."""
        created = born.get(reading.pod)
        young = created is not None and self.polled is not None and created >= self.polled
        return created if young and created is not None and created < reading.at else None

    def signals(self, now: datetime, stale_after: timedelta, pods: Collection[str]) -> Heard:
        """What the pods that should answer (the ready ones, by name) say at `now`.

        Readings older than `stale_after` do not count. Some pods missing: the signals of the others, with their names.
        """
        missing = {pod: why for pod in sorted(pods) if (why := self._missing(pod, now, stale_after)) is not None}
        fresh = {pod: self.last[pod] for pod in sorted(pods) if pod not in missing}
        if not fresh:
            return self._nothing(missing)
        at = min(reading.at for reading in fresh.values())
        # Ticks before this one are complete for every pod that answers.
        end = int(at.timestamp() // TICK_S)
        known = 0 if self.since is None else max(0, end - math.ceil(self.since.timestamp() / TICK_S))
        two = self._window(end, min(known, TWO_MINUTES))
        ten = self._window(end, min(known, TEN_MINUTES))
        in_flight = {pod: reading.running + reading.waiting for pod, reading in fresh.items()}
        lasting, minutes = self._lasting(), self._minutes_told(end)
        return Signals(
            at=at,
            arrivals_2m=_arrivals(two, 2, 1) if known >= TWO_MINUTES else None,
            arrivals_10m=_arrivals(ten, TEN_MINUTES // 4, TEN_MINUTES // 4) if known >= TEN_MINUTES else None,
            reach=_reach(ten, at, end),
            dispersion=_dispersion(minutes),
            rejections=_rejections(two) if known >= TWO_MINUTES else None,
            preemption_share=_preemption_share(two) if known >= TWO_MINUTES else None,
            waiting=Lasting(
                value=sum(reading.waiting for reading in fresh.values()),
                least=min((gauges.waiting for gauges in lasting), default=0.0),
            ),
            waiting_most=max((gauges.waiting for gauges in self.gauges), default=0.0),
            in_flight=in_flight,
            in_flight_mean=Lasting(
                value=sum(in_flight.values()) / len(in_flight),
                least=min((gauges.in_flight / gauges.pods for gauges in lasting), default=0.0),
            ),
            ttft=_share([counts.ttft for counts in two]),
            tpot=_share([counts.tpot for counts in two]),
            queue=_share([counts.queue for counts in two]),
            prompt_mean=_prompt_mean(ten),
            kv_usage=max((r.kv_usage for r in fresh.values() if r.kv_usage is not None), default=None),
            first_heard={pod: self.first[pod] for pod in fresh},
            missing=missing,
            traffic=self.hour.traffic(at, self.since),
            arrivals_now=self._rate_now(end, known),
            minutes=minutes,
        )

    def _missing(self, pod: str, now: datetime, stale_after: timedelta) -> NoSignals | None:
        """Why a pod does not count, if it does not."""
        if pod in self.troubles:
            return self.troubles[pod]
        if pod not in self.last:
            return NoSignals(reason=Reason.METRICS_MISSING, message=f"there are no readings of pod {pod}")
        if now - self.last[pod].at > stale_after:
            message = f"the last reading of pod {pod} is older than {format_duration(stale_after)}"
            return NoSignals(reason=Reason.METRICS_STALE, message=message)
        return None

    def _nothing(self, missing: Mapping[str, NoSignals]) -> NoSignals:
        """Why nobody counts: the most telling reason, by the first pod that has it."""
        if not missing:
            return NoSignals(reason=Reason.METRICS_AWAITED, message="no replica is ready that could be asked")
        return min(missing.values(), key=lambda why: _TELLING.index(why.reason))

    def _window(self, end: int, length: int) -> list[Counts]:
        return [self.ticks.get(tick, NONE) for tick in range(end - length, end)]

    def _rate_now(self, end: int, known: int) -> float | None:
        """The largest rate of the windows that were heard."""
        windows = [seconds // TICK_S for seconds in NOW_S]
        if known < TWO_MINUTES:
            return None
        heard = [self._window(end, window) for window in windows if window <= known]
        return max(sum(max(0.0, tick.arrivals) for tick in ticks) / (len(ticks) * TICK_S) for ticks in heard)

    def _minutes_told(self, end: int) -> Mapping[int, float]:
        """Arrivals of the last whole minutes, since somebody was heard."""
        if self.since is None:
            return {}
        last = end * TICK_S // 60
        begin = max(math.ceil(self.since.timestamp() / 60), last - MINUTES_TOLD)
        return {minute: max(0.0, self.minutes.get(minute, 0.0)) for minute in range(begin, last)}

    def _lasting(self) -> Sequence[Gauges]:
        """The gauges of the last half-minute; none where nobody was heard for that long, or it is being worked off."""
        if len(self.gauges) < 2 or _falls(self.gauges[-2].in_flight, self.gauges[-1].in_flight):
            return ()
        start = self.gauges[-1].at - LASTS
        before = [i for i, gauges in enumerate(self.gauges) if gauges.at <= start]
        return self.gauges[before[-1] :] if before else ()


def last_heard(
    record: Record, trouble: NoSignals | None, *, now: datetime, stale_after: timedelta, pods: Collection[str]
) -> Heard:
    """What the pods that should answer say at `now`, or what keeps anybody from hearing them.

    trouble: what was wrong with the last round; None where nothing was. It counts once nothing fresh is left.
    """
    heard = record.signals(now, stale_after, pods)
    if not isinstance(heard, NoSignals) or trouble is None:
        return heard
    # A source that has no series yet is as it should be while no replica is ready.
    nothing_yet = not pods and trouble.reason is Reason.METRICS_MISSING
    return heard if nothing_yet else trouble


_TELLING = (Reason.METRICS_INVALID, Reason.METRICS_STALE, Reason.METRICS_MISSING)
"""Of several reasons the one that tells most about the source comes first."""


def _ticks(
    ticks: Mapping[int, Counts], counts: Sequence[tuple[float, float, Counts]], at: datetime
) -> dict[int, Counts]:
    oldest = int(at.timestamp() // TICK_S) - TICKS_KEPT
    kept = {tick: value for tick, value in ticks.items() if tick >= oldest}
    for start, end, value in counts:
        for tick, share in spread(start, end, TICK_S):
            kept[tick] = kept.get(tick, NONE).plus(value, share)
    return kept


def _minutes(
    minutes: Mapping[int, float], counts: Sequence[tuple[float, float, Counts]], at: datetime
) -> dict[int, float]:
    oldest = int(at.timestamp() // 60) - MINUTES_KEPT
    kept = {minute: value for minute, value in minutes.items() if minute >= oldest}
    for start, end, value in counts:
        for minute, share in spread(start, end, 60):
            kept[minute] = kept.get(minute, 0.0) + share * value.arrivals
    return kept


def _gauges(gauges: Sequence[Gauges], answered: Sequence[Reading]) -> Sequence[Gauges]:
    """The gauges of the last two minutes. A poll that brought nothing new adds none: one look is not two."""
    if not answered:
        return gauges
    at = min(reading.at for reading in answered)
    new = Gauges(
        at=at,
        in_flight=sum(reading.running + reading.waiting for reading in answered),
        waiting=sum(reading.waiting for reading in answered),
        pods=len(answered),
    )
    return (*(old for old in gauges if at - timedelta(seconds=TWO_MINUTES * TICK_S) <= old.at < at), new)


def _falls(before: float, after: float) -> bool:
    """Whether what is in flight is being worked off. What a steady load leaves in flight wavers by about its root."""
    return after < FALLING * before and before - after > math.sqrt(before)


def _arrivals(ticks: Sequence[Counts], stretch: int, step: int) -> Lasting:
    """Arrivals in requests/s, never below zero in a tick, and those of the quietest `stretch` of ticks."""
    counts = [max(0.0, tick.arrivals) for tick in ticks]
    stretches = (sum(counts[i : i + stretch]) for i in range(0, len(counts) - stretch + 1, step))
    return Lasting(value=sum(counts) / (len(counts) * TICK_S), least=min(stretches) / (stretch * TICK_S))


def _dispersion(minutes: Mapping[int, float]) -> float:
    """Variance over mean of one-minute arrivals in the last hour, at least 1, from successive differences.

    D = sum (c[i] - c[i-1])^2 / (2 (n - 1)) / mean: for independent minutes the variance itself, but a scheduled
    change of level counts once, not for an hour (von Neumann, https://doi.org/10.1214/aoms/1177731677).
    """
    counts = list(minutes.values())[-60:]
    mean = sum(counts) / len(counts) if counts else 0.0
    if len(counts) < DISPERSION_MINUTES or mean == 0:
        return 1.0
    squares = sum((b - a) ** 2 for a, b in itertools.pairwise(counts))
    return max(1.0, squares / (2 * (len(counts) - 1)) / mean)


def _reach(ticks: Sequence[Counts], at: datetime, end: int) -> timedelta:
    """How much older than its window a count may be: the ticks end before `at`, and begin within a pause."""
    unfinished = at - datetime.fromtimestamp(end * TICK_S, UTC)
    return unfinished + timedelta(seconds=max((tick.span for tick in ticks), default=0.0))


def _prompt_mean(ticks: Sequence[Counts]) -> float | None:
    prompts = sum(tick.prompts for tick in ticks)
    return sum(tick.prompt_tokens for tick in ticks) / prompts if prompts >= 1 else None


def _half_minutes(values: Sequence[float]) -> list[float]:
    return [sum(values[i : i + HALF_MINUTE]) for i in range(0, len(values), HALF_MINUTE)]


def _rejections(ticks: Sequence[Counts]) -> Lasting:
    parts = _half_minutes([tick.rejections for tick in ticks])
    return Lasting(value=sum(parts) / (len(ticks) * TICK_S), least=min(parts) / (HALF_MINUTE * TICK_S))


def _preemption_share(ticks: Sequence[Counts]) -> Lasting:
    """Preemptions over finished requests. Where nothing finished, as if one had."""
    preempted = _half_minutes([tick.preemptions for tick in ticks])
    finished = _half_minutes([tick.finished for tick in ticks])
    return Lasting(
        value=sum(preempted) / max(1.0, sum(finished)),
        least=min(some / max(1.0, of) for some, of in zip(preempted, finished, strict=True)),
    )


def _share(histograms: Sequence[Within]) -> Share | None:
    """Attainment over a window; None where nothing was observed."""
    parts = [_total(histograms[i : i + HALF_MINUTE]) for i in range(0, len(histograms), HALF_MINUTE)]
    whole = _total(histograms)
    if whole.count <= 0:
        return None
    return Share(
        at_least=min(1.0, whole.below / whole.count),
        at_most=min(1.0, whole.above / whole.count),
        # Where nothing was observed nothing broke: what follows a quiet time may be a burst.
        best=max(min(1.0, part.above / part.count) if part.count > 0 else 1.0 for part in parts),
        count=whole.count,
    )


def _total(histograms: Sequence[Within]) -> Within:
    return Within(
        below=sum(one.below for one in histograms),
        above=sum(one.above for one in histograms),
        count=sum(one.count for one in histograms),
    )
