"""``servingplan suspend``: keep a plan from changing replicas, while it goes on deciding and reporting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from servingplan.cli.changes import change
from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.output import emit, output_option, talk
from servingplan.cli.ownership import Json, others_owning_suspend, owned_spec


@click.command("suspend")
@click.argument("name")
@access_options
@output_option()
def command(name: str, output: str, **access: Any) -> None:
    """Keep the plan NAME from changing replicas. They stay as they are; it goes on saying what it would do."""
    write(Cluster(Access(**access)), name, lambda live: {**owned_spec(live), "suspend": True}, output)


def write(cluster: Cluster, name: str, wanted: Callable[[Json], Json], output: str) -> None:
    """Change ``spec.suspend`` and say what it is now, and who may change it back."""
    others: list[str] = []

    def noted(live: Json) -> Json:
        # Before the change: an apply with force takes the field away from whoever stated something else.
        others[:] = others_owning_suspend(live)
        return wanted(live)

    _report(change(cluster, name, noted), others, output)


def _report(plan: Json, others: Sequence[str], output: str) -> None:
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
    if others:
        talk(
            f"Warning: spec.suspend is also stated by {', '.join(others)}, which may set it back at its next apply; "
            "change it at its source too"
        )
