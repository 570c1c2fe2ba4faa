"""``servingplan crd``: the CustomResourceDefinitions, for ``kubectl apply -f -``. Needs no cluster."""

from __future__ import annotations

import click

from servingplan.api.crd import all_crds_yaml, custom_resource_definition
from servingplan.api.kinds import KINDS
from servingplan.cli.output import JSON, TABLE, YAML, emit, output_option


@click.command("crd")
@output_option(TABLE, JSON, YAML, default=YAML)
def command(output: str) -> None:
    """Print the CustomResourceDefinitions.

    \b
      servingplan crd | kubectl apply --server-side -f -
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    if output == YAML:
        click.echo(all_crds_yaml(), nl=False)
    else:
        definitions = [custom_resource_definition(kind) for kind in KINDS]
        names = "\n".join(f"{found['kind']} {found['metadata']['name']}" for found in definitions)
        emit(output, {"apiVersion": "v1", "kind": "List", "items": definitions}, lambda: names)
