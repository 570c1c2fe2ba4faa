"""What a profile says, as rows of text: the same for the terminal and for pages.

In: a `Profile`, and what people wish of a plan. Out: rows and sentences. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo

from servingplan.planning.plan import WEEKDAYS
from servingplan.planning.units import format_rate
from servingplan.profiling.lengths import Lengths
from servingplan.profiling.manifests import Wishes, schedule_for, schedules_of
from servingplan.profiling.predictability import HELPS_FROM, Predictability, Verdict
from servingplan.profiling.profile import Profile, busiest_is_known
from servingplan.profiling.week import WeekSlot
from servingplan.profiling.windows import Schedule, capacity_of
from servingplan.reporting.local import DASH, short_date, weekday_spans

DAYS = 7
SCHEDULE_HEADS = ("Schedule", "days", "local time", "requests/s")
CHOICE_HEADS = ("windows", "hours a week", "against flat", "above them")
LENGTH_HEADS = ("Tokens a request", "p50", "p90", "p95", "p99", "mean", "longest")
FILE_HEADS = ("File", "read as", "lines", "counted", "broken")

_VERDICTS = {
    Verdict.SCHEDULE: "a schedule helps",
    Verdict.STEADY: "nearly constant: one base rate is enough, a schedule has nothing to follow",
    Verdict.FEEDBACK_ALONE: f"a schedule will not help (below {HELPS_FROM:g}): leave the rises to feedback",
    Verdict.TOO_SHORT: "too short a log to tell whether weeks are alike",
}


def title_words(profile: Profile) -> str:
    """``34.9 days, Mon 12 Oct to Sun 15 Nov 2026, Europe/Berlin``."""
    zone = ZoneInfo(profile.time_zone)
    first, last = profile.start.astimezone(zone), (profile.end - timedelta(seconds=1)).astimezone(zone)
    span = f"{profile.days:.1f} days" if profile.days >= 2 else f"{profile.days * 24:.1f} hours"
    year = f" {last.year}" if first.year == last.year else f" {first.year} to {last.year}"
    return f"{span}, {short_date(first.date())} to {short_date(last.date())}{year}, {zone.key}"


def demand_words(profile: Profile) -> str:
    """How many requests came, and when most."""
    words = f"{profile.requests:,.0f} requests, {rate_words(profile.mean_rate)}/s on average"
    peak = profile.peak
    if peak is None:
        return words
    what = "busiest five minutes" if busiest_is_known(profile) else f"busiest {profile.step_seconds / 60:g} minutes"
    return f"{words}; {what} {rate_words(peak.rate)}/s, {WEEKDAYS[peak.weekday]} {slot_words(peak)}"


def rate_words(rate: float) -> str:
    """A rate with three digits."""
    return f"{rate:,.3g}" if rate < 1000 else f"{rate:,.0f}"


def slot_words(slot: WeekSlot) -> str:
    """``08:00``."""
    return f"{slot.hour:02d}:{slot.minute:02d}"


def by_weekday(profile: Profile) -> tuple[tuple[WeekSlot, ...], ...]:
    """The week in seven rows; none where it has none."""
    width = len(profile.week) // DAYS
    return tuple(profile.week[i * width : (i + 1) * width] for i in range(DAYS)) if width else ()


def spread_words(slots: Sequence[WeekSlot]) -> str:
    """How far weeks are apart on a weekday: the median of (highest - lowest) over the rate."""
    several = sorted((slot.highest - slot.lowest) / slot.rate for slot in slots if slot.weeks > 1 and slot.rate)
    return f"±{several[len(several) // 2] / 2:.0%}" if several else DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRows:
    """A suggested schedule, what others would cost, and in which unit."""

    chosen: Schedule
    rows: tuple[tuple[str, ...], ...]
    choices: tuple[tuple[str, ...], ...]
    unit: str


def schedule_rows(profile: Profile, wishes: Wishes) -> ScheduleRows | None:
    """The schedule; None where the profile has no week."""
    if not profile.week:
        return None
    found = schedules_of(profile, None if wishes.capacity is None else capacity_of(wishes.capacity))
    chosen = schedule_for(profile, found, wishes)
    rows = [("base", "", "", format_rate(chosen.base))]
    rows += [
        (
            window.name,
            weekday_spans(window.days),
            f"{window.start:%H:%M}{DASH}{window.end:%H:%M}",
            format_rate(window.rate),
        )
        for window in chosen.windows
    ]
    flat = found.flat
    choices = [_choice("flat peak", flat, flat, 0.0)]
    choices += [_choice(str(len(s.windows)), s.hours, flat, s.short_hours) for s in found.by_windows]
    choices.append(_choice("every slot", found.followed, flat, 0.0))
    unit = "replica-hours of need" if wishes.capacity is not None else "requests/s x hours"
    return ScheduleRows(chosen=chosen, rows=tuple(rows), choices=tuple(choices), unit=unit)


def _choice(windows: str, hours: float, flat: float, short: float) -> tuple[str, str, str, str]:
    saved = f"{hours / flat - 1:+.0%}" if flat else ""
    return windows, f"{hours:,.0f}", saved, f"{short:g} h" if short else ""


def length_rows(profile: Profile) -> Iterator[tuple[str, ...]]:
    """Lengths of prompts and answers, where they are logged."""
    for side, lengths in (("input", profile.input), ("output", profile.output)):
        if lengths is not None:
            yield (side, *_lengths(lengths))


def _lengths(lengths: Lengths) -> tuple[str, ...]:
    counts = (lengths.p50, lengths.p90, lengths.p95, lengths.p99, lengths.mean, lengths.longest)
    return tuple(f"{count:,.0f}" for count in counts)


def predictability_words(found: Predictability) -> str:
    """What is known of the next week, and what follows."""
    parts = []
    if found.explained is not None:
        share = f"{found.explained:.0%}" if found.explained > 0 else "nothing"
        parts.append(f"the weeks before explain {share} of the last one's ups and downs")
    if found.level is not None:
        parts.append(f"and it had {found.level:.0%} of the requests that they led to expect")
    autocorrelations = [
        f"{value:.2f} at {hours} h"
        for hours, value in ((24, found.autocorrelation_24h), (168, found.autocorrelation_168h))
        if value is not None
    ]
    if autocorrelations:
        parts.append(f"autocorrelation {' and '.join(autocorrelations)}")
    verdict = _VERDICTS[found.verdict]
    return f"{', '.join(parts)}: {verdict}" if parts else verdict


def fact_lines(profile: Profile) -> Iterator[str]:
    """What else is known, a line each."""
    if profile.prefix_share is not None:
        yield f"{profile.prefix_share:.0%} of the prompt tokens repeat the beginning of a prompt of the hour before"
    if profile.dispersion is not None:
        yield f"within an hour, minutes vary {profile.dispersion:.3g} times as much as chance (variance over mean)"
    for what, shares in (("tenants", profile.tenants), ("priorities", profile.priorities)):
        if len(shares) > 1:
            yield f"{what}: " + ", ".join(f"{each.name} {each.share:.0%}" for each in shares[:5])
    if profile.deferrable:
        share = profile.deferrable / profile.requests
        yield f"{profile.deferrable:,.0f} requests can wait ({share:.0%}), as you stated"
    if profile.week and not busiest_is_known(profile):
        yield f"steps of {profile.step_seconds / 60:g} minutes are logged: five minutes inside them may be busier"
    unseen = sorted({slot.weekday for slot in profile.week if not slot.weeks})
    if unseen:
        yield f"parts of {weekday_spans(unseen)} were never logged: taken like the busiest weekday at that time"


def day_lines(profile: Profile) -> Iterator[str]:
    """Dates that were left out, and why."""
    for off in profile.days_off:
        name = f" ({off.name})" if off.name else ""
        yield f"{short_date(off.day)}{name}: a day off by its rate, {off.share:.0%} of the working days around it"
    for silence in profile.silences:
        hours = f"{_clock(silence.start)}{DASH}{_clock(silence.end)}"
        yield f"{short_date(silence.day)} {hours}: no request where all other weeks have many, so taken as not logged"


def _clock(hours: float) -> str:
    return f"{int(hours):02d}:{round(hours % 1 * 60):02d}"


def file_rows(profile: Profile) -> Iterator[tuple[str, ...]]:
    """How each file was read."""
    for file in profile.source.files:
        yield file.file, file.title, f"{file.lines:,}", f"{file.requests:,}", f"{file.broken:,}"


def reading_lines(profile: Profile) -> Iterator[str]:
    """What did not count, and what to know of how it was read."""
    for file in profile.source.files:
        for broken in file.examples:
            yield f"{broken.file}:{broken.line}: {broken.why}"
        if file.broken > len(file.examples):
            yield f"{file.file}: and {file.broken - len(file.examples):,} more broken lines"
        for why, count in file.passed:
            yield f"{file.file}: not counted: {count:,} {why}"
    yield from profile.source.remarks
