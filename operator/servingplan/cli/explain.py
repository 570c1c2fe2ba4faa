"""``servingplan explain``: why this many replicas, of a file or of a plan in the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.files import is_file, plans_from
from servingplan.cli.instants import now, parse_instant
from servingplan.cli.output import emit, output_option, talk
from servingplan.cli.past import entries, in_use, parse_moment, parse_since, plan_name, present
from servingplan.errors import UsageError
from servingplan.planning.ledger import Entry, entries_since
from servingplan.planning.plan import Plan
from servingplan.reporting.explain import Explanation, explain, explanation_document
from servingplan.reporting.ledger import Past, PlanName, history_document, past, past_document


@click.command("explain")
@click.argument("what", metavar="FILE|NAME")
@click.option("--at", metavar="T", help="The instant, in the plan's zone; default: now.")
@click.option("--since", metavar="T", help="Of a NAME: all that was decided since, an instant or so long ago (24h).")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@access_options
@output_option()
def command(*, what: str, at: str | None, since: str | None, name: str | None, output: str, **access: Any) -> None:
    """Say why so many replicas: the decision, step by step.

    With a FILE nothing else is needed. With the NAME of a plan in the cluster: what its operator decided last and
    its conditions. With --at: what it decided then, from its ledger; of a time to come, what it decides where replicas
    follow the schedule until then. A time alone (08:10) is today's.

    \b
      servingplan explain support-chat --at 08:10
      servingplan explain support-chat --since 24h
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    if at is not None and since is not None:
        raise UsageError("--at asks for one instant and --since for all: give one of them")
    if is_file(what, name):
        if since is not None:
            raise UsageError(f"--since lists what an operator decided, and {what} is a file: give the NAME of a plan")
        _emit([_explained(plan, at) for plan in plans_from([what], name)], output)
        return
    _explain_live(what, at, since, output=output, access=access)


def _explained(plan: Plan, at: str | None) -> Explanation:
    present = now()
    return explain(plan, present if at is None else parse_instant(at, plan.zone, "--at", after=present))


def _emit(explanations: Sequence[Explanation], output: str) -> None:
    documents = [explanation_document(explanation) for explanation in explanations]
    emit(output, documents[0] if len(documents) == 1 else documents, lambda: _view(explanations))


def _view(explanations: Sequence[Explanation]) -> Any:
    from servingplan.reporting.tables import explanation_view, stacked  # noqa: PLC0415  JSON needs no tables

    return stacked(map(explanation_view, explanations))


def _explain_live(name: str, at: str | None, since: str | None, *, output: str, access: dict[str, Any]) -> None:
    cluster = Cluster(Access(**access))
    plan = cluster.plan(name)
    if since is not None:
        _history(cluster, plan, since, output)
    elif at is not None:
        _at(cluster, plan, at, output)
    else:
        _last(plan, output)


def _last(plan: dict[str, Any], output: str) -> None:
    """What the operator decided last."""
    status, metadata = plan.get("status") or {}, plan["metadata"]
    kept = ("desiredReplicas", "floorReplicas", "lastScale", "nextChange", "ramp", "decision", "conditions")
    document = {
        "plan": {"namespace": metadata["namespace"], "name": metadata["name"]},
        **{key: status[key] for key in kept if key in status},
    }
    emit(output, document, lambda: _live_view(plan))


def _at(cluster: Cluster, plan: dict[str, Any], at: str, output: str) -> None:
    """What was decided at a past instant, or what is at one to come."""
    named, today = plan_name(plan), present(plan)
    instant = parse_moment(at, named.zone, "--at", at=today)
    if instant > today:
        _emit([explain(in_use(cluster, plan), instant)], output)
        return
    found = past(named, entries(cluster, plan), instant)
    emit(output, past_document(found), lambda: _past_view(found))


def _history(cluster: Cluster, plan: dict[str, Any], since: str, output: str) -> None:
    """All that was decided since an instant, and what was in force then."""
    named = plan_name(plan)
    first = parse_since(since, named.zone, at=present(plan))
    found = entries_since(entries(cluster, plan), first)
    if not found:
        talk(f"{named.key} has no ledger, or nothing is in it")
    emit(output, history_document(named, found), lambda: _history_view(named, found))


def _past_view(found: Past) -> Any:
    from servingplan.reporting.ledger_tables import past_view  # noqa: PLC0415  JSON needs no tables

    return past_view(found)


def _history_view(named: PlanName, found: Sequence[Entry]) -> Any:
    from servingplan.reporting.ledger_tables import history_view  # noqa: PLC0415  JSON needs no tables

    return history_view(named, found)


def _live_view(plan: dict[str, Any]) -> Any:
    from rich.console import Group  # noqa: PLC0415  JSON needs no tables

    from servingplan.cli.live import live_plan  # noqa: PLC0415  only for a plan in the cluster
    from servingplan.cli.status import view  # noqa: PLC0415  as above
    from servingplan.reporting.tables import told_trail  # noqa: PLC0415  as above

    steps = (plan.get("status") or {}).get("decision", ())
    trail: Any = told_trail(steps) if steps else "no operator has decided for this plan yet"
    return Group(view([live_plan(plan)], every=True), "", "The decision behind the last change:", trail)
