"""What ``bench`` is told: objectives from a plan or from options, and what is derived from them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import click

from servingplan.cli.files import one_plan_from
from servingplan.cli.objectives import with_limits
from servingplan.cli.output import with_options
from servingplan.errors import UsageError
from servingplan.planning.plan import Objectives, Plan

MOST_BURSTY = 0.25
"""vLLM's burstiness for a coefficient of variation of 2: beyond, a window of minutes would hold a few bursts."""


objective_options = with_options(
    click.option("--plan", "plan_file", metavar="FILE", help="Take objectives and engine arguments of this plan."),
    click.option("--name", help="The plan of that name, where FILE holds several."),
    click.option("--ttft", metavar="P:LIMIT", help="Time to first token, as in p95:1500ms."),
    click.option("--tpot", metavar="P:LIMIT", help="Time per output token, as in p95:60ms."),
    click.option("--e2el", metavar="P:LIMIT", help="End-to-end latency."),
    click.option("--goodput-share", type=click.FloatRange(0, 1, min_open=True), help="Share that must be good."),
)
"""Options for objectives without a plan."""


def a_plan(plan_file: str | None, name: str | None) -> Plan | None:
    """The plan that was named."""
    if plan_file is None and name is not None:
        raise UsageError("--name chooses a plan of a file: give --plan too")
    return None if plan_file is None else one_plan_from(plan_file, name, option="--name")


def objectives(
    plan: Plan | None, *, goodput_share: float | None, ttft: str | None, tpot: str | None, e2el: str | None
) -> Objectives:
    """Of the plan, with those that options state instead. Raises UsageError where there is none."""
    before = Objectives() if plan is None else plan.workload.objectives
    found = with_limits(before, ttft=ttft, tpot=tpot, e2el=e2el)
    if not found.stated:
        where = "" if plan is None else f" and {plan.key} states none"
        raise UsageError(f"no objective is given{where}: name one, as in --ttft p95:1500ms, or a plan with --plan")
    share = before.goodput_share if goodput_share is None else Decimal(str(goodput_share))
    return replace(found, goodput_share=share or found.lowest_share)


def burstiness(cv: float) -> float:
    """Vllm's burstiness, the shape of a gamma distribution, of a coefficient of variation: 1 / cv^2, 0.25 to 1."""
    return min(1.0, max(MOST_BURSTY, 1 / cv**2))
