"""Readings that make sense: told apart from those that nobody should count.

In: what the pods of a plan said in one poll. Out: the sound readings, by pod, and what is wrong with the others. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from servingplan.planning.reasons import Reason
from servingplan.planning.signals import NoSignals, Reading, Within
from servingplan.planning.units import format_duration

AHEAD = timedelta(minutes=1)
"""How far a source's clock may be ahead; what lies further ahead would never become stale."""


def sound_readings(readings: Sequence[Reading], at: datetime) -> tuple[list[Reading], dict[str, NoSignals]]:
    """The readings that make sense, by pod, and the pods whose readings do not."""
    often = Counter(reading.pod for reading in readings)
    sound: list[Reading] = []
    troubles: dict[str, NoSignals] = {}
    for reading in sorted(readings, key=lambda reading: (reading.pod, reading.at)):
        if often[reading.pod] > 1:
            troubles[reading.pod] = _invalid(f"several readings of pod {reading.pod} at once: which one is true?")
        elif not all(_is_count(value) for value in _required(reading)):
            message = f"pod {reading.pod} has counts that are no numbers, infinite or negative"
            troubles[reading.pod] = _invalid(message)
        elif reading.at - at > AHEAD:
            ahead = format_duration(AHEAD)
            message = f"the reading of pod {reading.pod} is more than {ahead} ahead of the operator's clock"
            troubles[reading.pod] = _invalid(message)
        else:
            sound.append(_without_nonsense(reading))
    return sound, troubles


def _invalid(message: str) -> NoSignals:
    return NoSignals(reason=Reason.METRICS_INVALID, message=message)


def _required(reading: Reading) -> tuple[float, ...]:
    return (
        reading.running,
        reading.waiting,
        reading.arrived,
        reading.finished,
        reading.preemptions,
        reading.rejections,
    )


def _is_count(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _without_nonsense(reading: Reading) -> Reading:
    """Optional values that are no numbers are as good as absent."""

    def number(value: float | None) -> float | None:
        return value if value is not None and _is_count(value) else None

    def within(value: Within | None) -> Within | None:
        sound = value is not None and all(_is_count(v) for v in (value.below, value.above, value.count))
        return value if sound else None

    return replace(
        reading,
        kv_usage=number(reading.kv_usage),
        prompts=number(reading.prompts),
        prompt_tokens=number(reading.prompt_tokens),
        output_tokens=number(reading.output_tokens),
        prefix_queries=number(reading.prefix_queries),
        prefix_hits=number(reading.prefix_hits),
        ttft=within(reading.ttft),
        tpot=within(reading.tpot),
        queue=within(reading.queue),
    )
