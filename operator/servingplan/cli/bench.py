"""``servingplan bench``: what one replica serves at the objectives, measured. Needs a server, and no cluster."""

from __future__ import annotations

import click

from servingplan.cli.bench_run import command as run
from servingplan.cli.bench_show import command as show
from servingplan.cli.bench_throughput import command as throughput


@click.group("bench", commands=[run, show, throughput])
def command() -> None:
    """Measure what one replica serves at the objectives, and what binds it.

    \b
      servingplan bench run --url http://localhost:8000 --plan plan.yaml --prompts prompts.jsonl --out capacity.json
      servingplan bench show capacity.json
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
