"""Objectives as options state them, ``--ttft p95:1500ms``: a percentile and a limit, as a plan has them.

In: the texts of the options, and what a plan states. Out: `Objectives`. Every verb that takes objectives reads them
here.
"""

from __future__ import annotations

import re
from dataclasses import replace

from servingplan.errors import UsageError
from servingplan.planning.plan import Objective, Objectives
from servingplan.planning.units import parse_duration

_OBJECTIVE = re.compile(r"(p50|p90|p95|p99):(.+)")


def with_limits(planned: Objectives, *, ttft: str | None, tpot: str | None, e2el: str | None) -> Objectives:
    """What is planned, with the limits that options state instead. Raises UsageError, naming the option."""
    return replace(
        planned,
        ttft=planned.ttft if ttft is None else _objective("--ttft", ttft),
        tpot=planned.tpot if tpot is None else _objective("--tpot", tpot),
        e2el=planned.e2el if e2el is None else _objective("--e2el", e2el),
    )


def _objective(option: str, text: str) -> Objective:
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise UsageError(f"{option}: {text!r} has no percentile of p50, p90, p95, p99; write it as p95:1500ms")
    try:
        limit = parse_duration(match[2])
    except ValueError as error:
        raise UsageError(f"{option}: {error}; write it as p95:1500ms") from None
    if not limit:
        raise UsageError(f"{option}: a limit of 0 is never kept; write it as p95:1500ms")
    return Objective(percentile=match[1], limit=limit)
