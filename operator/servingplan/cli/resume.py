"""``servingplan resume``: let a suspended plan act again."""

from __future__ import annotations

from typing import Any

import click

from servingplan.cli.cluster import Access, Cluster, access_options
from servingplan.cli.output import output_option
from servingplan.cli.ownership import Json, others_owning_suspend, owned_spec
from servingplan.cli.suspend import write


@click.command("resume")
@click.argument("name")
@access_options
@output_option()
def command(name: str, output: str, **access: Any) -> None:
    """Let the plan NAME act again."""
    write(Cluster(Access(**access)), name, _resumed, output)


def _resumed(live: Json) -> Json:
    """The field is given up; where somebody else states it too, it is set to false instead."""
    rest = {key: value for key, value in owned_spec(live).items() if key != "suspend"}
    return {**rest, "suspend": False} if others_owning_suspend(live) else rest
