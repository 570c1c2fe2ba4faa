"""``servingplan status``: plans in the cluster, and what somebody should look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.live import LivePlan, live_plan
from servingplan.cli.output import emit, output_option, talk
from servingplan.rendering.stated import StatedCondition
from servingplan.rendering.times import local_time


@click.command("status")
@click.argument("name", required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="Plans of all namespaces.")
@access_options
@output_option()
def command(name: str | None, all_namespaces: bool, output: str, **access: Any) -> None:
    """Show the plans of the namespace, or the plan NAME with all its conditions."""
    cluster = Cluster(Access(**access))
    found = (cluster.plan(name),) if name is not None else cluster.plans(everywhere=all_namespaces)
    if not found:
        talk("no plans" if all_namespaces else f"no plans in namespace {cluster.namespace}; -A shows all namespaces")
    documents = [_document(plan) for plan in found]
    plans = [live_plan(plan) for plan in found]
    emit(output, documents[0] if name is not None else documents, lambda: view(plans, every=name is not None))


def _document(plan: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = plan["metadata"], plan["spec"]
    return {
        "plan": {"namespace": metadata["namespace"], "name": metadata["name"]},
        "timeZone": spec["schedule"]["timeZone"],
        "suspended": bool(spec.get("suspend", False)),
        "generation": metadata.get("generation"),
        "status": plan.get("status") or {},
    }


def view(plans: Sequence[LivePlan], *, every: bool) -> Any:
    """The table, and below it the conditions: all of them, or those that are not good."""
    from rich.console import Group  # noqa: PLC0415  JSON needs no tables

    from servingplan.reporting.tables import plain_table  # noqa: PLC0415  as above

    table = plain_table("plan", "window", "desired", "ready", "next", "state", numbers=("desired", "ready"))
    for plan in plans:
        table.add_row(plan.key, plan.window, _number(plan.desired), _number(plan.ready), _next(plan), _state(plan))
    parts: list[Any] = [table] if plans else []
    for plan in plans:
        shown = plan.conditions if every else plan.not_good
        parts += ["", *_notes(plan, shown)] if shown or not plan.seen or plan.demo_clock else []
    return Group(*parts)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _next(plan: LivePlan) -> str:
    upcoming = plan.upcoming
    return f"{upcoming.replicas} at {local_time(upcoming.time, plan.zone)}" if upcoming is not None else "-"


def _state(plan: LivePlan) -> Any:
    from rich.text import Text  # noqa: PLC0415  as above

    ready = plan.condition("Ready")
    good = ready is not None and ready.good
    return Text(plan.state, style="yellow" if plan.suspended else "green" if good else "bold red")


def _notes(plan: LivePlan, conditions: Sequence[StatedCondition]) -> list[Any]:
    from rich.text import Text  # noqa: PLC0415  as above

    from servingplan.reporting.tables import indented  # noqa: PLC0415  as above

    lines: list[Any] = [Text(plan.key, style="bold")]
    if not plan.seen:
        lines.append(indented("the operator has not acted on the last change yet"))
    if plan.demo_clock:
        lines.append(indented(f"a demo clock is on: {plan.demo_clock}"))
    for condition in conditions:
        style = "green" if condition.good else "bold red"
        head = (f"{condition.type} {condition.status}", style)
        line = Text.assemble(head, f": {condition.message} ", (f"[{condition.reason}]", "dim"))
        lines.append(indented(line))
    return lines
