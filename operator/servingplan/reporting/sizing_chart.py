"""A sizing as pictures: the memory of one GPU, the replicas of the levels, options side by side.

In: a `Study`. Out: SVG, the same for the same study. Imported only where a picture is asked for: matplotlib takes a
second to load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from servingplan.hardware.accelerator import GIB
from servingplan.hardware.study import Choice, Option, Study, ranked
from servingplan.reporting.chart import SETTINGS, inline, saved

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES = 5.6
"""Narrow enough that its text can be read on a telephone."""

MOST_BARS = 12

_WEIGHTS, _MARGIN, _CACHE, _UNUSED = "#3b6ea5", "#d97706", "#2a7f62", "#a9b4b2"
_BASE, _MORE, _SPARE = "#2a7f62", "#d97706", "#a9b4b2"


def memory_chart(choices: Sequence[Choice]) -> str:
    """One GPU of each choice: weights, margins, cache, and what vLLM may not take."""
    return _svg(0.9 + 0.55 * len(choices), lambda axes: _draw_memory(axes, choices))


def _draw_memory(axes: Axes, choices: Sequence[Choice]) -> None:
    names = [
        f"{choice.replica.model.name}\n{choice.replica.accelerator.name}, {choice.replica.layout}" for choice in choices
    ]
    left = [0.0] * len(choices)
    for label, colour, sizes in (
        ("weights", _WEIGHTS, [choice.replica.memory.weights for choice in choices]),
        ("margins", _MARGIN, [choice.replica.memory.margins.total for choice in choices]),
        ("KV cache", _CACHE, [choice.replica.memory.cache for choice in choices]),
        ("left free", _UNUSED, [c.replica.accelerator.memory - c.replica.memory.allowed for c in choices]),
    ):
        widths = [size / GIB for size in sizes]
        axes.barh(names, widths, left=left, color=colour, label=label, height=0.6)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("GiB of one GPU")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, handlelength=1, columnspacing=1)


def levels_chart(choice: Choice) -> str:
    """Replicas that each level needs, and what is bought."""
    return _svg(2.6, lambda axes: _draw_levels(axes, choice))


def _draw_levels(axes: Axes, choice: Choice) -> None:
    names = [*(need.level.value for need in choice.needs), "bought"]
    for place, need in enumerate(choice.needs):
        carried = need.replicas - need.lost
        axes.bar(place, carried, color=_BASE, width=0.55)
        axes.bar(place, need.lost, bottom=carried, color=_MORE, width=0.55, hatch="//", edgecolor="white")
        axes.text(place, need.replicas, f"{need.replicas}", ha="center", va="bottom")
    last = len(choice.needs)
    axes.bar(last, choice.required, color=_BASE, width=0.55, label="carries the level")
    axes.bar(last, 0, color=_MORE, hatch="//", edgecolor="white", label="may be gone")
    axes.bar(last, choice.spare, bottom=choice.required, color=_SPARE, width=0.55, label="canary, evaluation")
    axes.text(last, choice.replicas, f"{choice.replicas}", ha="center", va="bottom")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0, choice.replicas * 1.2 + 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("replicas")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, handlelength=1, columnspacing=1)


def comparison_chart(found: Study) -> str:
    """What the best options take: cost a month where all have a price, else GPUs."""
    options = [option for option in ranked(found) if option.choice is not None][:MOST_BARS]
    return _svg(0.8 + 0.34 * len(options), lambda axes: _draw_comparison(axes, options, found))


def _draw_comparison(axes: Axes, options: Sequence[Option], found: Study) -> None:
    names = [f"{option.model.name} on {option.accelerator.name}" for option in options]
    costs = [option.choice.monthly_cost for option in options if option.choice is not None]
    gpus = [float(option.choice.gpus) for option in options if option.choice is not None]
    priced = [cost for cost in costs if cost is not None]
    values = priced if len(priced) == len(options) else gpus
    colours = [_CACHE if option is found.best else _UNUSED for option in options]
    axes.barh(names, values, color=colours, height=0.65)
    for row, value in enumerate(values):
        axes.text(value, row, f" {value:,.0f}", va="center")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, max(values) * 1.15)
    axes.set_xlabel("cost a month" if values is priced else "GPUs")


def _svg(height: float, draw: Callable[[Axes], None]) -> str:
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        draw(figure.subplots())
        return inline(saved(figure, "svg"))
