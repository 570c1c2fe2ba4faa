"""A plan's coming days as a picture: demand above, required and asked-for replicas below.

In: an outlook. Out: SVG or PNG bytes, the same for the same outlook. Imported only where a picture is asked for:
matplotlib takes a second to load.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import matplotlib as mpl
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from servingplan.planning.demand import Requirement
from servingplan.planning.series import StepFunction
from servingplan.reporting.local import dates_of, short_date
from servingplan.reporting.outlook import Outlook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES, HEIGHT_INCHES, DOTS_PER_INCH = 11, 5.2, 144

_REQUIRED, _ASKED, _DEMAND, _FLAT = "#2a7f62", "#d97706", "#3b6ea5", "#9a9a9a"

SETTINGS: Any = {
    # Text stays text, and element ids do not differ from run to run.
    "svg.fonttype": "none",
    "svg.hashsalt": "servingplan",
    "font.family": "sans-serif",
    "font.size": 10,
    # A name may hold a dollar sign.
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
}


def chart(outlook: Outlook, form: str) -> bytes:
    """The picture as ``svg`` or ``png``."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        _draw_demand(above, outlook)
        _draw_replicas(below, outlook)
        zone = outlook.plan.zone
        locator = AutoDateLocator(tz=zone)  # type: ignore[no-untyped-call] # matplotlib has no types here
        below.xaxis.set_major_locator(locator)
        below.xaxis.set_major_formatter(date_formatter(locator, zone))
        below.set_xlim(outlook.start, outlook.end)
        days = dates_of(outlook.start, outlook.end, zone)
        first, last = short_date(days[0]), short_date(days[-1])
        figure.suptitle(f"{outlook.plan.key}   {first} to {last}, {zone.key}", fontsize=12, fontweight="bold")
        return saved(figure, form)


def saved(figure: Figure, form: str) -> bytes:
    """A figure as ``svg`` or ``png``, without what differs from run to run. To be called within `SETTINGS`."""
    target = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    figure.savefig(target, format=form, dpi=DOTS_PER_INCH, metadata=metadata)
    return target.getvalue()


def inline(svg: bytes) -> str:
    """A picture for a page: without the prolog of a document of its own."""
    text = svg.decode()
    return text[text.index("<svg") :]


def date_formatter(locator: AutoDateLocator, zone: ZoneInfo) -> ConciseDateFormatter:
    """Days with their weekday, as a schedule names them; months and years where they begin."""
    return ConciseDateFormatter(  # type: ignore[no-untyped-call] # matplotlib has no types here
        locator,
        tz=zone,
        formats=["%Y", "%b", "%a %d", "%H:%M", "%H:%M", "%H:%M:%S"],
        zero_formats=["", "%Y", "%a %d %b", "%a %d", "%H:%M", "%H:%M"],
        show_offset=False,
    )


def _draw_demand(axes: Axes, outlook: Outlook) -> None:
    rates = [
        (piece.start, float("nan") if piece.value.rate is None else float(piece.value.rate))
        for piece in outlook.course.required.pieces()
    ]
    times, values = [time for time, _ in rates] + [outlook.end], [rate for _, rate in rates]
    axes.fill_between(_numbers(times), [*values, values[-1]], step="post", color=_DEMAND, alpha=0.18, linewidth=0)
    axes.step(_numbers(times), [*values, values[-1]], where="post", color=_DEMAND, linewidth=1.4)
    axes.set_ylabel("demand (requests/s)")
    axes.set_ylim(bottom=0)


def _draw_replicas(axes: Axes, outlook: Outlook) -> None:
    found = outlook.course
    required = found.required
    times = _numbers([*required.times, required.end])
    # The need may change where the total does not: what is drawn follows both.
    need, total = ([*values, values[-1]] for values in need_and_total(required.values))
    axes.fill_between(times, need, step="post", color=_REQUIRED, alpha=0.45, linewidth=0, label="need")
    axes.fill_between(times, total, need, step="post", color=_REQUIRED, alpha=0.2, linewidth=0, label="reserve")
    times, replicas = _steps(found.asked_function)
    axes.step(times, replicas, where="post", color=_ASKED, linewidth=1.4, label="asked: lead and trail included")
    peak = max(total)
    axes.axhline(peak, color=_FLAT, linewidth=1, linestyle=(0, (4, 3)), label="flat peak")
    axes.set_ylabel("replicas")
    axes.set_ylim(0, max(1, peak, *replicas) * 1.25)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="upper right", ncols=4, frameon=False)


def need_and_total(values: Sequence[Requirement]) -> tuple[list[int], list[int]]:
    """What is needed and what is required with the reserve, for each piece of a course."""
    return [value.need for value in values], [value.replicas for value in values]


def _steps(function: StepFunction[int]) -> tuple[list[Any], list[int]]:
    return _numbers([*function.times, function.end]), [*function.values, function.values[-1]]


def _numbers(times: list[datetime]) -> list[Any]:
    # matplotlib converts datetimes itself; its types only know numbers.
    return list(times)
