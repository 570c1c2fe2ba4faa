"""What ``simulate`` plays: the flags as typed become a world, its entrants and scenarios, and those a comparison.

In: a plan and flags. Out: a `Simulated`, or an error that says which file or option, and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from servingplan.cli.emit import weeks_of
from servingplan.cli.instants import now, parse_instant, parse_span, parse_start
from servingplan.cli.output import talk
from servingplan.cli.profile_input import LogFlags, read_logs
from servingplan.errors import InputError, UsageError
from servingplan.planning.plan import Plan
from servingplan.reporting.local import after_days
from servingplan.reporting.simulation import Origin, Simulated
from servingplan.simulation.arrivals import SLICE_S
from servingplan.simulation.comparison import compare
from servingplan.simulation.rivals import entrants
from servingplan.simulation.scenarios.catalogue import SCENARIOS
from servingplan.simulation.scenarios.scene import Scenario, Severity
from servingplan.simulation.trace import Drawing, Trace, by_slice, planned, recorded
from servingplan.simulation.windows import Array
from servingplan.simulation.world import World, rules_of, world

DEFAULT_DAYS = 14
ALL = "all"

_QUIET = timedelta(seconds=1)
"""Nothing is told of what is done so soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The flags as typed. log: how traces are to be read, by `LogFlags`."""

    traces: Sequence[str]
    profile: bool
    scenarios: Sequence[str]
    first: str | None
    days: int | None
    start_time: str | None
    node_replicas: int
    seed: int
    dispersion: float
    log: Mapping[str, Any]
    gpu_hour: Decimal | None


def simulated(plan: Plan, wanted: Wanted) -> Simulated:
    """Play it. Raises InputError for a trace that is none, UsageError for flags that make no sense."""
    scenarios = _scenarios(wanted.scenarios)
    start = plan.lead.declared if wanted.start_time is None else parse_span(wanted.start_time, "--start-time")
    # What a plan would do is asked here, whether it may do it now or not.
    plan = replace(plan, suspend=False)
    trace, origin = _planned(plan, wanted) if wanted.profile else _recorded(plan, wanted)
    played = world(plan, trace, rules_of(plan, start))
    progress = _Progress()
    severity = Severity(node_replicas=wanted.node_replicas)
    comparison = compare(played, scenarios, severity, entrants(plan, _cron(played)), tell=progress)
    progress.over()
    return Simulated(comparison=comparison, origin=origin, gpu_hour=wanted.gpu_hour)


def _scenarios(names: Sequence[str]) -> tuple[Scenario, ...]:
    unknown = [name for name in names if name not in {*SCENARIOS, ALL}]
    if unknown:
        raise UsageError(f"--scenario {unknown[0]!r} is not known; there are: {', '.join(SCENARIOS)}, {ALL}")
    return tuple(scenario for name, scenario in SCENARIOS.items() if name in names or ALL in names)


def _planned(plan: Plan, wanted: Wanted) -> tuple[Trace, Origin]:
    if wanted.traces:
        raise UsageError("--trace says what came, and --profile that it was as planned: state one of them")
    start, drawing = parse_start(wanted.first, plan.zone), _drawing(wanted)
    trace = planned(plan, start, after_days(start, wanted.days or DEFAULT_DAYS, plan.zone), drawing)
    return trace, Origin(drawing=drawing)


def _recorded(plan: Plan, wanted: Wanted) -> tuple[Trace, Origin]:
    if not wanted.traces:
        raise UsageError("nothing to play: state a log with --trace, or --profile for the plan's own demand")
    logs = read_logs(wanted.traces, LogFlags(time_zone=plan.zone.key, **wanted.log), width=SLICE_S)
    arrivals, drawing = logs.counted.arrivals, _drawing(wanted)
    start = datetime.fromtimestamp(arrivals.start, UTC)
    try:
        trace = _part(recorded(arrivals.counts, start, arrivals.step, drawing), plan, wanted)
    except InputError as error:
        named = ", ".join(wanted.traces)
        raise InputError(*(replace(problem, path=problem.path or named) for problem in error.problems)) from error
    return trace, Origin(
        files=tuple(wanted.traces), drawing=drawing if trace.drawn else None, notes=logs.source.remarks
    )


def _part(trace: Trace, plan: Plan, wanted: Wanted) -> Trace:
    """What --from and --days leave of it."""
    first = trace.start if wanted.first is None else parse_instant(wanted.first, plan.zone, "--from", after=trace.start)
    last = trace.end if wanted.days is None else after_days(first, wanted.days, plan.zone)
    return trace.between(first, min(last, trace.end))


def _drawing(wanted: Wanted) -> Drawing:
    return Drawing(seed=wanted.seed, dispersion=wanted.dispersion)


def _cron(played: World) -> Array:
    """What the cron triggers that ``emit keda`` makes ask for at each slice: to the minute what the plan asks for."""
    asked = weeks_of(played.plan, played.trace.start, played.trace.end).within
    return by_slice(asked, float).astype(np.float32)


class _Progress:
    """Tells somebody who waits what is being done, in a terminal on one line."""

    def __init__(self) -> None:
        self._begun, self._told = now(), ""

    def __call__(self, what: str, share: float) -> None:
        """What, and how much of it is done, 0 to 1."""
        if now() - self._begun < _QUIET:
            return
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[2Ksimulating {what}: {share:.0%}")
            sys.stderr.flush()
        elif what != self._told:
            talk(f"simulating {what}")
        self._told = what

    def over(self) -> None:
        """The line is free again."""
        if self._told and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[2K")
