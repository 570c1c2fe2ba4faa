"""Findings as text: Markdown tables, for a terminal and for RESULTS.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from benchmarks.policy.contest import TARGET, Outcome
from benchmarks.policy.entrants import OURS
from benchmarks.policy.findings import Against, Figure, Row, against, baselines, rows


def told(outcome: Outcome, *, seed: int) -> Iterable[str]:
    """The lines of one case."""
    case = outcome.case
    friendly = np.flatnonzero(outcome.friendly)
    yield f"### Start {case.start_s} s, peak {case.peak}"
    yield ""
    if len(friendly):
        bound = outcome.bound[friendly].sum() / outcome.reference[friendly].sum()
        above = outcome.above[friendly].mean()
        hours = outcome.reference[friendly].sum()
        yield f"{len(friendly)} schedule-friendly tenants. A clairvoyant fleet costs {hours:.0f} replica-hours, the"
        yield f"fluid bound {bound:.2f} of that; {above:.0%} of requests come above the learned profile."
        yield ""
        yield from _table(rows(outcome, friendly, seed=seed))
        yield ""
        yield "Foresight over each baseline, each tenant's own setting in hindsight: " + _list(
            against(outcome, friendly, baselines(outcome), seed=seed)
        )
        yield ""
    for words, places in (("other", np.flatnonzero(~outcome.friendly)), ("all", np.arange(len(outcome.friendly)))):
        if len(places):
            yield f"The same on the {len(places)} {words} tenants: " + _list(
                against(outcome, places, baselines(outcome), seed=seed)
            )
            yield ""


def _table(found: dict[str, Row]) -> Iterable[str]:
    yield (
        f"| policy | cost at {TARGET:.1%} | best attainment | own settings in hindsight | first 15 minutes of rises "
        "| worst tenant | worst hour of the week | foresight's rises for the same hours "
        "| serving / reserve / starting / draining |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, row in found.items():
        bold = "**" if name == OURS else ""
        split = " / ".join(f"{share:.0%}" for share in row.split.values())
        yield (
            f"| {bold}{name}{bold} | {_told(row.cost)} | {row.best:.2%} | {_told(row.hindsight)} "
            f"| {row.rising:.1%} | {row.worst:.1%} | {row.worst_hour:.1%} | {row.ours_rising:.1%} | {split} |"
        )


def _told(figure: Figure) -> str:
    if math.isnan(figure.value):
        return "not reached"
    return f"{figure.value:.2f} ({_edge(figure.low)} to {_edge(figure.high)})"


def _edge(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "not reached"


def _list(found: Sequence[Against]) -> str:
    return "; ".join(f"{one.name} {_told(one.ratio)} at {one.attainment:.1%}" for one in found) + "."
