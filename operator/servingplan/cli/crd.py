"""``servingplan crd``: the CustomResourceDefinitions, for ``kubectl apply -f -``. Needs no cluster."""

from __future__ import annotations

import click

from servingplan.api.crd import crd_yaml, custom_resource_definition
from servingplan.cli.output import JSON, TABLE, YAML, emit, output_option


@click.command("crd")
@output_option(TABLE, JSON, YAML, default=YAML)
def command(output: str) -> None:
    """Print the CustomResourceDefinitions.

    \b
      servingplan crd | kubectl apply --server-side -f -
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    if output == YAML:
        click.echo(crd_yaml(), nl=False)
    else:
        definition = custom_resource_definition()
        emit(output, definition, lambda: f"{definition['kind']} {definition['metadata']['name']}")
