"""The workload of a sizing: flags and a plan become a rate, token lengths, objectives and a burst.

In: flags as typed, a plan where there is one. Out: a `Workload`, and notes for the person. Flags win over the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from servingplan.cli.instants import parse_span
from servingplan.cli.objectives import with_limits
from servingplan.errors import UsageError
from servingplan.hardware.lengths import Lengths
from servingplan.hardware.traffic import Workload
from servingplan.planning.plan import Level, Objectives, Plan, Rate
from servingplan.planning.units import format_rate

_QUANTILE = re.compile(r"p(50|[5-9]\d):(\d{1,9})")
_BURST = re.compile(r"(\d{1,4}(?:\.\d+)?)x(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options of the verb, as click parsed them."""

    plan_file: str | None
    name: str | None
    rate: float | None
    input_tokens: str | None
    output_tokens: str | None
    ttft: str | None
    tpot: str | None
    e2el: str | None
    burst: str
    failure: str
    spare: int | None
    capacities: Sequence[str]
    names: Sequence[str]
    table: str | None
    prices: Sequence[str]
    log_file: str | None
    model_versions: int
    metrics_retention: str
    scrape_interval: str
    formats: Sequence[str]
    tensor: int | None
    pipeline: int | None
    max_model_len: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    utilization: float | None
    cache_dtype: str | None
    prefix_caching: bool | None
    version: str | None


def workload_of(flags: Flags, plan: Plan | None) -> tuple[Workload | None, Sequence[str]]:
    """What is asked, None without a rate, and notes on where it comes from. Raises UsageError."""
    rate, notes = flags.rate, []
    if rate is None and plan is not None:
        highest, because = max(_planned_rates(plan))
        rate = float(highest)
        notes.append(f"{format_rate(highest)} requests/s, the highest of {plan.key}: {because}")
    stated = any((flags.input_tokens, flags.output_tokens, flags.ttft, flags.tpot, flags.e2el))
    if rate is None:
        if stated or flags.capacities:
            raise UsageError("a workload needs --rate, or --plan")
        return None, notes
    if rate <= 0:
        raise UsageError(f"{plan.key if plan is not None else 'the plan'} states no requests: give --rate")
    objectives = _objectives(flags, plan)
    if not objectives.stated:
        notes.append(
            "no objective is stated: capacity is where the cache or max_num_seqs is full, however slow that is"
        )
    multiple, duration = _burst(flags.burst)
    return Workload(
        rate=rate,
        input=_lengths("input", flags.input_tokens, plan),
        output=_lengths("output", flags.output_tokens, plan),
        objectives=objectives,
        burst=multiple,
        burst_duration=duration,
    ), notes


def _planned_rates(plan: Plan) -> Iterator[tuple[Decimal, str]]:
    """Every rate that the schedule states, with who states it. Totals of replicas are no rates."""
    levels: list[tuple[Level, str]] = [(plan.base, "base")]
    levels += [(window.level, f"window {window.name}") for window in plan.windows]
    levels += [(window.level, f"window {window.name}") for window in plan.cron_windows]
    levels += [(override.level, f"override {override.name}") for override in plan.overrides]
    levels += [
        (found.treat_as, f"calendar {found.name}") for found in plan.calendars if isinstance(found.treat_as, Rate)
    ]
    yield from ((level.requests_per_second, name) for level, name in levels if isinstance(level, Rate))
    if plan.profile is not None:
        yield max(plan.profile.rates), "profile"


def _lengths(which: str, text: str | None, plan: Plan | None) -> Lengths:
    option = f"--{which}-tokens"
    quantiles: Mapping[str, int] = {}
    if text is not None:
        found = [_QUANTILE.fullmatch(part.strip()) for part in text.split(",")]
        quantiles = {f"p{match[1]}": int(match[2]) for match in found if match}
        if None in found or len(quantiles) != len(found) or not all(quantiles.values()):
            raise UsageError(f"{option} {text!r}: write quantiles in tokens, for example p50:600,p95:2400")
    elif plan is not None:
        quantiles = dict(plan.workload.tokens.input if which == "input" else plan.workload.tokens.output)
    if not quantiles:
        where = "" if plan is None else f", or spec.workload.tokens.{which} of {plan.key}"
        raise UsageError(f"a workload needs {option}{where}: for example p50:600,p95:2400")
    try:
        return Lengths.from_quantiles(quantiles)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _objectives(flags: Flags, plan: Plan | None) -> Objectives:
    planned = Objectives() if plan is None else plan.workload.objectives
    return with_limits(planned, ttft=flags.ttft, tpot=flags.tpot, e2el=flags.e2el)


def _burst(text: str) -> tuple[float, timedelta]:
    match = _BURST.fullmatch(text)
    if match is None or float(match[1]) < 1:
        raise UsageError(f"--burst {text!r}: write a multiple of at least 1 and how long, as in 2x10m")
    return float(match[1]), span("--burst", match[2])


def span(option: str, text: str) -> timedelta:
    """A duration as plans write it, or days: ``15d``. Raises UsageError, naming the option."""
    match = re.fullmatch(r"([1-9]\d{0,4})d", text)
    return timedelta(days=int(match[1])) if match else parse_span(text, option)
