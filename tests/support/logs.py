"""Logs for tests: files that are read, and weeks of arrivals of a stated form."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from servingplan.cli.profile_input import PATHS
from servingplan.profiling.formats.format import Context, Format
from servingplan.profiling.instants import Instants
from servingplan.profiling.profile import Choices, Profile, Source, profile_of
from servingplan.profiling.reading import BROKEN_SHARE, LogReading
from servingplan.profiling.request import Logged
from servingplan.profiling.tally import Arrivals, Counted
from servingplan.profiling.week import Across

LOGS = Path(__file__).parents[1] / "data" / "logs"
BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 2, tzinfo=BERLIN)
"""A Monday without a holiday around it."""

Rate = Callable[[datetime], float]
"""Requests/s at a local time."""


def a_context(
    *,
    zone: ZoneInfo = BERLIN,
    start: datetime | None = None,
    columns: Mapping[str, str] | None = None,
    year: int | None = None,
) -> Context:
    """How lines are read, as the command line has it."""
    instants = Instants(zone=zone, start=start)
    return Context(instants=instants, columns=columns or {}, paths=re.compile(PATHS), year=year)


def read(
    *files: Path | str,
    context: Context | None = None,
    form: Format | None = None,
    standard_input: bytes = b"",
    broken_share: float = BROKEN_SHARE,
) -> tuple[list[Logged], LogReading]:
    """What files log, and how they were read."""
    reading = LogReading(
        [str(file) for file in files],
        context or a_context(),
        standard_input=io.BytesIO(standard_input),
        form=form,
        broken_share=broken_share,
    )
    return list(reading), reading


def arrivals(rate: Rate, *, start: datetime = MONDAY, days: float = 7, step: float = 60.0) -> Arrivals:
    """Arrivals that follow a rate exactly: its value at the beginning of each step."""
    zone = start.tzinfo
    first = start.astimezone(UTC)
    times = [first + timedelta(seconds=i * step) for i in range(round(days * 86400 / step))]
    counts = np.array([rate(time.astimezone(zone)) * step for time in times])
    return Arrivals(start=first.timestamp(), step=step, counts=counts)


def a_profile(
    found: Arrivals,
    *,
    zone: ZoneInfo = BERLIN,
    slot_minutes: int | None = 60,
    across: Across = Across.MEDIAN,
    holidays: Mapping[date, str] | None = None,
) -> Profile:
    """The profile of arrivals, about which nothing else is logged."""
    counted = Counted(
        arrivals=found,
        requests=float(np.nansum(found.counts)),
        deferrable=0,
        input=None,
        output=None,
        prefix_share=None,
        tenants=(),
        priorities=(),
    )
    choices = Choices(slot_minutes=slot_minutes, across=across, holidays=holidays or {})
    return profile_of(counted, Source(), zone, choices)


def office(off: Sequence[date] = (), *, day: float = 10.0, night: float = 1.0) -> Rate:
    """Working days from 8 to 18, and nothing much else."""

    def rate(local: datetime) -> float:
        works = local.weekday() < 5 and local.date() not in off
        return day if works and 8 <= local.hour < 18 else night

    return rate
