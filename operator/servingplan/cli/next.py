"""``servingplan next``: what happens next, in each plan's local time, and how long that is from now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.instants import now
from servingplan.cli.live import LivePlan, live_plan
from servingplan.cli.output import emit, output_option, talk
from servingplan.rendering.times import local_time, wire_time
from servingplan.reporting.local import in_words

_NEVER = datetime.max.replace(tzinfo=UTC)


@click.command("next")
@click.argument("name", required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="Plans of all namespaces.")
@access_options
@output_option()
def command(name: str | None, all_namespaces: bool, output: str, **access: Any) -> None:
    """Show the next change of each plan of the namespace, or of the plan NAME; the soonest first."""
    cluster = Cluster(Access(**access))
    found = (cluster.plan(name),) if name is not None else cluster.plans(everywhere=all_namespaces)
    plans = sorted((live_plan(plan) for plan in found), key=_when)
    if not plans:
        talk("no plans" if all_namespaces else f"no plans in namespace {cluster.namespace}; -A shows all namespaces")
    present = now()
    emit(output, [_document(plan) for plan in plans], lambda: _view(plans, present))
    for plan in plans:
        if plan.demo_clock:
            talk(f"{plan.key}: a demo clock is on, so the time from now is not what a watch shows: {plan.demo_clock}")


def _when(plan: LivePlan) -> tuple[datetime, str]:
    return (plan.upcoming.time if plan.upcoming is not None else _NEVER, plan.key)


def _document(plan: LivePlan) -> dict[str, Any]:
    namespace, _, name = plan.key.partition("/")
    document: dict[str, Any] = {"plan": {"namespace": namespace, "name": name}, "timeZone": plan.zone.key}
    upcoming = plan.upcoming
    change = None
    if upcoming is not None:
        change = {"time": wire_time(upcoming.time), "replicas": upcoming.replicas, "because": upcoming.because}
    return {**document, "suspended": plan.suspended, "nextChange": change}


def _view(plans: Sequence[LivePlan], present: datetime) -> Any:
    from servingplan.reporting.tables import plain_table  # noqa: PLC0415  JSON needs no tables

    table = plain_table("plan", "when", "in", "replicas", "because", numbers=("in",))
    for plan in plans:
        upcoming = plan.upcoming
        if upcoming is None:
            table.add_row(plan.key, "-", "-", _number(plan.desired), "no change ahead")
            continue
        due = in_words(upcoming.time - present) if upcoming.time > present else "now"
        because = f"{upcoming.because} (suspended: not written)" if plan.suspended else upcoming.because
        levels = f"{_number(plan.desired)} → {upcoming.replicas}"
        table.add_row(plan.key, local_time(upcoming.time, plan.zone), due, levels, because)
    return table


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
