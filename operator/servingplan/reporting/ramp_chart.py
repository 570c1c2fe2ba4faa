"""A ramp as a picture: rate against goodput, TTFT, in-flight requests, KV use and preemptions.

In: a kept ramp. Out: SVG or PNG bytes, the same for the same ramp. Imported only where a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from servingplan.benchmarking.level import Level, Verdict
from servingplan.benchmarking.record import Kept
from servingplan.benchmarking.run import Seen
from servingplan.reporting.chart import SETTINGS, saved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES, HEIGHT_INCHES = 9, 9

_COLOURS = {Verdict.PASS: "#2a7f62", Verdict.FAIL: "#c0392b", Verdict.UNDECIDED: "#d97706", Verdict.OPEN: "#9a9a9a"}
_LINE = "#3b6ea5"


def ramp_chart(kept: Kept, form: str) -> bytes:
    """The picture as ``svg`` or ``png``."""
    finding = kept.finding
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        goodput, ttft, flight, memory = figure.subplots(4, 1, sharex=True, height_ratios=(3, 2, 2, 2))
        _goodput(goodput, finding.levels, kept.ramp.criteria[0].target)
        _line(ttft, finding.levels, lambda seen: None if seen.ttft is None else seen.ttft.p95, "TTFT p95 (s)")
        if (limit := kept.asked.objectives.ttft) is not None:
            ttft.axhline(limit.limit.total_seconds(), color="#9a9a9a", linestyle=(0, (4, 3)), linewidth=1)
        _line(flight, finding.levels, lambda seen: seen.in_flight_mean, "in flight")
        _memory(memory, finding.levels)
        memory.set_xlabel("requests/s")
        if finding.capacity is not None:
            for axes in (goodput, ttft, flight, memory):
                axes.axvspan(finding.capacity, finding.failing or finding.capacity, color="#2a7f62", alpha=0.12)
        found = "no capacity" if finding.capacity is None else f"capacity {finding.capacity:g}/s"
        found += "" if finding.capacity is None or finding.failing is None else f", below {finding.failing:g}/s"
        figure.suptitle(f"{kept.fingerprint.model}   {found}", fontsize=12, fontweight="bold")
        return saved(figure, form)


def _goodput(axes: Axes, levels: tuple[Level, ...], target: float) -> None:
    for verdict in Verdict:
        shown = [level for level in levels if level.verdict is verdict and level.bounds]
        if shown:
            shares = [level.bounds[0].share for level in shown]
            below = [level.bounds[0].share - level.bounds[0].lower for level in shown]
            above = [level.bounds[0].upper - level.bounds[0].share for level in shown]
            rates = [level.rate for level in shown]
            colour = _COLOURS[verdict]
            axes.errorbar(rates, shares, yerr=(below, above), fmt="o", color=colour, capsize=3, label=verdict.value)
    axes.axhline(target, color="#9a9a9a", linestyle=(0, (4, 3)), linewidth=1)
    axes.set_ylabel("good, of those sent")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, ncols=4, loc="lower left")


def _line(axes: Axes, levels: tuple[Level, ...], value: Callable[[Seen], float | None], label: str) -> None:
    rates, means = _means(levels, value)
    axes.plot(rates, means, "o-", color=_LINE, linewidth=1.2, markersize=4)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)


def _memory(axes: Axes, levels: tuple[Level, ...]) -> None:
    rates, means = _means(levels, lambda seen: None if seen.engine is None else seen.engine.kv_p90)
    axes.plot(rates, means, "o-", color=_LINE, linewidth=1.2, markersize=4)
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("KV cache, p90", color=_LINE)
    beside = axes.twinx()
    rates, means = _means(levels, lambda seen: None if seen.engine is None else seen.engine.preemptions)
    beside.plot(rates, means, "x--", color=_COLOURS[Verdict.FAIL], linewidth=1, markersize=5)
    beside.set_ylabel("preemptions a run", color=_COLOURS[Verdict.FAIL])
    beside.set_ylim(0, max(1.0, 1.05 * max(means, default=0.0)))
    beside.grid(visible=False)


def _means(levels: tuple[Level, ...], value: Callable[[Seen], float | None]) -> tuple[list[float], list[float]]:
    """By rate, over the runs that count."""
    rates, means = [], []
    for level in levels:
        found = [number for one in level.seen if (number := value(one)) is not None]
        if found:
            rates.append(level.rate)
            means.append(float(np.mean(found)))
    return rates, means
