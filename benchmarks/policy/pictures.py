"""Pictures of a contest: cost against attainment, for all tenants and for the friendly ones; and rises by cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from benchmarks.policy.contest import Outcome
from benchmarks.policy.entrants import OURS
from benchmarks.policy.findings import tuned
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HIGHEST_COST = 4.0
"""Above it a policy is too dear to be looked at."""

mpl.rcParams["svg.hashsalt"] = "servingplan"


def draw(outcomes: Sequence[Outcome], folder: Path) -> None:
    """`friendly.svg`, `all.svg` and `rises.svg`: one panel for each case."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = min(3, len(outcomes))
    for name, everybody, rising in (("friendly", False, False), ("all", True, False), ("rises", False, True)):
        figure = Figure(figsize=(4.2 * columns, 3.4 * -(-len(outcomes) // 3) + 0.5), layout="constrained")
        panels = figure.subplots(-(-len(outcomes) // 3), columns, squeeze=False).ravel()
        for panel, outcome in zip(panels, outcomes, strict=False):
            _panel(panel, outcome, everybody=everybody, rising=rising)
        for panel in panels[len(outcomes) :]:
            panel.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(5, 2 * columns), fontsize=8, frameon=False)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def _panel(panel: Axes, outcome: Outcome, *, everybody: bool, rising: bool) -> None:
    places = np.flatnonzero(outcome.friendly | everybody)
    reference = outcome.reference[places].sum()
    for name, standing in outcome.standings.items():
        kept = tuned(standing, places)
        cost = standing.hours[kept][:, places].sum(axis=1) / reference
        share = (standing.rising if rising else standing.attainment)[kept][:, places]
        missed = 100 * (1 - np.nanmean(share, axis=1))
        order, ours = np.argsort(cost), name == OURS
        look = {"color": "black", "linewidth": 2.2, "zorder": 3} if ours else {"linewidth": 1, "zorder": 2}
        panel.plot(cost[order], missed[order], label=name, marker=".", **look)
    if not rising:
        panel.axhline(0.5, color="grey", linewidth=0.6, linestyle=":")
    panel.set(xlim=(1, HIGHEST_COST), ylim=(0.1, 40), yscale="log", xlabel="replica-hours over the clairvoyant fleet")
    panel.set_ylabel("missed in the first 15 minutes of rises, %" if rising else "missed requests, %")
    panel.set_title(f"start {outcome.case.start_s} s, peak {outcome.case.peak}", fontsize=10)
