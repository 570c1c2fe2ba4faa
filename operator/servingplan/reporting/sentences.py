"""What a change of a plan changes, in sentences: for the reviewer of a pull request.

In: a `Difference`. Out: a sentence for each kind of change of what is required (need and reserve apart, so that a lost
reserve is named also where the total stays), then what it costs a week. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import pairwise

from servingplan.planning.demand import Requirement
from servingplan.reporting.difference import Difference
from servingplan.reporting.local import clock_span, dates_in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """What is required before and after a change."""

    old: Requirement
    new: Requirement

    @property
    def differ(self) -> bool:
        """Whether anything that a sentence tells is different."""
        return self.words != ""

    @property
    def words(self) -> str:
        """What changes, as the end of a sentence; empty where nothing does."""
        old, new = self.old, self.new
        same = f"all {new.replicas} replicas are needed"
        totals = same if old.replicas == new.replicas else f"{old.replicas} → {new.replicas} replicas"
        if new.reserve == 0 < old.reserve:
            return f"loses its reserve ({totals})"
        if old.reserve == 0 < new.reserve:
            return f"gains a reserve of {new.reserve} ({totals})"
        if old.replicas != new.replicas:
            verb = "needs" if old.need != new.need else "holds"
            return f"{verb} {new.replicas} replicas instead of {old.replicas}"
        if old.reserve != new.reserve:
            return f"has a reserve of {new.reserve} instead of {old.reserve}"
        return ""


def sentences(found: Difference) -> tuple[str, ...]:
    """One for each kind of change, the earliest time of day first; the last is what it costs a week."""
    week = f"{found.week:+,.1f} GPU-hours a week ({found.old_week:,.1f} → {found.new_week:,.1f})"
    price = found.new.gpu_hour
    cost = "" if price is None else f", {found.week * float(price):+,.2f} at {price} a GPU-hour"
    changes = tuple(_changes(found)) or ("What is required in these days stays the same.",)
    return (*changes, f"{week}{cost}.")


def _changes(found: Difference) -> Iterator[str]:
    zone = found.new.plan.zone
    groups: dict[tuple[time, str, str], list[datetime]] = {}
    for start, end, levels in _spans(found):
        key = (start.astimezone(zone).time(), clock_span(start, end, zone), levels.words)
        groups.setdefault(key, []).append(start)
    for (_, clock, words), starts in sorted(groups.items(), key=lambda item: (item[0][0], item[1][0])):
        dates = [start.astimezone(zone).date() for start in starts]
        yield f"{dates_in_words(dates)}, {clock}, {words}."


def _spans(found: Difference) -> Sequence[tuple[datetime, datetime, _Levels]]:
    """Where what is required differs, equal neighbours put together."""
    old, new = found.old.course.required, found.new.course.required
    first, last = max(old.start, new.start), min(old.end, new.end)
    times = sorted({first, last, *(t for t in (*old.times, *new.times) if first < t < last)})
    spans: list[tuple[datetime, datetime, _Levels]] = []
    for start, end in pairwise(times):
        levels = _Levels(old=old.at(start), new=new.at(start))
        if not levels.differ or end - start <= timedelta():
            continue
        if spans and spans[-1][1] == start and spans[-1][2].words == levels.words:
            spans[-1] = (spans[-1][0], end, levels)
        else:
            spans.append((start, end, levels))
    return spans
