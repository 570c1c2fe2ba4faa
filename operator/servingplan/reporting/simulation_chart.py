"""A simulation as pictures: demand and the replicas of each policy over time, and attainment by hour of the week.

In: a `Simulated`. Out: SVG, the same for the same simulation. Imported only where a picture is asked for: matplotlib
takes a second to load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.dates import AutoDateLocator
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from servingplan.planning.plan import WEEKDAYS
from servingplan.reporting.chart import SETTINGS, WIDTH_INCHES, date_formatter, inline, saved
from servingplan.reporting.simulation import Simulated
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.comparison import Result
from servingplan.simulation.trace import planned_rates
from servingplan.simulation.workload import WEEK_HOURS
from servingplan.simulation.world import RATE_STEP_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_READY, _NEED, _DEMAND, _PLANNED = "#2a7f62", "#3b6ea5", "#3b6ea5", "#d97706"
_GOOD, _FAIR, _POOR = "#2a7f62", "#d97706", "#c0392b"
FINE, ENOUGH = 0.995, 0.95
"""From which attainment on an hour is green, and amber."""

_DEMAND_INCHES, _ROW_INCHES, _WEEK_ROW_INCHES = 1.5, 0.75, 0.5
_FEWEST_BINS = 300
"""A short trace is drawn by the slice, a long one by ten minutes or more."""

_MOST_BINS = 1100

_PATH, _DIGITS = re.compile(r' d="[^"]*"'), re.compile(r"(\.\d\d)\d+")


def course_chart(found: Simulated) -> str:
    """Demand against the plan, and below it each policy: what serves, what is needed, and where requests are missed."""
    results = found.comparison.results
    height = _DEMAND_INCHES + _ROW_INCHES * len(results) + 0.6
    bins = _Bins(found)
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        ratios = (_DEMAND_INCHES, *(_ROW_INCHES for _ in results))
        above, *rows = figure.subplots(1 + len(results), 1, sharex=True, height_ratios=ratios)
        _draw_demand(above, found, bins)
        most = max(float(result.played.held.max()) for result in results)
        for axes, result in zip(rows, results, strict=True):
            _draw_replicas(axes, result, bins, most)
        _draw_dates(rows[-1], found)
        figure.legend(handles=_legend(), loc="outside lower left", ncols=4, frameon=False)
        return _short(inline(saved(figure, "svg")))


def _short(svg: str) -> str:
    """With the coordinates of paths to a hundredth of a point: nobody sees more, and most of a picture is digits."""
    return _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), svg)


class _Bins:
    """Slices put together, so that a picture stays small: whole ones from the first that counts on."""

    def __init__(self, found: Simulated) -> None:
        trace = found.trace
        self.first = trace.index(found.start)
        slices = len(trace.requests) - self.first
        self.width = 1 if slices <= _FEWEST_BINS else max(RATE_STEP_S // SLICE_S, -(-slices // _MOST_BINS))
        self.count = slices // self.width
        self.requests = trace.requests * found.comparison.world.judged
        self.edges = [trace.at(self.first + i * self.width) for i in range(self.count + 1)]
        unit_rps = float(found.plan.capacity.points[-1].requests_per_second)
        self.need = self.mean(trace.requests) / (SLICE_S * unit_rps)

    def _folded(self, values: Floats) -> Floats:
        return values[self.first : self.first + self.count * self.width].reshape(self.count, self.width)

    def mean(self, values: Floats) -> Floats:
        """The mean of each bin."""
        return np.asarray(self._folded(values).mean(axis=1))

    def least(self, values: Floats) -> Floats:
        """The least of each bin."""
        return np.asarray(self._folded(values).min(axis=1))

    def attainment(self, good: Floats) -> Floats:
        """The share of good requests in each bin; 1 where there are none."""
        asked = self._folded(self.requests).sum(axis=1)
        met = self._folded(self.requests * good).sum(axis=1)
        return np.asarray(np.divide(met, asked, out=np.ones(self.count), where=asked > 0))


def _draw_demand(axes: Axes, found: Simulated, bins: _Bins) -> None:
    rates = bins.mean(found.trace.requests) / SLICE_S
    planned = bins.mean(planned_rates(found.plan, found.trace.start, len(found.trace.requests)))
    axes.fill_between(*_stepped(bins.edges, rates), step="post", color=_DEMAND, alpha=0.25, linewidth=0)
    axes.step(*_stepped(bins.edges, rates), where="post", color=_DEMAND, linewidth=1)
    axes.step(*_stepped(bins.edges, planned), where="post", color=_PLANNED, linewidth=1.2)
    axes.set_ylabel("requests/s")
    axes.set_ylim(0, max(float(rates.max()), float(planned.max())) * 1.08)


def _draw_replicas(axes: Axes, result: Result, bins: _Bins, most: float) -> None:
    """What serves; below it, what is missed, in red as high as the share that is."""
    ready = bins.least(result.played.ready[:, 0, 0].astype(np.float64))
    missed = 1 - bins.attainment(result.played.good[:, 0, 0].astype(np.float64))
    axes.fill_between(*_stepped(bins.edges, ready), step="post", color=_READY, alpha=0.45, linewidth=0)
    axes.fill_between(*_stepped(bins.edges, missed * most * 1.15), step="post", color=_POOR, alpha=0.75, linewidth=0)
    axes.step(*_stepped(bins.edges, bins.need), where="post", color=_NEED, linewidth=0.8)
    axes.set_ylim(0, most * 1.15)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=2))
    axes.set_title(result.entrant.title, loc="left", fontsize=10, pad=2)


def _draw_dates(axes: Axes, found: Simulated) -> None:
    locator = AutoDateLocator(tz=found.plan.zone)  # type: ignore[no-untyped-call] # matplotlib has no types here
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(date_formatter(locator, found.plan.zone))
    limits: list[Any] = [found.start, found.trace.end]
    axes.set_xlim(*limits)


def _legend() -> list[Patch]:
    return [
        Patch(color=_DEMAND, alpha=0.6, label="demand, and what it needs"),
        Patch(color=_PLANNED, label="planned"),
        Patch(color=_READY, alpha=0.45, label="replicas that serve"),
        Patch(color=_POOR, alpha=0.75, label="share that is missed"),
    ]


def _stepped(edges: Sequence[datetime], values: Floats) -> tuple[Any, Any]:
    """The steps alone, without what lies on them: a fortnight has few of most things."""
    steps = np.flatnonzero(np.concatenate([[True], np.diff(values) != 0])).tolist()
    # matplotlib converts datetimes itself; its types only know numbers.
    return [*(edges[i] for i in steps), edges[-1]], [*values[steps].tolist(), float(values[-1])]


def week_chart(found: Simulated) -> str:
    """Attainment by hour of the week: a row of bars for each policy, full where every request was good."""
    results = found.comparison.results
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, 0.9 + _WEEK_ROW_INCHES * len(results)), layout="constrained")
        rows = np.atleast_1d(figure.subplots(len(results), 1, sharex=True))
        for axes, result in zip(rows, results, strict=True):
            _draw_week(axes, result)
        rows[-1].set_xlim(0, WEEK_HOURS)
        rows[-1].set_xticks([24 * day for day in range(7)], list(WEEKDAYS), ha="left")
        words = ((_GOOD, f"from {100 * FINE:g} %"), (_FAIR, f"from {100 * ENOUGH:g} %"), (_POOR, "below"))
        handles = [Patch(color=colour, label=label) for colour, label in words]
        figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False)
        return inline(saved(figure, "svg"))


def _draw_week(axes: Axes, result: Result) -> None:
    weekly, edges = result.recorded.weekly, np.arange(WEEK_HOURS + 1)
    for lowest, below, colour in ((FINE, np.inf, _GOOD), (ENOUGH, FINE, _FAIR), (0, ENOUGH, _POOR)):
        bars = np.where((weekly >= lowest) & (weekly < below), weekly, 0.0)
        axes.fill_between(edges, [*bars.tolist(), 0.0], step="post", color=colour, linewidth=0)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([])
    axes.set_title(result.entrant.title, loc="left", fontsize=10, pad=2)
