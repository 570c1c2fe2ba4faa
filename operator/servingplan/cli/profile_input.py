"""Logs of the command line, and the profile of what they hold.

In: paths and flags as typed. Out: a `Profile`, or an InputError that says which file, which line and what to do.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from servingplan.cli.instants import now, parse_instant
from servingplan.cli.profile_options import holiday_names, named_values
from servingplan.errors import UsageError
from servingplan.profiling.formats.catalogue import FORMATS
from servingplan.profiling.formats.format import Context, Format
from servingplan.profiling.instants import Instants
from servingplan.profiling.profile import Choices, Profile, Source, profile_of
from servingplan.profiling.reading import LogReading
from servingplan.profiling.tally import MINUTE, Counted, Tally
from servingplan.profiling.week import HOUR, TEN_MINUTES, Across

if TYPE_CHECKING:
    from collections.abc import Sequence

PATHS = (
    r"/(completions|responses|messages|embeddings|pooling|classify|rerank|score|generate|transcriptions|translations)"
    r"(\?|$)"
)
"""What asks an engine for tokens, or for work of that kind."""

_MEANINGS = ("time", "input", "output", "tenant", "priority", "blocks", "status", "method", "path", "rate")
_LATE = ("tenant", "priority")
SLOTS = {"hour": HOUR, "10m": TEN_MINUTES}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlags:
    """How logs are to be read. broken: per cent of lines; paths: `PATHS` where None. Everything else as typed."""

    time_zone: str
    log_time_zone: str | None = None
    start: str | None = None
    year: int | None = None
    form: str | None = None
    columns: tuple[str, ...] = ()
    paths: str | None = None
    broken: float = 1.0
    deferrable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekFlags:
    """How the week is to be made. holidays: as typed."""

    slot: str | None = None
    across: str = Across.MEDIAN.value
    holidays: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What logs hold, and how they were read."""

    counted: Counted
    source: Source
    zone: ZoneInfo


def read_logs(files: Sequence[str], log: LogFlags, *, width: int = MINUTE) -> Logs:
    """Count what the files log, single requests by `width` seconds. Raises InputError and UsageError."""
    zone = zone_of(log.time_zone, "--time-zone")
    log_zone = zone if log.log_time_zone is None else zone_of(log.log_time_zone, "--log-time-zone")
    start = None if log.start is None else parse_instant(log.start, log_zone, "--start", after=now())
    columns = {meaning: names[-1] for meaning, names in named_values("--column", log.columns, _MEANINGS).items()}
    late = {what: frozenset(values) for what, values in named_values("--deferrable", log.deferrable, _LATE).items()}
    instants = Instants(zone=log_zone, start=start)
    context = Context(instants=instants, columns=columns, paths=_pattern(log.paths or PATHS), year=log.year)
    reading = LogReading(
        files, context, standard_input=sys.stdin.buffer, form=_format(log.form), broken_share=log.broken / 100
    )
    tally = Tally(late, width=width)
    tally.add(reading)
    remarks = []
    if instants.naive:
        remarks.append(f"{instants.naive:,} times have no offset and were read as {log_zone.key} (--log-time-zone)")
    if late:
        told = ", ".join(log.deferrable)
        remarks.append(f"requests with {told} can wait: they are counted, and in no rate of the week")
    source = Source(files=tuple(reading.files), remarks=tuple(remarks))
    return Logs(counted=tally.counted, source=source, zone=zone)


def profile_from_logs(files: Sequence[str], log: LogFlags, week: WeekFlags) -> Profile:
    """The profile of everything that the files log. Raises InputError and UsageError."""
    found = read_logs(files, log)
    first_year = datetime.fromtimestamp(found.counted.arrivals.start, found.zone).year
    return profile_of(found.counted, found.source, found.zone, choices(week, first_year))


def choices(week: WeekFlags, first_year: int) -> Choices:
    """What is chosen for the week."""
    return Choices(
        slot_minutes=None if week.slot is None else SLOTS[week.slot],
        across=Across(week.across),
        holidays=holiday_names(week.holidays, first_year),
    )


def zone_of(name: str, option: str) -> ZoneInfo:
    """The zone of that name. Raises UsageError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"{option} {name!r} is no time zone: write one of the IANA names, as Europe/Berlin") from None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--path {text!r} is no regular expression: {error}") from None


def _format(name: str | None) -> Format | None:
    if name is None:
        return None
    if name not in FORMATS:
        raise UsageError(f"--format {name!r} is not known; there are: {', '.join(FORMATS)}")
    return FORMATS[name]
