"""The cells of what people read: the same words and figures in the terminal and on the page.

In: outlooks. Out: tuples of text. Knows no layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time, timedelta

from servingplan.planning.units import format_duration, format_rate
from servingplan.reporting.hours import GpuHours
from servingplan.reporting.local import DASH, clock_time, dates_in_words, short_date
from servingplan.reporting.outlook import LevelShare, Outlook, Usual, levels, moves, usual

LevelRow = tuple[str, str, str, str, str, str]
MoveRow = tuple[str, str, str, str]
HourRow = tuple[str, str, str, str]


def level_rows(outlook: Outlook) -> tuple[LevelRow, ...]:
    """Who asks, demand, need, reserve, replicas, hours."""
    return tuple(_level_row(share) for share in levels(outlook))


def _level_row(share: LevelShare) -> LevelRow:
    limited = f" (of {share.unbounded}: bounds)" if share.unbounded != share.replicas else ""
    return (
        str(share.source),
        _demand(share),
        str(share.need),
        f"+ {share.reserve}",
        f"= {share.replicas}{limited}",
        f"{share.time.total_seconds() / 3600:,.4g}",
    )


def _demand(share: LevelShare) -> str:
    if share.slowest is None or share.fastest is None:
        return "stated"
    if share.slowest == share.fastest:
        return f"{format_rate(share.fastest)}/s"
    return f"{format_rate(share.slowest)}{DASH}{format_rate(share.fastest)}/s"


def move_rows(outlook: Outlook) -> tuple[MoveRow, ...]:
    """Local time, replicas, why, on which days."""
    return usual_rows(usual(moves(outlook), outlook), outlook)


def usual_rows(found: Sequence[Usual], outlook: Outlook) -> tuple[MoveRow, ...]:
    """The same for moves that are given."""
    return tuple(_move_row(group, outlook) for group in found)


def _move_row(group: Usual, outlook: Outlook) -> MoveRow:
    move, zone = group.first, outlook.plan.zone
    when, why = clock_time(move.start, zone), move.because
    if move.end > move.start:
        when += f"{DASH}{clock_time(move.end, zone)}"
    if move.ready_by is not None and move.ready_by > move.start:
        why += f" at {clock_time(move.ready_by, zone)}"
    return when, f"{move.before} → {move.after}", why, dates_in_words(group.dates)


def hour_rows(outlook: Outlook) -> tuple[HourRow, ...]:
    """Name, GPU-hours of the outlook, of a nominal month, and what they are."""
    hours, month, lead = outlook.hours, outlook.month, format_duration(outlook.course.lead)
    gpus = hours.gpus_per_replica
    return (
        ("required", *_both(hours.required, month.required), f"at {gpus} GPU{'s' * (gpus > 1)} a replica"),
        ("+ lead", *_both(hours.leading, month.leading), f"asked for {lead} before it is required"),
        ("+ trail", *_both(hours.trailing, month.trailing), "stepping down"),
        ("= planned", *_both(hours.planned, month.planned), ""),
        ("flat peak", *_both(hours.flat_peak, month.flat_peak), "the largest level round the clock"),
        ("saved", saved(hours), saved(month), ""),
        *_costs(outlook),
    )


def _costs(outlook: Outlook) -> tuple[HourRow, ...]:
    """What they cost, where a price is given."""
    if outlook.gpu_hour is None:
        return ()
    price, hours, month = float(outlook.gpu_hour), outlook.hours, outlook.month
    return (
        ("cost", *_money(price, hours.planned, month.planned), f"at {outlook.gpu_hour} a GPU-hour"),
        ("cost of flat peak", *_money(price, hours.flat_peak, month.flat_peak), ""),
    )


def _money(price: float, hours: float, month: float) -> tuple[str, str]:
    return f"{price * hours:,.2f}", f"{price * month:,.2f}"


def _both(hours: float, month: float) -> tuple[str, str]:
    return f"{hours:,.1f}", f"{month:,.1f}"


def saved(hours: GpuHours) -> str:
    """What is saved against the flat peak."""
    return f"{hours.saved_percent:.1f} %"


def title_words(outlook: Outlook) -> str:
    """``Tue 1 Dec 2026, 14 days, Europe/Berlin``."""
    zone = outlook.plan.zone
    start = outlook.start.astimezone(zone)
    clock = "" if start.time() == time.min else f" {clock_time(outlook.start, zone)}"
    days = round((outlook.end - outlook.start) / timedelta(days=1))
    return f"{short_date(start.date())} {start.year}{clock}, {days} day{'' if days == 1 else 's'}, {zone.key}"
