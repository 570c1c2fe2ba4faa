"""``servingplan render``: the objects that the operator would apply. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from servingplan.cli.files import plans_from
from servingplan.cli.output import JSON, YAML, emit, output_option, talk, yaml_text
from servingplan.rendering.metadata import DEFAULT_INSTALLATION
from servingplan.rendering.objects import render


@click.command("render")
@click.argument("file")
@click.option("--name", help="The plan of that name, where FILE holds several.")
@click.option("--installation", default=DEFAULT_INSTALLATION, show_default=True, help="Name of the installation.")
@output_option("table", JSON, YAML, default=YAML)
def command(file: str, name: str | None, installation: str, output: str) -> None:
    """Print the objects that the operator would apply for the plans in FILE.

    Replicas are not among them: the operator writes those through /scale. Neither is the owner reference, which
    names the plan's UID in the cluster.
    """
    manifests: list[dict[str, Any]] = []
    for plan in plans_from([file], name):
        rendered = render(plan, None, installation)
        if not rendered:
            talk(f"{plan.key} scales a workload that exists already: there is nothing to render")
        manifests.extend(rendered)
    if output == YAML:
        click.echo(yaml_text(manifests) if manifests else "", nl=False)
    else:
        emit(output, {"apiVersion": "v1", "kind": "List", "items": manifests}, lambda: _view(manifests))


def _view(manifests: Sequence[dict[str, Any]]) -> Any:
    from servingplan.reporting.tables import plain_table  # noqa: PLC0415  YAML needs no tables

    table = plain_table("kind", "namespace", "name")
    for manifest in manifests:
        table.add_row(manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    return table
