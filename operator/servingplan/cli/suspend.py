"""``servingplan suspend``: keep a plan from changing replicas, while it goes on deciding and reporting."""

from __future__ import annotations

from typing import Any

import click

from servingplan.cli.changes import change
from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.output import emit, output_option, talk
from servingplan.cli.ownership import others_owning_suspend, owned_spec


@click.command("suspend")
@click.argument("name")
@access_options
@output_option()
def command(name: str, output: str, **access: Any) -> None:
    """Keep the plan NAME from changing replicas. They stay as they are; it goes on saying what it would do."""
    cluster = Cluster(Access(**access))
    plan = change(cluster, name, lambda live: {**owned_spec(live), "suspend": True})
    report(plan, output)


def report(plan: dict[str, Any], output: str) -> None:
    """Say whether a plan is suspended now, and who may change that back."""
    metadata, suspended = plan["metadata"], bool(plan["spec"].get("suspend", False))
    key = f"{metadata['namespace']}/{metadata['name']}"
    current = plan.get("status", {}).get("currentReplicas")
    document = {
        "plan": {"namespace": metadata["namespace"], "name": metadata["name"]},
        "suspended": suspended,
        "currentReplicas": current,
    }
    staying = f"replicas stay at {current}" if current is not None else "replicas stay as they are"
    words = f"{key} is suspended: {staying}" if suspended else f"{key} is not suspended: it acts again"
    emit(output, document, lambda: words)
    if others := others_owning_suspend(plan):
        talk(
            f"Warning: spec.suspend is also stated by {', '.join(others)}, which may set it back at its next apply; "
            "change it at its source too"
        )
