"""The cells of a simulation: the same words and figures in the terminal, in Markdown and on the page.

In: a `Simulated`. Out: tuples of text, with which cells of a column are its best. Knows no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from servingplan.planning.plan import WEEKDAYS
from servingplan.planning.sizing import capacity_per_replica
from servingplan.planning.units import format_duration, format_rate
from servingplan.rendering.times import local_time
from servingplan.reporting.local import DASH, dates_of, short_date
from servingplan.reporting.simulation import Simulated
from servingplan.simulation.comparison import CLAIRVOYANT_ATTAINMENT, Result
from servingplan.simulation.standing import Standing
from servingplan.simulation.tokens_played import TokenStanding

NOTHING = "-"

_WHOLE_HOURS = 100
"""From so many GPU-hours on, parts of one are of no interest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of figures. cells: by policy. best: which of them are the best; none where all are alike."""

    head: str
    cells: Sequence[str]
    best: frozenset[int]


def title_words(found: Simulated) -> str:
    """``Tue 8 Apr 2025 - Mon 14 Apr, 7 days, Asia/Shanghai``."""
    dates = dates_of(found.start, found.trace.end, found.plan.zone)
    first, last = dates[0], dates[-1]
    until = "" if first == last else f"{DASH}{short_date(last)}"
    span = found.trace.end - found.start
    days, minutes = span / timedelta(days=1), timedelta(minutes=round(span / timedelta(minutes=1)))
    length = f"{days:.3g} day{'' if days == 1 else 's'}" if days >= 1 else format_duration(minutes)
    return f"{short_date(first)}{until} {last.year}, {length}, {found.plan.zone.key}"


def fact_lines(found: Simulated) -> Iterator[str]:
    """What was played, and under which assumptions: a reader must be able to judge the figures."""
    comparison, rules = found.comparison, found.comparison.world.rules
    requests = comparison.plan.recorded.requests
    yield f"{requests:,.0f} requests, {found.mean:.3g}/s on average, {found.busiest:.3g}/s in the busiest ten minutes"
    yield f"Requests: {_arrivals(found)}"
    yield from found.origin.notes
    if found.tokens is not None:
        yield _token_words(found.tokens)
        yield _engine_words(found, found.tokens)
    if comparison.tuned_until is not None:
        yield (
            f"Settings: tuned before {local_time(comparison.tuned_until, found.plan.zone)} to attain as much as the "
            "plan there, judged after it"
        )
    else:
        yield "Settings: the platforms' defaults, as the trace is shorter than 14 days"
    ttft = found.plan.workload.objectives.ttft
    why = "the TTFT objective's limit" if ttft is not None else "the plan states no TTFT objective"
    limits = f"waits at most {rules.wait_limit_s:g}s ({why}); after {rules.patience_s:.0f}s it goes away"
    yield f"A request is good if it {limits}"
    yield (
        f"A replica serves {_capacity(found)} requests/s and takes {format_duration(timedelta(seconds=rules.start_s))} "
        f"to start and {rules.drain_s:.0f}s to drain, of {_gpus(found)}"
    )


def _token_words(standing: TokenStanding) -> str:
    limits = (
        f"TTFT p95 {standing.ttft_s:.3g}s, TPOT p95 {1000 * standing.tpot_s:.3g}ms, E2EL p95 {standing.e2el_s:.3g}s"
    )
    return (
        f"Token by token, this plan's replicas keep every limit for {share_words(standing.attainment)} of "
        f"{standing.requests:,} requests: {limits}; {share_words(standing.preempted)} were preempted"
    )


def _engine_words(found: Simulated, standing: TokenStanding) -> str:
    if standing.capacity is None:
        return "By that engine's profile the objectives hold for no rate of requests at all, or for any"
    serves = f"{standing.capacity:.3g} requests/s"
    return f"By that engine's profile a replica serves about {serves}; the plan's capacity is {_capacity(found)}"


def _arrivals(found: Simulated) -> str:
    drawing, step = found.origin.drawing, format_duration(timedelta(seconds=found.trace.step_s))
    source = ", ".join(Path(file).name for file in found.origin.files) or "the plan's own demand"
    if drawing is None:
        return f"{source}, each request at its own time"
    return f"{source}, drawn inside steps of {step} (seed {drawing.seed}, dispersion {drawing.dispersion:g})"


def _capacity(found: Simulated) -> str:
    rates = [format_rate(point.requests_per_second) for point in found.plan.capacity.points]
    return rates[0] if len(rates) == 1 else f"{rates[0]} to {rates[-1]}"


def _gpus(found: Simulated) -> str:
    gpus = found.plan.gpus_per_replica
    if gpus is None:
        return "1 GPU (not stated: spec.gpusPerReplica)"
    return f"{gpus} GPU{'s' * (gpus > 1)}"


def above_words(found: Simulated) -> str:
    """How much came above the plan, and where most of it."""
    scene = found.comparison.scenes[0]
    above = found.comparison.above[scene.key]
    if above.most is None:
        return "Above the plan: no request"
    index, rate, planned = above.most
    when = local_time(found.trace.at(index), found.plan.zone)
    return (
        f"Above the plan: {share_words(above.share)} of requests; most at {when}: {rate:.3g}/s where {planned:.3g}/s "
        "are planned"
    )


def bound_words(found: Simulated) -> str:
    """Where the plan's bounds keep everybody from serving what came; empty where they do not."""
    plan, most = found.plan, found.plan.bounds.maximum
    served = float(most * capacity_per_replica(plan.capacity, most))
    if found.busiest <= served:
        return ""
    return (
        f"spec.bounds.maxReplicas of {most} serves {served:.3g}/s, and the busiest ten minutes have "
        f"{found.busiest:.3g}/s: no policy could serve them"
    )


def share_words(share: float | None) -> str:
    """``99.95 %``, never rounded up to all, nor down to nothing."""
    if share is None:
        return NOTHING
    rounded = round(share, 4)
    if rounded in {0.0, 1.0} and rounded != share and abs(share - rounded) > 1e-9:
        return "> 99.99 %" if rounded else "< 0.01 %"
    return f"{100 * share:.2f} %"


def hour_words(hour: int) -> str:
    """``Tue 08h``."""
    return f"{WEEKDAYS[hour // 24]} {hour % 24:02d}h"


def main_columns(found: Simulated) -> tuple[Column, ...]:
    """Attainment, rises, the worst hour, GPU-hours and their ratio, and the cost where there is a price."""
    longest = max(result.recorded.hours for result in found.comparison.results)
    digits = 0 if longest >= _WHOLE_HOURS else 1
    columns = [
        _figures(found, "attained", lambda one: one.attainment, share_words, highest=True),
        _figures(found, "in rises", lambda one: one.rising, share_words, highest=True),
        _worst_hours(found),
        _figures(found, "GPU-h", lambda one: one.hours, lambda value: f"{value:,.{digits}f}"),
        _figures(found, "x ideal", found.over_reference, lambda value: f"{value:.2f}"),
    ]
    if found.gpu_hour is not None:
        columns.append(_figures(found, "cost", found.cost, lambda value: f"{value:,.0f}"))
    return tuple(columns)


def _worst_hours(found: Simulated) -> Column:
    results = found.comparison.results
    lowest = [result.recorded.worst_hour for result in results]
    values = [
        1.0 if hour is None else float(result.recorded.weekly[hour])
        for hour, result in zip(lowest, results, strict=True)
    ]
    cells = [
        "none" if hour is None else f"{hour_words(hour)} {share_words(value)}"
        for hour, value in zip(lowest, values, strict=True)
    ]
    return Column(head="worst hour", cells=cells, best=_best(values, highest=True))


def split_columns(found: Simulated) -> tuple[Column, ...]:
    """Where the GPU-hours go: to spend less of one kind is no merit by itself."""

    def words(value: float) -> str:
        return f"{value:,.1f}"

    columns = (
        _figures(found, "serving", lambda one: one.serving, words),
        _figures(found, "reserve", lambda one: one.reserve, words),
        _figures(found, "starting", lambda one: one.starting, words),
        _figures(found, "draining", lambda one: one.draining, words),
        _figures(found, "= total", lambda one: one.hours, words),
        _figures(found, "x full", found.over_bound, lambda value: f"{value:.2f}"),
    )
    return tuple(replace(column, best=frozenset()) for column in columns)


def scenario_columns(found: Simulated) -> tuple[Column, ...]:
    """Attainment in each scenario."""
    results = found.comparison.results
    columns = []
    for scene in found.comparison.scenes[1:]:
        values = [result.standings[scene.key].attainment for result in results]
        cells = tuple(share_words(value) for value in values)
        columns.append(Column(head=scene.title, cells=cells, best=_best(values, highest=True)))
    return tuple(columns)


def scenario_lines(found: Simulated) -> Iterator[tuple[str, str]]:
    """Each scenario, and what happens in it."""
    for scene in found.comparison.scenes[1:]:
        yield scene.title, scene.words


def policy_lines(found: Simulated) -> Iterator[tuple[str, str]]:
    """Each policy, and what it does with which setting."""
    for result in found.comparison.results:
        yield result.entrant.title, result.words


def titles(results: Sequence[Result]) -> tuple[str, ...]:
    """The policies, the plan first."""
    return tuple(result.entrant.title for result in results)


def ideal_words() -> str:
    """What GPU-hours are compared with."""
    return (
        f"x ideal: GPU-hours without the reserve, over those of a fleet that knows all arrivals and attains "
        f"{100 * CLAIRVOYANT_ATTAINMENT:g} %; x full: over replicas that are always full"
    )


def _figures(
    found: Simulated,
    head: str,
    value: Callable[[Standing], float | None],
    words: Callable[[float], str],
    *,
    highest: bool = False,
) -> Column:
    values = [value(result.recorded) for result in found.comparison.results]
    cells = tuple(NOTHING if one is None else words(one) for one in values)
    # What reads alike is alike.
    shown = [values[cells.index(cell)] for cell in cells]
    return Column(head=head, cells=cells, best=_best(shown, highest=highest))


def _best(values: Sequence[float | None], *, highest: bool) -> frozenset[int]:
    known = [value for value in values if value is not None]
    if len(set(known)) < 2:
        return frozenset()
    best = max(known) if highest else min(known)
    return frozenset(i for i, value in enumerate(values) if value == best)
