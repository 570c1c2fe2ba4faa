"""Few windows that cover an ordinary week: a piecewise-constant fit in which every window must pay for itself. Pure.

In: what each slot of the week needs, as levels with a cost. Out: a base level and windows, for every number of windows.

A day is fitted exactly, by dynamic programming over intervals: the cheapest way to cover [i, j) at a level below is to
keep that level, to split, or to lay a window over all of it at a higher level. So windows may nest, as people write
them: a midday peak inside a working day. Days are grouped into runs of weekdays (Mon-Fri, Sat-Sun), and the cheapest
cover of the week by runs is taken, again for every number of windows. Where a level is too low for a slot of some day,
each missing unit costs `SHORT_COSTS` of a unit that is too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SHORT_COSTS = 10.0
"""An hour with a replica too few is worth ten with one too many: one weekday in seven is covered by a whole-week
window."""

PAYS = 0.02
"""A window must save this share of the week's cost: a person writes no window for less."""

MOST_WINDOWS = 8
_MOST_A_DAY = 4
"""Windows over one day: as many as people read at a glance."""

_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A window: it starts in slot `start` of each of `days` and ends before slot `end`, at a level (its index)."""

    days: tuple[int, ...]
    start: int
    end: int
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A week of few windows. base: index of the level outside them. cost: of the week, shortfalls included."""

    base: int
    pieces: tuple[Piece, ...]
    cost: float


def fits(needed: Floats, levels: Sequence[float], counts: Floats | None = None) -> tuple[Fit, ...]:
    """The cheapest fit for 0, 1, 2, ... windows; a number that is no cheaper than fewer is left out.

    needed: what each day (7 rows) needs in each slot. levels: what may be given, ascending, in the same unit; also the
    cost of a slot. counts: 1 for each slot that counts, 0 for one that others cover.
    """
    weights = np.ones_like(needed) if counts is None else counts
    runs = _runs()
    grid = np.asarray(levels)
    slots = _slot_costs(needed, grid, weights, runs)
    days = _day_costs(slots)
    found: list[Fit] = []
    for cost, base, chosen in _weeks(days, runs):
        if not found or cost < found[-1].cost * (1 - 1e-9):
            pieces = tuple(
                Piece(days=runs[run], start=i, end=j, level=level)
                for run, count in chosen
                for i, j, level in _traced(days, slots, run, base, count)
            )
            found.append(Fit(base=base, pieces=pieces, cost=cost))
    return tuple(found)


def worthwhile(found: Sequence[Fit]) -> Fit:
    """The fit in which each window saves at least `PAYS` of the cheapest week's cost."""
    cheapest = found[-1].cost
    return min(found, key=lambda fit: fit.cost + len(fit.pieces) * PAYS * cheapest)


def _runs() -> tuple[tuple[int, ...], ...]:
    """All runs of weekdays, over Sunday too; the whole week once."""
    shorter = [tuple(sorted((first + i) % _DAYS for i in range(n))) for n in range(1, _DAYS) for first in range(_DAYS)]
    return (*shorter, tuple(range(_DAYS)))


def _slot_costs(needed: Floats, grid: Floats, weights: Floats, runs: Sequence[tuple[int, ...]]) -> Floats:
    """Cost of keeping a level in a slot on all days of a run: [run, level, slot]."""
    short = np.maximum(needed[:, None, :] - grid[None, :, None], 0)
    each = weights[:, None, :] * (grid[None, :, None] + SHORT_COSTS * short)
    return np.stack([each[list(run)].sum(axis=0) for run in runs])


def _day_costs(slots: Floats) -> Floats:
    """Cheapest cost of [i, j) with `count` windows above a level: [count, level, i, j, run]; infinite for j <= i."""
    runs, levels, length = slots.shape
    costs = np.full((_MOST_A_DAY + 1, levels, length + 1, length + 1, runs), np.inf)
    kept = np.concatenate((np.zeros((runs, levels, 1)), np.cumsum(slots, axis=2)), axis=2)
    for level in reversed(range(levels)):
        mine = costs[:, level]
        mine[:, range(length + 1), range(length + 1)] = 0.0
        for span in range(1, length + 1):
            starts = np.arange(length + 1 - span)
            ends = starts + span
            mine[0, starts, ends] = (kept[:, level, ends] - kept[:, level, starts]).T
            for count in range(1, _MOST_A_DAY + 1):
                mine[count, starts, ends] = np.minimum(
                    mine[count - 1, starts, ends],
                    np.minimum(_split(mine, count, starts, ends), _covered(costs, count, level, starts, ends)),
                )
    return costs


def _split(mine: Floats, count: int, starts: NDArray[np.int_], ends: NDArray[np.int_]) -> Floats:
    """The cheapest cut in two, at least one window on each side, or none on one."""
    best = np.full((len(starts), mine.shape[-1]), np.inf)
    for cut in range(1, int(ends[0] - starts[0])):
        for left in range(count + 1):
            np.minimum(best, mine[left, starts, starts + cut] + mine[count - left, starts + cut, ends], out=best)
    return best


def _covered(costs: Floats, count: int, level: int, starts: NDArray[np.int_], ends: NDArray[np.int_]) -> Floats:
    """The cheapest window over the whole interval, with one window fewer inside it."""
    above = costs[count - 1, level + 1 :, starts, ends]
    return above.min(axis=1) if above.shape[1] else np.full((len(starts), costs.shape[-1]), np.inf)


Cover = tuple[float, list[tuple[int, int]]]
"""Cost, and the runs taken with their number of windows."""

Week = tuple[float, int, list[tuple[int, int]]]
"""Cost, base level, and the same runs."""


def _weeks(days: Floats, runs: Sequence[tuple[int, ...]]) -> list[Week]:
    """The cheapest week for each number of windows: every weekday in one run."""
    whole = days[:, :, 0, -1, :]
    masks = [sum(1 << day for day in run) for run in runs]
    best: list[Week] = [(np.inf, 0, [])] * (MOST_WINDOWS + 1)
    for base in range(whole.shape[1]):
        for windows, (cost, chosen) in enumerate(_covers(whole[:, base], masks)):
            if cost < best[windows][0]:
                best[windows] = (cost, base, chosen)
    return best


def _covers(costs: Floats, masks: Sequence[int]) -> list[Cover]:
    """For each number of windows: the cheapest runs that hold each weekday once."""
    everything = (1 << _DAYS) - 1
    nothing: list[Cover] = [(0.0, []), *([(np.inf, [])] * MOST_WINDOWS)]
    table: dict[int, list[Cover]] = {0: nothing}
    for mask in range(1, everything + 1):
        lowest = mask & -mask
        row: list[Cover] = [(np.inf, [])] * (MOST_WINDOWS + 1)
        for run, those in enumerate(masks):
            if not those & lowest or those & ~mask:
                continue
            rest = table[mask & ~those]
            for count in range(_MOST_A_DAY + 1):
                own = float(costs[count, run])
                for others in range(MOST_WINDOWS + 1 - count):
                    total = own + rest[others][0]
                    if total < row[count + others][0]:
                        row[count + others] = (total, [(run, count), *rest[others][1]])
        table[mask] = row
    return table[everything]


def _traced(days: Floats, slots: Floats, run: int, base: int, count: int) -> list[tuple[int, int, int]]:
    """The windows behind a cost: start, end and level."""
    costs = days[..., run]
    kept = np.concatenate((np.zeros((slots.shape[1], 1)), np.cumsum(slots[run], axis=1)), axis=1)
    windows: list[tuple[int, int, int]] = []
    waiting = [(0, costs.shape[-1] - 1, base, count)]
    while waiting:
        i, j, level, most = waiting.pop()
        cost = costs[most, level, i, j]
        while most and costs[most - 1, level, i, j] <= cost * (1 + 1e-12):
            most -= 1
        if j == i or (not most and np.isclose(cost, kept[level, j] - kept[level, i])):
            continue
        above = costs[most - 1, level + 1 :, i, j]
        if len(above) and above.min() <= cost * (1 + 1e-12):
            higher = level + 1 + int(above.argmin())
            windows.append((i, j, higher))
            waiting.append((i, j, higher, most - 1))
            continue
        waiting += _cut(costs, i, j, level, most)
    return sorted(windows)


def _cut(costs: Floats, i: int, j: int, level: int, most: int) -> list[tuple[int, int, int, int]]:
    """The two parts of the cheapest cut."""
    _, cut, left = min(
        (float(costs[left, level, i, cut] + costs[most - left, level, cut, j]), cut, left)
        for cut in range(i + 1, j)
        for left in range(most + 1)
    )
    return [(i, cut, level, left), (cut, j, level, most - left)]
