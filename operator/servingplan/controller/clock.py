"""The operator's clock: the system's, or a faster one for demo and tests.

In: real time. Out: the instant that schedules are evaluated at, and how long to sleep until another one. Only
`controller.app` makes a clock; everything else is given one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from servingplan.errors import UsageError

MAX_FACTOR = 600
"""Above this a demo's minute is shorter than one request to the API server takes."""

HORIZON = timedelta(days=36525)
"""Objects may be years old when a demo begins: what would be shown further away than a century is shown there."""

DEMO_CLOCK_FORM = "2026-12-01T06:30:00+01:00@60x,since=2026-11-29T20:00:00Z"

_DEMO_CLOCK = re.compile(r"(?P<start>[^@]+)@(?P<factor>[0-9]+(?:\.[0-9]+)?)x(?:,since=(?P<since>.+))?")
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
class AcceleratedClock:
    """A faster clock: ``shown = start + (real - since) * factor``.

    It is a function of real time alone, so that a restarted process shows the same instants.
    """

    start: datetime
    since: datetime
    factor: Fraction
    real_now: Callable[[], datetime] = system_now

    def now(self) -> datetime:
        """Read the present instant, aware, in UTC."""
        return self.from_real(self.real_now())

    def seconds_until(self, instant: datetime) -> float:
        """Give the real seconds until this clock shows an instant; 0 where it is past."""
        return max(0.0, (self.to_real(instant) - self.real_now()).total_seconds())

    def to_real(self, instant: datetime) -> datetime:
        """Give the real instant at which this clock shows ``instant``, to the microsecond."""
        return (self.since + _scaled(instant - self.start, 1 / self.factor)).astimezone(UTC)

    def from_real(self, instant: datetime) -> datetime:
        """Give what this clock shows at a real instant, to the microsecond, within a century of its start."""
        shown = _scaled(instant - self.since, self.factor)
        return (self.start + min(HORIZON, max(-HORIZON, shown))).astimezone(UTC)

    def describe(self) -> str:
        """Say what clock it is, in the form that `parse_demo_clock` reads."""
        return f"{self.start.isoformat()}@{_plain(self.factor)}x,since={self.since.isoformat()}"


def parse_demo_clock(text: str, *, real_now: Callable[[], datetime] = system_now) -> AcceleratedClock:
    """Read ``START@FACTORx[,since=REAL]``: the clock showed START at the real instant REAL (default: now).

    Raises UsageError where it cannot be read, an instant has no offset, or the factor is not from 1 to 600.
    """
    match = _DEMO_CLOCK.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"demo clock {text!r} cannot be read; write for example {DEMO_CLOCK_FORM}")
    factor = Fraction(match["factor"])
    if not 1 <= factor <= MAX_FACTOR:
        raise UsageError(f"demo clock {text!r}: the factor must be from 1x to {MAX_FACTOR}x")
    since = real_now() if match["since"] is None else _instant(text, "since", match["since"])
    start = _instant(text, "start", match["start"])
    return AcceleratedClock(start=start, since=since, factor=factor, real_now=real_now)


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
