"""``servingplan lint keda``: what the cron triggers of ScaledObjects really do in the next year. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import click

from servingplan.cli.instants import parse_span, parse_start
from servingplan.cli.manifests import Found, scaled_objects
from servingplan.cli.output import emit, output_option
from servingplan.errors import CheckFailed
from servingplan.migrating.lint import Linted, lint
from servingplan.reporting.lint import linted_document
from servingplan.reporting.local import after_days

DAYS = 365
"""A year: both clock changes and every weekday are in it."""

_UTC = ZoneInfo("UTC")


@click.group("lint")
def command() -> None:
    """Say what a schedule that you have elsewhere really does."""


@command.command("keda")
@click.argument("files", nargs=-1, required=True)
@click.option("--from", "start", metavar="T", help="Start, in the zone of the first trigger; default: today 00:00.")
@click.option("--start-time", metavar="SPAN", help="How long a replica takes to be ready: 10m.")
@output_option()
def keda(*, files: Sequence[str], start: str | None, start_time: str | None, output: str) -> None:
    """Say what the cron triggers of the ScaledObjects in FILES do in the year from T, exactly as KEDA decides it.

    Notes alone end with 0, anything else with 4.

    \b
      servingplan lint keda scaledobject.yaml
      kubectl get scaledobjects -A -o yaml | servingplan lint keda - --start-time 10m
    """  # noqa: D301  \b is the sign by which click keeps lines as they are
    span = None if start_time is None else parse_span(start_time, "--start-time")
    linted: list[tuple[Found, Linted]] = []
    for found in scaled_objects(files):
        zone = next((trigger.zone for trigger in found.scaled_object.crons), _UTC)
        first = parse_start(start, zone)
        linted.append((found, lint(found.scaled_object, found.refused, first, after_days(first, DAYS, zone), span)))
    documents = [
        {"file": found.document.file, "line": found.document.line, **linted_document(one)} for found, one in linted
    ]
    emit(output, {"scaledObjects": documents}, lambda: _view([one for _, one in linted]))
    if problems := sum(one.problems for _, one in linted):
        raise CheckFailed(f"{problems} finding{'s' * (problems > 1)} in {', '.join(files)}")


def _view(linted: Sequence[Linted]) -> Any:
    from servingplan.reporting.lint_tables import linted_view  # noqa: PLC0415  JSON needs no tables
    from servingplan.reporting.tables import stacked  # noqa: PLC0415  as above

    return stacked(map(linted_view, linted))
