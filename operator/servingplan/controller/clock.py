"""The operator's clock: the system's, or a faster one for demo and tests.

In: real time. Out: the instant that schedules are evaluated at, and how long to sleep until another one. Only
`controller.app` makes a clock; everything else is given one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

from servingplan.errors import UsageError

MAX_FACTOR = 3600
"""An hour a second: at more than 600 a minute is shorter than one request to the API server takes, which is for
stretches in which nothing is due."""

HORIZON = timedelta(days=36525)
"""Objects may be years old when a demo begins: what would be shown further away than a century is shown there."""

DEMO_CLOCK_FORM = "2026-12-01T06:30:00+01:00@60x,since=2026-11-29T20:00:00Z"
"""More ``,INSTANT@FACTORx`` after the first: it goes at another speed from that instant on."""

_STRETCH = re.compile(r"(?P<start>[^@]+)@(?P<factor>[0-9]+(?:\.[0-9]+)?)x")
_SINCE = "since="
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Time as schedules see it, and its relation to real time."""

    def now(self) -> datetime:
        """Read the present instant, aware, in UTC."""

    def seconds_until(self, instant: datetime) -> float:
        """Give the real seconds until an instant; 0 where it is past."""

    def to_real(self, instant: datetime) -> datetime:
        """Give the real instant at which this clock shows ``instant``."""

    def from_real(self, instant: datetime) -> datetime:
        """Give what this clock shows at a real instant, for timestamps that Kubernetes wrote."""

    def describe(self) -> str:
        """Say what clock it is, for logs and status; empty for the system's clock."""


def system_now() -> datetime:
    """Read the system's clock, aware, in UTC."""
    return datetime.now(UTC)


class SystemClock:
    """Real time."""

    def now(self) -> datetime:
        """Read the present instant, aware, in UTC."""
        return system_now()

    def seconds_until(self, instant: datetime) -> float:
        """Give the real seconds until an instant; 0 where it is past."""
        return max(0.0, (instant - self.now()).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        """Give the same instant."""
        return instant.astimezone(UTC)

    def from_real(self, instant: datetime) -> datetime:
        """Give the same instant."""
        return instant.astimezone(UTC)

    def describe(self) -> str:
        """Say nothing: this is the usual clock."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of a faster clock: ``shown = start + (real - since) * factor``."""

    start: datetime
    since: datetime
    factor: Fraction

    def to_real(self, instant: datetime) -> datetime:
        """Give the real instant at which `instant` is shown, to the microsecond."""
        return (self.since + _scaled(instant - self.start, 1 / self.factor)).astimezone(UTC)

    def from_real(self, instant: datetime) -> datetime:
        """Give what is shown at a real instant, to the microsecond, within a century of its start."""
        shown = _scaled(instant - self.since, self.factor)
        return (self.start + min(HORIZON, max(-HORIZON, shown))).astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedClock:
    """A faster clock: ``shown = start + (real - since) * factor``, until it goes at another speed.

    It is a function of real time alone, so that a restarted process shows the same instants.
    then: from which instants on it goes by another factor, in their order.
    """

    start: datetime
    since: datetime
    factor: Fraction
    then: tuple[tuple[datetime, Fraction], ...] = ()
    real_now: Callable[[], datetime] = system_now
    _stretches: tuple[Stretch, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Lay the stretches one after the other."""
        stretches = [Stretch(start=self.start, since=self.since, factor=self.factor)]
        for start, factor in self.then:
            stretches.append(Stretch(start=start, since=stretches[-1].to_real(start), factor=factor))
        object.__setattr__(self, "_stretches", tuple(stretches))

    def now(self) -> datetime:
        """Read the present instant, aware, in UTC."""
        return self.from_real(self.real_now())

    def seconds_until(self, instant: datetime) -> float:
        """Give the real seconds until this clock shows an instant; 0 where it is past."""
        return max(0.0, (self.to_real(instant) - self.real_now()).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        """Give the real instant at which this clock shows ``instant``, to the microsecond."""
        return self.at(instant).to_real(instant)

    def from_real(self, instant: datetime) -> datetime:
        """Give what this clock shows at a real instant, to the microsecond, within a century of its start."""
        place = bisect_right(self._stretches, instant, lo=1, key=lambda stretch: stretch.since)
        return self._stretches[place - 1].from_real(instant)

    def at(self, instant: datetime) -> Stretch:
        """Give the stretch in which this clock shows ``instant``."""
        place = bisect_right(self._stretches, instant, lo=1, key=lambda stretch: stretch.start)
        return self._stretches[place - 1]

    def describe(self) -> str:
        """Say what clock it is, in few words however often its speed changes."""
        if not self.then:
            return self.written()
        factors = sorted(each.factor for each in self._stretches)
        speeds = f"{_plain(factors[0])}x to {_plain(factors[-1])}x"
        return f"{self.start.isoformat()}@{speeds},{_SINCE}{self.since.isoformat()}"

    def written(self) -> str:
        """Give all of it in the form that `parse_demo_clock` reads."""
        stretches = (f"{each.start.isoformat()}@{_plain(each.factor)}x" for each in self._stretches)
        return f"{','.join(stretches)},{_SINCE}{self.since.isoformat()}"


def parse_demo_clock(text: str, *, real_now: Callable[[], datetime] = system_now) -> AcceleratedClock:
    """Read ``START@FACTORx[,INSTANT@FACTORx...][,since=REAL]``: START was shown at the real instant REAL; default: now.

    Raises UsageError where it cannot be read, an instant has no offset or is not after the one before it, or a factor
    is not from 1 to 3600.
    """
    parts = text.strip().split(",")
    written_since = parts.pop().removeprefix(_SINCE) if parts[-1].startswith(_SINCE) else None
    (start, factor), *then = [_stretch(text, part) for part in parts] or [_stretch(text, "")]
    since = real_now() if written_since is None else _instant(text, "since", written_since)
    for (before, _), (after, _) in pairwise([(start, factor), *then]):
        if after <= before:
            raise UsageError(f"demo clock {text!r}: {after.isoformat()} is not after {before.isoformat()}")
    return AcceleratedClock(start=start, since=since, factor=factor, then=tuple(then), real_now=real_now)


def _stretch(text: str, part: str) -> tuple[datetime, Fraction]:
    match = _STRETCH.fullmatch(part)
    if match is None:
        raise UsageError(f"demo clock {text!r} cannot be read; write for example {DEMO_CLOCK_FORM}")
    factor = Fraction(match["factor"])
    if not 1 <= factor <= MAX_FACTOR:
        raise UsageError(f"demo clock {text!r}: the factor must be from 1x to {MAX_FACTOR}x")
    return _instant(text, "start", match["start"]), factor


def _instant(text: str, which: str, written: str) -> datetime:
    try:
        instant = datetime.fromisoformat(written.strip())
    except ValueError:
        raise UsageError(
            f"demo clock {text!r}: {which} {written!r} is no time; write for example {DEMO_CLOCK_FORM}"
        ) from None
    if instant.tzinfo is None:
        raise UsageError(f"demo clock {text!r}: {which} {written!r} needs an offset, such as +01:00 or Z")
    return instant


def _scaled(duration: timedelta, factor: Fraction) -> timedelta:
    return round(Fraction(duration // _MICROSECOND) * factor) * _MICROSECOND


def _plain(factor: Fraction) -> str:
    return str(Decimal(factor.numerator) / Decimal(factor.denominator))
