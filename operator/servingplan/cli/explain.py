"""``servingplan explain``: why this many replicas, of a file or of a plan in the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.files import plans_from
from servingplan.cli.instants import now, parse_instant
from servingplan.cli.output import emit, output_option
from servingplan.errors import UsageError
from servingplan.planning.plan import Plan
from servingplan.reporting.explain import Explanation, explain, explanation_document

_SUFFIXES = (".yaml", ".yml", ".json")


@click.command("explain")
@click.argument("what", metavar="FILE|NAME")
@click.option("--at", metavar="T", help="The instant, in the plan's zone; default: now.")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@access_options
@output_option()
def command(what: str, at: str | None, name: str | None, output: str, **access: Any) -> None:
    """Say why so many replicas: the decision, step by step.

    With a FILE nothing else is needed. With the NAME of a plan in the cluster: what its operator decided last and
    its conditions; with --at, what it decides at that time where replicas follow the schedule until then.
    """
    if _is_file(what):
        _emit([_explained(plan, at) for plan in plans_from([what], name)], output)
        return
    if name is not None:
        raise UsageError(f"--name chooses a plan of a file, and there is no file {what}")
    _explain_live(what, at, output, access)


def _is_file(what: str) -> bool:
    return what == "-" or what.endswith(_SUFFIXES) or "/" in what or Path(what).exists()


def _explained(plan: Plan, at: str | None) -> Explanation:
    present = now()
    return explain(plan, present if at is None else parse_instant(at, plan.zone, "--at", after=present))


def _emit(explanations: Sequence[Explanation], output: str) -> None:
    documents = [explanation_document(explanation) for explanation in explanations]
    emit(output, documents[0] if len(documents) == 1 else documents, lambda: _view(explanations))


def _view(explanations: Sequence[Explanation]) -> Any:
    from servingplan.reporting.tables import explanation_view, stacked  # noqa: PLC0415  JSON needs no tables

    return stacked(map(explanation_view, explanations))


def _explain_live(name: str, at: str | None, output: str, access: dict[str, Any]) -> None:
    from servingplan.api.resolve import resolve  # noqa: PLC0415  only for a plan in the cluster
    from servingplan.rendering.capacity import as_in_use  # noqa: PLC0415  as above

    cluster = Cluster(Access(**access))
    plan = cluster.plan(name)
    status = plan.get("status") or {}
    if at is not None:
        acting = as_in_use(resolve(plan, cluster.references_of(plan)), status)
        _emit([_explained(acting, at)], output)
        return
    kept = ("desiredReplicas", "floorReplicas", "lastScale", "nextChange", "ramp", "decision", "conditions")
    document = {
        "plan": {"namespace": plan["metadata"]["namespace"], "name": name},
        **{key: status[key] for key in kept if key in status},
    }
    emit(output, document, lambda: _live_view(plan))


def _live_view(plan: dict[str, Any]) -> Any:
    from rich.console import Group  # noqa: PLC0415  JSON needs no tables

    from servingplan.cli.live import live_plan  # noqa: PLC0415  only for a plan in the cluster
    from servingplan.cli.status import view  # noqa: PLC0415  as above
    from servingplan.reporting.tables import trail_table  # noqa: PLC0415  as above

    steps = (plan.get("status") or {}).get("decision", ())
    rows = [(step["name"], step["value"], step["message"], step["reason"]) for step in steps]
    trail: Any = trail_table(rows) if rows else "no operator has decided for this plan yet"
    return Group(view([live_plan(plan)], every=True), "", "The decision behind the last change:", trail)
